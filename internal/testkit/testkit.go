// Package testkit is what the tests of all packages share and the standard library does not have.
// It is imported by tests only, and imports nothing of this module, so that every package's tests
// can use it.
package testkit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// T is what Must and Check need of a test; property tests have a type of their own.
type T interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
}

// Must ends the test at an error. A format and its arguments may say what was done. Like all checks
// here it calls Helper only when it reports, so that benchmarks can use it in their loops.
func Must(t T, err error, what ...any) {
	if err != nil {
		t.Helper()
		t.Fatal(labelled(what) + err.Error())
	}
}

// Check reports an error, and lets the test go on.
func Check(t T, err error, what ...any) {
	if err != nil {
		t.Helper()
		t.Error(labelled(what) + err.Error())
	}
}

// Value is the value of a call that must not fail: testkit.Value(os.Open(name))(t).
func Value[V any](v V, err error) func(T) V {
	return func(t T) V {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Quiet is a log that nobody reads.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Run runs something in the background until stop is called, at the latest when the test ends. It
// has to end without an error then.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = run(ctx)
	}()
	stop = func() {
		t.Helper()
		cancel()
		<-ended
		if err != nil {
			t.Errorf("it ended with %v", err)
			err = nil
		}
	}
	t.Cleanup(stop)
	return stop
}

// ErrorLog is a log in which a test expects no errors, or as many as it says. What is logged is
// shown with the test.
type ErrorLog struct {
	*slog.Logger
	errors, want atomic.Int64
}

// NewErrorLog gives a log from a level on, which is counted when the test ends.
func NewErrorLog(t testing.TB, level slog.Level) *ErrorLog {
	l := &ErrorLog{}
	l.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), errorCounter{l}), &slog.HandlerOptions{Level: level}))
	t.Cleanup(func() {
		if errors, want := l.errors.Load(), l.want.Load(); errors != want {
			t.Errorf("%d errors were logged, want %d", errors, want)
		}
	})
	return l
}

// Want expects so many more errors.
func (l *ErrorLog) Want(n int) { l.want.Add(int64(n)) }

type errorCounter struct{ log *ErrorLog }

func (c errorCounter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("level=ERROR")) {
		c.log.errors.Add(1)
	}
	return len(line), nil
}

// Buffer is written by several goroutines and read by a test.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// patience is how long Eventually waits: long enough for a machine under load.
const patience = time.Minute

// Eventually polls until something is so. It is for tests with sockets and processes, which run in
// real time; others use testing/synctest.
func Eventually(t T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain for " + patience.String() + ": " + what)
		}
	}
}

// Err is the error of a call whose value a test does not need, and Err3 of one with two values.
func Err[V any](_ V, err error) error { return err }

func Err3[V, W any](_ V, _ W, err error) error { return err }
