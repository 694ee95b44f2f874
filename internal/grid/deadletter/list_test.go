package deadletter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
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
		y := newYard(t)
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		old := letter(sub, 0)
		old.Reason, old.LastOutcome = retry.ReasonAge, retry.Busy
		must(t, y.Put(t.Context(), sub, []pending.Delivery{old}))
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
			page, err := y.List(t.Context(), sub.ID, c.q)
			must(t, err)
			if len(page.Letters) != c.want {
				t.Errorf("%s: letters %v, want %d", what, numbersOf(page), c.want)
			}
		}
		var seen []int64
		for q := (Query{Limit: 3}); ; {
			page, err := y.List(t.Context(), sub.ID, q)
			must(t, err)
			seen = append(seen, numbersOf(page)...)
			if q.From = page.Next; q.From == 0 {
				break
			}
		}
		if len(seen) != 4 {
			t.Errorf("page by page: %v", seen)
		}
		one, err := y.Get(t.Context(), sub.ID, 2)
		must(t, err)
		if one.Number != 2 || one.Sequence != 2 || one.Attempts != 3 {
			t.Errorf("letter 2 is %+v", one)
		}
		if _, err := y.Get(t.Context(), sub.ID, 9); !errors.Is(err, ErrNotFound) {
			t.Errorf("letter 9: %v", err)
		}
	})
}

// A redriven letter begins anew, is marked, and is not redriven by accident; one that keeps coming back
// needs force. // G8
func TestLettersAreRedrivenWithAGuardAgainstLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		y.die(sub, 1, 2, 3)
		looping := letter(sub, 4)
		looping.Redrives = 3
		must(t, y.Put(t.Context(), sub, []pending.Delivery{looping}))
		var sent []pending.Delivery
		o := RedriveOptions{Deliver: func(_ context.Context, p []pending.Delivery) error {
			sent = append(sent, p...)
			return nil
		}}
		dry := o
		dry.Dry = true
		done, err := y.Redrive(t.Context(), sub.ID, Query{}, dry)
		must(t, err)
		if done.Count != 3 || done.Skipped != 1 || len(sent) != 0 {
			t.Fatalf("dry: %+v, sent %d", done, len(sent))
		}
		done, err = y.Redrive(t.Context(), sub.ID, Query{}, o)
		must(t, err)
		if done.Count != 3 || done.Skipped != 1 || len(sent) != 3 {
			t.Fatalf("redriven: %+v, sent %d", done, len(sent))
		}
		p := sent[0]
		if p.Attempts != 0 || p.Reason != "" || p.LastOutcome != "" || !p.LastAttempt.IsZero() || p.Redrives != 1 || !p.Alive.Equal(time.Now().Truncate(time.Millisecond)) || !p.Published.Equal(letter(sub, 1).Published) {
			t.Errorf("it does not begin anew: %+v", p)
		}
		done, err = y.Redrive(t.Context(), sub.ID, Query{}, o)
		must(t, err)
		if done.Count != 0 || len(sent) != 3 {
			t.Errorf("again: %+v", done)
		}
		o.Force = true
		done, err = y.Redrive(t.Context(), sub.ID, Query{Redriven: true}, o)
		must(t, err)
		if done.Count != 4 || done.Skipped != 0 {
			t.Errorf("forced: %+v", done)
		}
		page, err := y.List(t.Context(), sub.ID, Query{Redriven: true})
		must(t, err)
		for _, l := range page.Letters {
			if l.Redriven.IsZero() {
				t.Errorf("letter %d is not marked", l.Number)
			}
		}
	})
}

// What could not be delivered again is not marked.
func TestAFailedRedriveMarksNothing(t *testing.T) {
	y := newYard(t)
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	y.die(sub, 1)
	full := errors.New("no space")
	_, err := y.Redrive(t.Context(), sub.ID, Query{}, RedriveOptions{Deliver: func(context.Context, []pending.Delivery) error { return full }})
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	page, err := y.List(t.Context(), sub.ID, Query{})
	must(t, err)
	if len(page.Letters) != 1 {
		t.Error("it counts as redriven")
	}
}

// Redriving keeps to its rate.
func TestRedrivingKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		for i := range 300 {
			y.die(sub, i)
		}
		began := time.Now()
		done, err := y.Redrive(t.Context(), sub.ID, Query{}, RedriveOptions{Rate: 100, Deliver: func(context.Context, []pending.Delivery) error { return nil }})
		must(t, err)
		if took := time.Since(began); done.Count != 300 || took < 2*time.Second-time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("%d in %v", done.Count, took)
		}
	})
}

func TestPurgedLettersAreGone(t *testing.T) {
	y := newYard(t)
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	y.die(sub, 1, 2, 3)
	n, err := y.Purge(t.Context(), sub.ID, Query{Numbers: []int64{1}})
	must(t, err)
	page, err := y.List(t.Context(), sub.ID, Query{})
	must(t, err)
	if n != 1 || len(page.Letters) != 2 || page.Total != 2 {
		t.Errorf("purged %d, left %v, total %d", n, numbersOf(page), page.Total)
	}
	must(t, y.engine.Close())
	y.open()
	n, err = y.Purge(t.Context(), sub.ID, Query{})
	must(t, err)
	page, err = y.List(t.Context(), sub.ID, Query{})
	must(t, err)
	if n != 2 || len(page.Letters) != 0 || page.Total != 0 {
		t.Errorf("purged %d, left %v, total %d", n, numbersOf(page), page.Total)
	}
}

// Spans know the same letters as a set would.
func TestSpansAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s spans
		model := map[int64]int64{}
		for at := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			added := map[int64]bool{}
			for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 40), 0, 20).Draw(t, "numbers") {
				added[n] = true
			}
			var numbers []int64
			for n := range int64(41) {
				if added[n] {
					numbers, model[n] = append(numbers, n), int64(at)
				}
			}
			s = s.with(numbers, int64(at))
		}
		for n := range int64(41) {
			at, want := model[n]
			got, found := s.find(n)
			if found != want || found && got.At != at {
				t.Fatalf("%d: %v %v, want %v %v, in %v", n, got, found, at, want, s)
			}
		}
		if s.within(0, 41) != int64(len(model)) {
			t.Fatalf("%d letters in %v, want %d", s.within(0, 41), s, len(model))
		}
	})
}
