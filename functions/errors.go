package functions

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// ErrTimeout is why a call's context ends when its Timeout is up: context.Cause tells it from a partition that is taken away, which
// ends with processor.ErrLeaseLost, ErrHandoff or ErrShutdown. It is also a context.DeadlineExceeded.
var ErrTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string        { return "the call took too long" }
func (timeout) Is(target error) bool { return target == context.DeadlineExceeded }
func (timeout) Timeout() bool        { return true }

// Error is an error with its place, as Config.OnError is told.
type Error struct {
	Function  string
	Partition string // empty: of none in particular
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

// PanicError is a panic of a handler: a failed attempt like any other error, whose stack goes into the letter.
type PanicError struct {
	Value any
	Stack []byte

	at string // file and line; empty: not known
}

// Error tells the value and where it was; the stack is for those who ask.
func (e *PanicError) Error() string {
	if e.at == "" {
		return fmt.Sprintf("panicked: %v", e.Value)
	}
	return fmt.Sprintf("panicked at %s: %v", e.at, e.Value)
}

// Unwrap gives the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// safely turns a panic into an error.
func safely(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack(), at: panicPlace()}
		}
	}()
	return fn()
}

// panicPlace is where the panic that is being recovered from began, such as "billing/handler.go:12": behind the runtime's
// own functions that raised it.
func panicPlace() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") && f.File != "" {
			return filepath.Join(filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File)) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}
