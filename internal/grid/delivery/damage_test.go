package delivery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/watermark"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: events that damage has taken are counted: nothing is left out silently.
func TestWhatDamageTakesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, run := still(t)
		damage := &eventlog.CorruptError{Where: "here", Reason: "bits", First: 2, Next: 6}
		tr := l.tracks[0]
		f := tr.feed
		f.next = 2
		if err := f.pass(damage); !errors.Is(err, damage) || f.next != 6 {
			t.Errorf("the feed stands at %d, %v", f.next, err)
		}
		testkit.Equal(t, testutil.ToFloat64(y.service.metrics.unreadable), 4, "the feed left out")
		tr.detach(tr.next(), run.Time)
		tr.position, tr.mark = 3, watermark.At(3)
		_ = (&filling{lane: l}).catching(tr).pass(damage)
		if n := testutil.ToFloat64(y.service.metrics.unreadable); n != 7 || tr.position != 6 {
			t.Errorf("%v events were left out, and the track stands at %d, want 7 and 6", n, tr.position)
		}
	})
}

// G5: that holds also for a subscription that has no lane just now.
func TestAParkedLogInTroubleWithoutALane(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.stop()
		y.disk = &fullDisk{prefix: "shelf-"}
		y.disk.full.Store(true)
		y.open()
		s := y.service
		s.mu.Lock()
		delete(s.lanes, id)
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := false
		p := pending.Delivery{Subscription: id, Attempts: 1, Published: time.Now(), Alive: time.Now(), Event: eventOf("due")}
		s.take(ctx, []retrylog.Entry{{Delivery: p, Done: func() { done = true }}})
		if ctx.Err() != nil || !done {
			t.Error("what is due for others was held up")
		}
	})
}
