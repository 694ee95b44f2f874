package delivery

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/grid/watermark"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// still is a yard whose service was opened and does not run, so that a test can do each step by
// itself.
func still(t *testing.T) (*yard, *lane, eventlog.Run) {
	y := newYard(t)
	y.topic("orders")
	id := y.subscribe("orders", "receiver")
	y.publish("orders", ids("e", 10)...)
	y.open()
	l := y.lane(id)
	cursor, err := l.source.origin.cursor(t.Context(), 0, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = cursor.Close() })
	run, err := cursor.TryNext(t.Context())
	testkit.Must(t, err)
	return y, l, run
}

func (l *lane) queued() (all []int64) {
	for i := range l.memory.queue.ready.len() {
		all = append(all, l.memory.queue.ready.at(i).Sequence)
	}
	return all
}

func (l *lane) shed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shedLocked()
}

// A step of the pump whose track was moved by others does no more.
func TestAPumpNoticesThatItsTrackWasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.tracks[0]
		tr.detach(tr.next(), run.Time)
		tr.position, tr.mark = 0, watermark.At(0)
		c := (&filling{lane: l}).catching(tr)
		take := func(c *catching, n int64) bool {
			if !c.concerns(n, &run, int(n)) {
				t.Fatalf("%d does not concern the lane", n)
			}
			return c.takeOne(&run, n)
		}
		for n := range int64(4) {
			if !take(c, n) {
				t.Fatalf("%d was not taken", n)
			}
		}
		l.shed()
		if take(c, 4) {
			t.Error("a step went on though what it had taken was put down")
		}
		if c.move(5, run.Time); tr.position != 0 || len(tr.left) != 4 {
			t.Errorf("the track stands at %d with %d put down, want 0 and 4", tr.position, len(tr.left))
		}
		again := (&filling{lane: l}).catching(tr)
		again.take(&run)
		if got, want := l.queued(), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("queued %v, want %v", got, want)
		}
		if !tr.feed.join(tr) {
			t.Error("the track did not join")
		}
	})
}

// A definition that changes while the pump reads is heeded from the next event on.
func TestAPumpNoticesNewTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, run := still(t)
		tr := l.tracks[0]
		tr.detach(tr.next(), run.Time)
		tr.position, tr.mark = 0, watermark.At(0)
		c := (&filling{lane: l}).catching(tr)
		changed := *l.terms.sub
		changed.Filter.EventTypes = []string{"none"}
		y.service.reconciler.changeLane(l.source, l, &changed)
		if c.take(&run); tr.position != 0 || l.memory.queue.events != 0 {
			t.Errorf("the pump went on with an old filter, to %d", tr.position)
		}
		(&filling{lane: l}).catching(tr).take(&run)
		if tr.position != 10 || l.memory.queue.events != 0 {
			t.Errorf("the track stands at %d with %d queued, want 10 and none", tr.position, l.memory.queue.events)
		}
	})
}

// A lane that is ahead of the feed joins it, and is given nothing twice.
func TestALaneAheadOfTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.tracks[0]
		tr.detach(tr.next(), run.Time)
		tr.position, tr.mark = 0, watermark.At(0)
		(&filling{lane: l}).catching(tr).take(&run)
		f := tr.feed
		f.next = 3
		f.position.Store(3)
		if !f.join(tr) {
			t.Fatal("the track did not join")
		}
		f.offer(&run, 3, 10)
		testkit.Equal(t, l.memory.queue.events, 10, "are queued")
		testkit.Equal(t, tr.low(), 0, "the mark")
	})
}

// New lanes begin where they were made, also while the source is read.
func TestALaneThatComesLaterBeginsAtItsStart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("first")
		y.publish("orders", ids("e", 10)...)
		wait()
		id := y.subscribe("orders", "second")
		wait()
		l := y.lane(id)
		if tr := l.tracks[0]; !tr.joined.Load() || tr.low() != 10 {
			t.Errorf("it stands at %d, joined %v, want 10 and joined", tr.low(), tr.joined.Load())
		}
		y.unsubscribe("orders", "first")
		y.publish("orders", "x")
		wait()
		wantIDs(t, "second", y.sender.delivered("second"), []string{"x"})
	})
}

// One that takes the place of another begins where it was made, too.
func TestASubscriptionThatReplacesAnotherBeginsAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := still(t)
		y.unsubscribe("orders", "receiver")
		y.publish("orders", ids("f", 5)...)
		id := y.subscribe("orders", "another")
		y.service.reconciler.reconcile(t.Context())
		l := y.lane(id)
		if low := l.low(0); low != 15 {
			t.Errorf("it begins at %d, want 15", low)
		}
	})
}
