package testkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

// double is a test that is tested itself.
type double struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (d *double) Helper()                   {}
func (d *double) Error(args ...any)         { d.failures = append(d.failures, fmt.Sprint(args...)) }
func (d *double) Errorf(f string, a ...any) { d.Error(fmt.Sprintf(f, a...)) }
func (d *double) Fatal(args ...any)         { d.Error("fatal: ", fmt.Sprint(args...)) }
func (d *double) Cleanup(f func())          { d.cleanups = append(d.cleanups, f) }

func (d *double) end() {
	for i := len(d.cleanups) - 1; i >= 0; i-- {
		d.cleanups[i]()
	}
}

var errTest = errors.New("no")

func TestFailuresThatAreReported(t *testing.T) {
	until := func(err error) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			return err
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*double)
		want string
	}{
		{"must succeed, and does", func(d *double) { Must(d, nil) }, "[]"},
		{"must succeed, and does not", func(d *double) { Must(d, errTest) }, "[fatal: no]"},
		{"must succeed at something", func(d *double) { Must(d, errTest, "step %d", 3) }, "[fatal: step 3: no]"},
		{"a value that is there", func(d *double) { Equal(d, Value(3, nil)(d), 3) }, "[]"},
		{"a value that is not", func(d *double) { Value(0, errTest)(d) }, "[fatal: no]"},
		{"must succeed, with more results", func(d *double) { Must(d, Err("x", errTest)) }, "[fatal: no]"},
		{"must succeed, and does, with more results", func(d *double) { Must(d, Err3(1, "x", nil)) }, "[]"},
		{"should succeed, and does", func(d *double) { Check(d, nil) }, "[]"},
		{"should succeed, and does not", func(d *double) { Check(d, errTest) }, "[no]"},
		{"runs to the end of the test", func(d *double) { Run(d, until(nil)) }, "[]"},
		{"runs until it is stopped", func(d *double) { Run(d, until(nil))() }, "[]"},
		{"ends badly, which is told once", func(d *double) { Run(d, until(errTest))() }, "[it ended with no]"},
		{"logs no errors", func(d *double) { NewErrorLog(d, slog.LevelInfo).Info("fine") }, "[]"},
		{"logs an error", func(d *double) { NewErrorLog(d, slog.LevelInfo).Error("bad") }, "[1 errors were logged, want 0]"},
		{"expects an error", func(d *double) {
			l := NewErrorLog(d, slog.LevelInfo)
			l.Want(1)
			l.Error("bad")
		}, "[]"},
		{"logs quietly", func(*double) { Quiet().Error("bad") }, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &double{TB: t}
			tt.do(d)
			d.end()
			if got := fmt.Sprint(d.failures); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
