package eventlog_test

import (
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// resting is a cursor that is woken by the test.
type resting struct {
	eventlog.Cursor
	wake func()
}

func (r *resting) Await(wake func()) func() {
	r.wake = wake
	return func() { r.wake = nil }
}

// R2: a goroutine waits at many cursors at once, and no wake is lost.
func TestWaker(t *testing.T) {
	w, cursors := eventlog.NewWaker(), make([]resting, 100)
	for i := range cursors {
		w.Wait(i, &cursors[i])
	}
	testkit.Equal(t, len(w.Woken(nil)), 0)
	cursors[7].wake()
	cursors[3].wake()
	<-w.C()
	testkit.Slices(t, w.Woken([]int{50}), []int{50, 7, 3})
	testkit.Equal(t, len(w.Woken(nil)), 0, "woken again")
	w.Wait(7, &cursors[7])
	for i := range cursors {
		if i != 3 {
			go cursors[i].wake()
		}
	}
	var got []int
	for len(got) < len(cursors)-1 {
		<-w.C()
		got = w.Woken(got)
	}
	slices.Sort(got)
	testkit.Equal(t, len(slices.Compact(got)), len(cursors)-1)
	w.Wait(3, &cursors[3])
	w.Stop()
	testkit.Equal(t, cursors[3].wake == nil, true, "it is still waited for")
}
