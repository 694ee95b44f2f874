package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// patience is how long anything may take that is to happen by itself: longer than any fault, on a
// machine that has much else to do. How long it does take is printed. The longest is the end of nodes
// whose servers inside have all stopped: without a majority each gives up in vain what it has, for a minute.
const patience = 5 * time.Minute

// eventually polls until something is so; of other processes there is no other way to know.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in vain for %v: %s", patience, what)
		}
	}
}

// manage has something created, changed or deleted. A yard that is busy says so, and is asked again;
// what it has done by then is not there to be done any more.
func manage(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	again := false
	eventually(t, what, func() bool {
		err := do(t.Context())
		problem, is := errors.AsType[*admin.Problem](err)
		switch {
		case err == nil || is && again && (problem.Status == http.StatusConflict || problem.Status == http.StatusNotFound):
			return true
		case is && problem.Status < 500 && problem.Status != http.StatusTooManyRequests:
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: it is tried again: %v", what, err)
		again = true
		idle(t.Context(), time.Second)
		return false
	})
}

// idle waits, or until ctx ends.
func idle(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
