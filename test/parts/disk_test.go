package parts

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestADiskIsFilledAndFreed(t *testing.T) {
	disk, err := NewDisk(t, 1<<20)
	if err != nil {
		t.Skipf("no disk can be mounted: %v", err)
	}
	file := filepath.Join(disk.Folder, "file")
	write := func() error { return os.WriteFile(file, make([]byte, 1<<16), 0o600) }
	for range 2 {
		disk.Fill(t)
		if err := write(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a full disk takes a file: %v", err)
		}
		disk.Free(t)
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
