package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3: also among others who write.
func testSubmitAll(t *testing.T, f *fixture) {
	const writers, rounds = 4, 20
	p := f.partition(0)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				texts := []string{fmt.Sprintf("%d/%d/a", w, i), fmt.Sprintf("%d/%d/b", w, i), fmt.Sprintf("%d/%d/c", w, i)}
				all, err := p.SubmitAll(t.Context(), []eventlog.Batch{Opaque(3, texts[0]), batchOf(texts[1]), Opaque(1, texts[2])})
				if err != nil || len(all) != 3 {
					t.Errorf("%d receipts, %v", len(all), err)
					return
				}
				if err := wantTogether(t.Context(), p, all, texts); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	testkit.Equal(t, f.next(p), writers*rounds*5, "the next number")
}

// wantTogether waits for receipts and finds what they are for, in order.
func wantTogether(ctx context.Context, p eventlog.Partition, all []eventlog.Receipt, texts []string) error {
	last := eventlog.NoSequence
	for n, r := range all {
		done, err := r.Wait(ctx)
		if err != nil || done.First <= last {
			return fmt.Errorf("batch %d is at %d, behind one at %d: %w", n, done.First, last, err)
		}
		last = done.First
		c, err := p.Cursor(ctx, eventlog.At(done.First))
		if err != nil {
			return err
		}
		defer c.Close()
		run, err := c.TryNext(ctx)
		if err != nil || run.First != done.First || run.Skip > 0 || !run.Time.Equal(done.Time) || textOf(run) != texts[n] {
			return fmt.Errorf("at %d, %v there is %q, want %q: %w", done.First, done.Time, textOf(run), texts[n], err)
		}
	}
	return nil
}

// textOf is the text of a frame or of a run's first event.
func textOf(run eventlog.Run) string {
	if run.Form == eventlog.FormEvents && run.Len() > 0 {
		return string(run.Events[0].Message)
	}
	text, err := OpaqueText(run)
	if err != nil {
		return err.Error()
	}
	return text
}

// K3
func testSubmitAllRefused(t *testing.T, f *fixture) {
	p := f.partition(0)
	empty, large := Opaque(0, "x"), Opaque(1, "")
	large.Raw = make([]byte, eventlog.MaxBatchBytes)
	for _, tt := range []struct {
		batches []eventlog.Batch
		want    error
	}{
		{nil, eventlog.ErrEmptyBatch},
		{[]eventlog.Batch{Opaque(1, "a"), empty}, eventlog.ErrEmptyBatch},
		{[]eventlog.Batch{Opaque(1, "a"), {Events: []eventlog.Event{{}}, Count: 1}}, eventlog.ErrForm},
		{[]eventlog.Batch{large, large, large, large, large, Opaque(1, "")}, eventlog.ErrTooLarge},
	} {
		testkit.ErrorIs(t, testkit.Err(p.SubmitAll(t.Context(), tt.batches)), tt.want)
	}
	testkit.Equal(t, f.next(p), 0, "the next number after refusals")
	all, err := p.SubmitAll(t.Context(), []eventlog.Batch{large, large, large, large, large})
	testkit.Must(t, err)
	for i, r := range all {
		done, err := r.Wait(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, done.First, eventlog.Sequence(i), "of the most that may be submitted together")
	}
}

// testSubmitAllAtTheEnd closes the engine over what nobody waits for yet. // H2, K3
func testSubmitAllAtTheEnd(t *testing.T, f *fixture) {
	p := f.partition(0)
	var batches []eventlog.Batch
	for i := range 20 {
		batches = append(batches, Opaque(1, fmt.Sprint(i)))
	}
	all, err := p.SubmitAll(t.Context(), batches)
	testkit.Must(t, err)
	testkit.Must(t, f.Close())
	stored := 0
	for i, r := range all {
		done, err := r.Wait(t.Context())
		switch {
		case err == nil && done.First == eventlog.Sequence(i) && stored == i:
			stored++
		case !errors.Is(err, eventlog.ErrClosed):
			t.Errorf("receipt %d, behind %d that were stored: %d, %v", i, stored, done.First, err)
		}
	}
	f.Engine = f.reopen()
	testkit.Equal(t, f.next(f.partition(0)), eventlog.Sequence(stored), "the next number")
}

// testStart: of several partitions, none of which anybody waits for at first. // K3
func testStart(t *testing.T, f *fixture) {
	var receipts []eventlog.Receipt
	for n := range 4 {
		r, err := f.partition(n).Submit(t.Context(), batchOf("started"))
		testkit.Must(t, err)
		r.Start()
		receipts = append(receipts, r)
	}
	for n := range 4 {
		f.until(f.partition(n), func(b eventlog.Bounds) bool { return b.Next == 1 })
	}
	for _, r := range receipts[:2] { // nobody wants to know of the others
		r.Start()
		testkit.Must(t, testkit.Err(r.Wait(t.Context())))
	}
	f.append(f.partition(3), "after")
	f.wantRest(f.partition(3), eventlog.Earliest(), "started", "after")
}
