package disk_test

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6: a folder of an older version is renewed at its first start; without room the engine works on,
// and tries again with each round of retention.
func TestAFolderIsRenewedWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(disk.Always, vfs.NewMem())
		var calls atomic.Int32
		var room atomic.Bool
		cfg.Renew = func() error {
			if calls.Add(1); room.Load() {
				return nil
			}
			return syscall.ENOSPC
		}
		cfg.RetentionInterval = time.Second
		e := mustOpen(t, cfg)
		mustAppend(t, mustPartition(t, e, eventlog.Retention{}), "without room")
		testkit.Equal(t, calls.Load(), 1, "calls by the start")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		rounds := func(n int) {
			time.Sleep(time.Duration(n)*time.Second + time.Millisecond)
			synctest.Wait()
		}
		rounds(2)
		testkit.Equal(t, calls.Load(), 3, "calls by two rounds of retention")
		room.Store(true)
		rounds(2)
		testkit.Equal(t, calls.Load(), 4, "calls once there was room")
		stop()
		testkit.Must(t, <-ended)
		testkit.Must(t, e.Close())
	})
}

// R6: an error that is not a lack of room ends the start, and frees the folder.
func TestAFolderThatCannotBeRenewedIsNotOpened(t *testing.T) {
	cfg := config(disk.Always, vfs.NewMem())
	broken := errors.New("broken")
	cfg.Renew = func() error { return broken }
	testkit.ErrorIs(t, testkit.Err(disk.Open(cfg)), broken)
	cfg.Renew = nil
	mustOpen(t, cfg)
}
