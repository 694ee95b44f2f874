package deadletter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func numbersOf(p Page) (all []int64) {
	for _, l := range p.Letters {
		all = append(all, l.Number)
	}
	return all
}

// Letters can be chosen by all that is known of them, and listed page by page. // G8
func TestLettersAreListedAndChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "yard")
		old := letter(sub, 0)
		old.Reason, old.LastOutcome = retry.ReasonAge, retry.Busy
		testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{old}))
		time.Sleep(time.Hour)
		y.die(sub, 1, 2, 3)
		for what, c := range map[string]struct {
			q    Query
			want int
		}{
			"all":              {Query{}, 4},
			"by reason":        {Query{Reason: "timetoliveexceeded"}, 1},
			"by outcome":       {Query{Outcome: "NotFound"}, 3},
			"by id":            {Query{EventID: "e2"}, 1},
			"by type":          {Query{EventType: "ORDER"}, 4},
			"by another type":  {Query{EventType: "other"}, 0},
			"since":            {Query{Since: time.Now().Add(-time.Minute)}, 3},
			"until":            {Query{Until: time.Now().Add(-time.Minute)}, 1},
			"by number":        {Query{Numbers: []int64{0, 3}}, 2},
			"from the middle":  {Query{From: 2}, 2},
			"beyond the end":   {Query{From: 99}, 0},
			"a number too far": {Query{Numbers: []int64{99}}, 0},
		} {
			page := y.list(sub.ID, c.q)
			testkit.Equal(t, len(page.Letters), c.want, "%s: letters %v", what, numbersOf(page))
		}
		var seen []int64
		for q := (Query{Limit: 3}); ; {
			page := y.list(sub.ID, q)
			seen = append(seen, numbersOf(page)...)
			if q.From = page.Next; q.From == 0 {
				break
			}
		}
		testkit.Equal(t, len(seen), 4, "page by page: %v", seen)
		one := testkit.Value(y.Get(t.Context(), sub.ID, 2))(t)
		testkit.Slices(t, []int64{one.Number, one.Sequence, int64(one.Attempts)}, []int64{2, 2, 3}, "letter 2")
		testkit.ErrorIs(t, testkit.Err(y.Get(t.Context(), sub.ID, 9)), ErrNotFound, "letter 9")
	})
}

// A redriven letter begins anew, is marked, and is not redriven by accident; one that keeps coming
// back needs force. // G8
func TestLettersAreRedrivenWithAGuardAgainstLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "yard")
		y.die(sub, 1, 2, 3)
		looping := letter(sub, 4)
		looping.Redrives = 3
		testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{looping}))
		time.Sleep(time.Second) // what dies now is left out
		var sent []pending.Delivery
		y.deliver = func(p []pending.Delivery) error {
			sent = append(sent, p...)
			return nil
		}
		done := y.redrive(sub.ID, Query{}, RedriveOptions{Dry: true})
		testkit.MustSlices(t, []int{done.Count, done.Skipped, len(sent)}, []int{3, 1, 0}, "dry")
		done = y.redrive(sub.ID, Query{}, RedriveOptions{})
		testkit.MustSlices(t, []int{done.Count, done.Skipped, len(sent)}, []int{3, 1, 3}, "redriven")
		p := sent[0]
		if p.Attempts != 0 || p.Reason != "" || p.LastOutcome != "" || !p.LastAttempt.IsZero() || p.Redrives != 1 || !p.Alive.Equal(time.Now().Truncate(time.Millisecond)) || !p.Published.Equal(letter(sub, 1).Published) {
			t.Errorf("it does not begin anew: %+v", p)
		}
		done = y.redrive(sub.ID, Query{}, RedriveOptions{})
		testkit.Slices(t, []int{done.Count, len(sent)}, []int{0, 3}, "again")
		done = y.redrive(sub.ID, Query{Redriven: true}, RedriveOptions{Force: true})
		testkit.Slices(t, []int{done.Count, done.Skipped}, []int{4, 0}, "forced")
		page := y.list(sub.ID, Query{Redriven: true})
		for _, l := range page.Letters {
			if l.Redriven.IsZero() {
				t.Errorf("letter %d is not marked", l.Number)
			}
		}
	})
}

// What could not be delivered again is not marked.
func TestAFailedRedriveMarksNothing(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.die(sub, 1)
	full := errors.New("no space")
	y.deliver = func([]pending.Delivery) error { return full }
	_, err := y.Redrive(t.Context(), sub.ID, Query{}, RedriveOptions{})
	testkit.MustErrorIs(t, err, full)
	page := y.list(sub.ID, Query{})
	testkit.Equal(t, len(page.Letters), 1, "it counts as redriven")
}

// Redriving keeps to its rate, and ends a round in time.
func TestRedrivingKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, sub := yardWith(t, "yard")
		for i := range 400 {
			y.die(sub, i)
		}
		time.Sleep(time.Second) // what dies now is left out
		began, most := time.Now(), 0
		y.deliver = func(ps []pending.Delivery) error {
			most = max(most, len(ps))
			return nil
		}
		done := y.redrive(sub.ID, Query{}, RedriveOptions{Rate: 10})
		if took := time.Since(began); done.Count != 300 || done.Next != 300 || most > 10 || took < 29*time.Second-time.Millisecond || took > 30*time.Second {
			t.Errorf("%+v in %v, up to %d at once", done, took, most)
		}
	})
}

// Two operators who press the button at once redrive each letter once.
func TestRedrivesAtOnce(t *testing.T) {
	y, sub := yardWith(t, "yard")
	for i := range 200 {
		y.die(sub, i)
	}
	var sent atomic.Int64
	y.deliver = func(ps []pending.Delivery) error {
		sent.Add(int64(len(ps)))
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			testkit.Check(t, testkit.Err(y.Redrive(t.Context(), sub.ID, Query{}, RedriveOptions{})))
		})
	}
	all.Wait()
	testkit.Equal(t, sent.Load(), 200, "were delivered of 200")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	give := testkit.Value(y.whole.box(sub.ID).redriving.Take(t.Context()))(t)
	defer give()
	testkit.ErrorIs(t, testkit.Err(y.Redrive(ctx, sub.ID, Query{}, RedriveOptions{})), context.Canceled, "who does not wait")
}

// Without anybody who delivers nothing is redriven.
func TestNobodyDelivers(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.die(sub, 1)
	y.RedriveTo(nil)
	if done, err := y.Redrive(t.Context(), sub.ID, Query{}, RedriveOptions{}); err == nil || done.Count != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestPurgedLettersAreGone(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.die(sub, 1, 2, 3)
	n := y.purge(sub.ID, Query{Numbers: []int64{1}})
	page := y.list(sub.ID, Query{})
	testkit.Slices(t, []int{n, len(page.Letters), int(page.Total)}, []int{1, 2, 2}, "purged")
	y.reopen()
	n = y.purge(sub.ID, Query{})
	page = y.list(sub.ID, Query{})
	testkit.Slices(t, []int{n, len(page.Letters), int(page.Total)}, []int{2, 0, 0}, "purged")
}

// While the log of the first letter is being made there is nothing to see, and nothing is wrong. // G8
func TestTheFirstLetterOnItsWay(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.faults.Fail(eventlog.ErrUnavailable, logtest.OpProvide, logtest.OpBounds, logtest.OpSealed, logtest.OpCursor)
	testkit.ErrorIs(t, y.Put(t.Context(), sub, []pending.Delivery{letter(sub, 1)}), eventlog.ErrUnavailable)
	testkit.Equal(t, len(y.list(sub.ID, Query{}).Letters), 0, "letters")
	testkit.Equal(t, y.counts(sub.ID), Counts{})
	testkit.Equal(t, y.purge(sub.ID, Query{}), 0, "purged")
	testkit.Equal(t, y.redrive(sub.ID, Query{}, RedriveOptions{}).Count, 0, "redriven")
	y.faults.Inject(nil)
	y.die(sub, 1)
	testkit.Equal(t, len(y.list(sub.ID, Query{}).Letters), 1, "letters")
}
