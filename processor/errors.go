package processor

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/panics"
)

// Errors. Each of the first four is also what context.Cause gives in a handler
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
	// was closed. It is no failure, is not reported and counts as no attempt; Config.Continue does
	// not skip it. If the partition stays here after all, the whole batch comes again,
	// after Config.Backoff.First.
	ErrUndone = errors.New("the batch was given back undone")
	// ErrStalled: a partition has made no progress for too long, and is released.
	ErrStalled = errors.New("the partition makes no progress")
	// ErrNotHandedOver: Run has ended, after Config.Stop, although calls had not returned. Other
	// instances take these partitions when their leases have run out.
	ErrNotHandedOver = errors.New("not everything was handed over")
)

// Error is an error with where it happened.
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

// setupError says what is set up wrongly in words of its own: the hub's are for those who run the
// hub. They are there for errors.As.
type setupError struct {
	text  string
	means error // hub.ErrNotFound or hub.ErrUnauthorized
	said  error
}

func (e *setupError) Error() string   { return e.text }
func (e *setupError) Unwrap() []error { return []error{e.means, e.said} }

// noHub is of a hub that does not answer for itself; any other error is as it was.
func (in *instance) noHub(err error) error {
	return in.noSuch(err, "no hub "+in.group.Hub, "hub create "+in.group.Hub)
}

// noGroup is of a hub that is there, and its group is not.
func (in *instance) noGroup(err error) error {
	text := fmt.Sprintf("no group %q in hub %s", in.group.Group, in.group.Hub)
	return in.noSuch(err, text, "group create "+in.group.Hub+" "+in.group.Group)
}

// noSuch names the command that helps in a yard; of other hubs we know none.
func (in *instance) noSuch(err error, text, command string) error {
	switch {
	case errors.Is(err, hub.ErrNotFound):
		if _, ok := in.store.(*yard); ok {
			text += ": create it with: eventyard " + command
		}
		return &setupError{text, hub.ErrNotFound, err}
	case errors.Is(err, hub.ErrUnauthorized):
		text = fmt.Sprintf("no right to read hub %s as group %q: it takes a key or token that is valid and has the right to listen",
			in.group.Hub, in.group.Group)
		return &setupError{text, hub.ErrUnauthorized, err}
	}
	return err
}
