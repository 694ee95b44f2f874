// Package panics makes panics of other people's functions errors that tell where they began.
// Packages processor and functions give them to their users by names of their own.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// PanicError is a panic that was recovered from.
type PanicError struct {
	Value any
	Stack []byte
	// At is the file and line where it began, such as "billing/handler.go:12"; empty: not known.
	At string
}

// Error tells the value and where it was; the stack is for those who ask.
func (e *PanicError) Error() string {
	if e.At == "" {
		return fmt.Sprintf("panicked: %v", e.Value)
	}
	return fmt.Sprintf("panicked at %s: %v", e.At, e.Value)
}

// Unwrap gives the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Call calls a function and gives its error, or a *PanicError.
func Call(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack(), At: where()}
		}
	}()
	return fn()
}

// where is where the panic that is being recovered from began: behind the runtime's own functions
// that raised it.
func where() string {
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
