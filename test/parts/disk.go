package parts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Disk is a small file system that can be filled. It is in memory: what a process has written is there when
// it was killed, and power cuts are not its matter.
type Disk struct {
	// Folder is where it is mounted.
	Folder string
}

const diskFolders = "eventyard-disk-"

// NewDisk mounts a disk of so many bytes until the test ends. It takes root, and a system that allows it: the
// error is why it is refused.
func NewDisk(t testing.TB, size int64) (*Disk, error) {
	t.Helper()
	sweepDisks()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", diskFolders, os.Getpid()))
	if err != nil {
		return nil, err
	}
	if err := runStep(exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0700", size), "tmpfs", dir)); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Errorf("remove the disk: %v", err)
		}
	})
	return &Disk{Folder: dir}, nil
}

// Fill leaves no free byte on it, and Free gives back what Fill has taken.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	if err := d.fill(); err != nil {
		t.Fatal(err)
	}
}

func (d *Disk) Free(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(d.ballast()); err != nil {
		t.Fatal(err)
	}
}

func (d *Disk) ballast() string { return filepath.Join(d.Folder, "ballast") }

func (d *Disk) fill() error {
	file, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	for err == nil {
		_, err = file.Write(bytes.Repeat([]byte("full"), 1<<18)) // what does not fit as a whole is written in part
	}
	if errors.Is(err, syscall.ENOSPC) {
		return file.Close()
	}
	return errors.Join(err, file.Close())
}

func unmount(dir string) error {
	return errors.Join(runStep(exec.Command("umount", "-l", dir)), os.Remove(dir))
}

// sweepDisks removes those of test processes that were killed.
func sweepDisks() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), diskFolders+"*"))
	for _, dir := range left {
		var pid int
		if _, err := fmt.Sscanf(strings.TrimPrefix(filepath.Base(dir), diskFolders), "%d-", &pid); err != nil {
			continue
		}
		if process, err := os.FindProcess(pid); err == nil && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			_ = unmount(dir) // the next sweep tries again
		}
	}
}
