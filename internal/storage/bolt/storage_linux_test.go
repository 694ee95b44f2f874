//go:build linux && (amd64 || arm64)

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// cannotPlay is how a child ends that this machine does not allow to do its part.
const cannotPlay = 77

func runStorageChild(mode string, args []string) error {
	if mode == "full" {
		return liveWithAFullDisk(args[0])
	}
	for _, f := range systemFaults() {
		if f.mode == mode {
			return liveWithAFault(args[0], f)
		}
	}
	return fmt.Errorf("unknown part %q", mode)
}

// runOrSkip runs a child to its end.
func runOrSkip(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == cannotPlay, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		if os.Getenv("CI") == "true" { // there every test has to run
			t.Fatal("not allowed on this machine")
		}
		t.Skip("not allowed on this machine")
	case err != nil:
		t.Fatal(err)
	}
}

// systemFault is a system call that fails from a certain moment on.
type systemFault struct {
	mode   string
	filter []unix.SockFilter
}

const (
	bpfLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfIfSame = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfIfLess = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K // jumps to jf when less
	bpfReturn = unix.BPF_RET | unix.BPF_K

	atNumber = 0  // where seccomp_data has the call's number
	atOffset = 40 // and the lower half of its fourth argument
)

func systemFaults() []systemFault {
	allow := unix.SockFilter{Code: bpfReturn, K: unix.SECCOMP_RET_ALLOW}
	fail := unix.SockFilter{Code: bpfReturn, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)}
	load := func(at uint32) unix.SockFilter { return unix.SockFilter{Code: bpfLoad, K: at} }
	return []systemFault{
		{"sync fails", []unix.SockFilter{
			load(atNumber),
			{Code: bpfIfSame, K: unix.SYS_FDATASYNC, Jt: 2},
			{Code: bpfIfSame, K: unix.SYS_FSYNC, Jt: 1},
			allow, fail,
		}},
		{"write of a page fails", []unix.SockFilter{
			load(atNumber),
			{Code: bpfIfSame, K: unix.SYS_PWRITE64, Jt: 1},
			allow, fail,
		}},
		{"write of the meta page fails", []unix.SockFilter{
			load(atNumber),
			{Code: bpfIfSame, K: unix.SYS_PWRITE64, Jf: 2},
			load(atOffset),
			{Code: bpfIfLess, K: uint32(2 * os.Getpagesize()), Jf: 1},
			allow, fail,
		}},
	}
}

// Real system calls fail under a store: no change is acknowledged, and the file keeps
// what was. That a failed sync is noticed shows that there is one; that nothing can be
// seen of the change afterwards shows that it comes before the meta page is written.
func TestAFailedSyncIsHonoured(t *testing.T) {
	for _, f := range systemFaults() {
		t.Run(f.mode, func(t *testing.T) {
			path := storePath(t)
			runOrSkip(t, childCommand(t, f.mode, path))
			testkit.Check(t, Check(path))
			s := openStore(t, Config{Path: path})
			wantValue(t, s, "a", "acknowledged")
			set(t, s, "b", 0, "well again")
		})
	}
}

func liveWithAFault(path string, f systemFault) error {
	ctx := context.Background()
	s, err := Open(Config{Path: path})
	if err != nil {
		return err
	}
	revision, err := s.CompareAndSet(ctx, "a", 0, []byte("acknowledged"))
	if err != nil {
		return err
	}
	if err := installFilter(f.filter); err != nil {
		os.Exit(cannotPlay)
	}
	for range 3 {
		if _, err := s.CompareAndSet(ctx, "a", revision, []byte("lost")); !errors.Is(err, meta.ErrUncertain) || !errors.Is(err, unix.EIO) {
			return fmt.Errorf("%s: a change gave %w, want ErrUncertain and EIO", f.mode, err)
		}
		if entry, err := s.Get(ctx, "a"); err != nil || string(entry.Value) != "acknowledged" || entry.Revision != revision {
			return fmt.Errorf("%s: get gave %q at %d, %w", f.mode, entry.Value, entry.Revision, err)
		}
	}
	return nil
}

// installFilter puts a seccomp filter on all threads of this process, for good.
func installFilter(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// A disk that is really full: a small file system of its own.
func TestAFullDiskRefusesChangesUntilThereIsRoom(t *testing.T) {
	cmd := childCommand(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	runOrSkip(t, cmd)
}

func liveWithAFullDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		fmt.Fprintln(os.Stderr, "mount:", err)
		os.Exit(cannotPlay)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 256<<10), 0o600); err != nil {
		return err
	}
	path := filepath.Join(dir, "meta.db")
	s, err := Open(Config{Path: path, ReserveBytes: 96 << 10})
	if err != nil {
		return err
	}
	stored, err := fillDisk(s)
	if err != nil {
		return err
	}
	if s, err = emptyDisk(s, path, stored); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	for i := range stored {
		if _, err := s.CompareAndSet(context.Background(), fullKey(i), 0, make([]byte, 8<<10)); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	return errors.Join(s.Close(), Check(path))
}

func fullKey(i int) string { return fmt.Sprintf("k/%03d", i) }

// fillDisk stores entries until there is no more room, and tries thrice in vain. It gives
// how many were stored.
func fillDisk(s *Store) (stored int, err error) {
	ctx := context.Background()
	for err == nil {
		if _, err = s.CompareAndSet(ctx, fullKey(stored), 0, make([]byte, 8<<10)); err == nil {
			stored++
		}
	}
	for range 3 {
		if !errors.Is(err, meta.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, meta.ErrUncertain) {
			return 0, fmt.Errorf("change %d gave %w, want ErrNoSpace with ENOSPC and no doubt", stored, err)
		}
		entries, listErr := s.List(ctx, "")
		if listErr != nil || len(entries) != stored || stored == 0 {
			return 0, fmt.Errorf("%d entries are there, %w, want %d", len(entries), listErr, stored)
		}
		_, err = s.CompareAndSet(ctx, fullKey(stored), 0, make([]byte, 8<<10))
	}
	return stored, nil
}

// emptyDisk deletes all entries from a disk without a byte of room, and begins with another store
// on the same file, since a yard may be started then.
func emptyDisk(s *Store, path string, stored int) (*Store, error) {
	ctx := context.Background()
	// The last crumbs are somebody else's.
	crumbs, err := os.Create(filepath.Join(filepath.Dir(path), "crumbs"))
	for err == nil {
		_, err = crumbs.Write(make([]byte, 1<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if s, err = Open(Config{Path: path, ReserveBytes: 96 << 10}); err != nil {
		return nil, err
	}
	for i := range stored {
		there, err := s.Get(ctx, fullKey(i))
		if err != nil {
			return nil, err
		}
		marked, err := s.CompareAndSet(ctx, there.Key, there.Revision, append(there.Value[:1<<10], " is being deleted"...))
		if err != nil {
			return nil, fmt.Errorf("mark %d of %d: %w", i, stored, err)
		}
		if err := s.Delete(ctx, there.Key, marked); err != nil {
			return nil, fmt.Errorf("delete %d of %d: %w", i, stored, err)
		}
	}
	return s, nil
}
