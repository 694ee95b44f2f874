//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
	"golang.org/x/sys/unix"
)

// What a worker is told, by its environment.
const (
	workerName   = "FLEET_WORKER"
	workerYard   = "FLEET_YARD"
	workerLedger = "FLEET_LEDGER"
)

const (
	hubName, groupName = "homes", "alarms"
	lease, renew       = 6 * time.Second, 2 * time.Second
)

// TestMain makes the same binary the worker, so that it is built once.
func TestMain(m *testing.M) {
	if name := os.Getenv(workerName); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is a worker program as a user would write it, except that it notes all that
// it does, with a clock that the processes of a machine share.
func work(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	notes, err := os.OpenFile(os.Getenv(workerLedger), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer notes.Close()
	client, err := hub.Dial(ctx, os.Getenv(workerYard), hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	p := processor.New(client.Hub(hubName), processor.Config{
		Group: groupName, ID: name, Lease: lease, Renew: renew,
		OnError: func(err error) { note(notes, "error %v", err) },
	})
	return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		first, last := b.Events[0].Sequence, b.Events[len(b.Events)-1].Sequence
		id, epoch := b.Partition.ID(), b.Partition.Epoch()
		note(notes, "start %s %d %d %d", id, epoch, first, last)
		if err := pretend(ctx, len(b.Events)); err != nil {
			return err
		}
		note(notes, "done %s %d %d %d", id, epoch, first, last)
		if err := b.Checkpoint(ctx); err != nil {
			return err
		}
		note(notes, "saved %s %d %d %d", id, epoch, first, last)
		return nil
	})
}

// pretend takes a little time for each event, as work does.
func pretend(ctx context.Context, events int) error {
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	case <-time.After(time.Duration(events) * 20 * time.Microsecond):
		return nil
	}
}

// note writes a line with one call of the system, so that a kill leaves it whole or out.
func note(f *os.File, format string, args ...any) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	line := fmt.Sprintf("%d ", now.Nano()) + fmt.Sprintf(format, args...) + "\n"
	if _, err := f.WriteString(line); err != nil {
		panic(err)
	}
}
