package processor

import (
	"errors"

	"github.com/eventyard/eventyard/internal/panics"
)

// What callers branch on. Each of the first four is also what context.Cause tells in a handler
// whose context has ended.
var (
	// ErrLeaseLost: the lease could not be renewed in time, or another instance has it.
	ErrLeaseLost = errors.New("the partition's lease was lost")
	// ErrHandoff: another instance is to have the partition.
	ErrHandoff = errors.New("the partition is handed to another instance")
	// ErrShutdown: the processor stops.
	ErrShutdown = errors.New("the processor stops")
	// ErrHandlerTimeout: the call took longer than Config.HandlerTimeout.
	ErrHandlerTimeout = errors.New("the handler took too long")
	// ErrDuplicateID: another living instance has the same id.
	ErrDuplicateID = errors.New("another instance with this id is running")
	// ErrMoved: the group's checkpoint was moved by an operator, and the partition starts again
	// from there. What was handled meanwhile cannot be checkpointed.
	ErrMoved = errors.New("the checkpoint was moved by an operator")
	// ErrGap: events were removed by retention before the group had read them.
	ErrGap = errors.New("events were removed before they were read")
	// ErrBadCheckpoint: the checkpoint lies beyond the partition's end, or is of an earlier hub
	// of that name; Config.OutOfRange says what is done.
	ErrBadCheckpoint = errors.New("the checkpoint does not fit the partition")
	// ErrBadStart: there is no checkpoint, and what Config.Start gave lies beyond the partition's
	// end; Config.OutOfRange says what is done.
	ErrBadStart = errors.New("the start position does not fit the partition")
	// ErrUndone is for handlers to return: the batch is not finished, mostly because Batch.Leaving
	// was closed. It is no failure, told to nobody and counted as no attempt; Config.Continue does
	// not go past it. If the partition stays here after all, the whole batch comes again, after
	// Config.Backoff.First.
	ErrUndone = errors.New("the batch was given back undone")
	// ErrStalled: a partition has made no progress for too long, and is released.
	ErrStalled = errors.New("the partition makes no progress")
	// ErrNotHandedOver: Run has ended, after Config.Stop, although calls had not returned. Other
	// instances take these partitions when their leases have run out.
	ErrNotHandedOver = errors.New("not everything was handed over")
)

// Error is an error with its place.
type Error struct {
	Partition string // empty: of no partition in particular
	Doing     string // such as "renew leases"
	Err       error
}

func (e *Error) Error() string {
	if e.Partition == "" {
		return e.Doing + ": " + e.Err.Error()
	}
	return "partition " + e.Partition + ": " + e.Doing + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// PanicError is a panic of a handler, or of another function that the processor was given.
type PanicError = panics.PanicError
