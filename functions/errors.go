package functions

import (
	"context"

	"github.com/eventyard/eventyard/internal/panics"
)

// ErrTimeout is why a call's context ends when its Timeout is up: context.Cause distinguishes it
// from a partition that is taken away, which ends with processor.ErrLeaseLost, ErrHandoff or
// ErrShutdown. It is also a context.DeadlineExceeded.
var ErrTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string        { return "the call took too long" }
func (timeout) Is(target error) bool { return target == context.DeadlineExceeded }
func (timeout) Timeout() bool        { return true }

// Step is what was being done when something went wrong, for callers that branch on it.
type Step int

const (
	StepOther   Step = iota // reading, leases, checkpoints, the circuit
	StepCall                // the function was called
	StepPutAway             // an event was written to the poison target
)

// Error is an error with its function and partition, as Config.OnError gets it.
type Error struct {
	Function  string
	Partition string // empty: of none in particular
	Step      Step
	Doing     string // such as "call the function"
	Err       error
}

func (e *Error) Error() string {
	if e.Partition == "" {
		return "function " + e.Function + ": " + e.Doing + ": " + e.Err.Error()
	}
	return "function " + e.Function + ", partition " + e.Partition + ": " + e.Doing + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// plainError says in words of ours what a hub says in those of its protocol.
type plainError struct {
	text string
	said error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.said }

// PanicError is a panic of a handler: a failed attempt like any other error, whose stack goes into
// the poison event.
type PanicError = panics.PanicError
