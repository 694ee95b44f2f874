package processor_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// P4: Continue goes on past what was handled and failed. What the loop never got did not fail.
func TestABatchThatTheLoopDidNotTakeIsNotPassed(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Continue, cfg.Lanes, cfg.MaxBatch, cfg.Checkpoints.Auto = true, lanes, 1, true
			p := processor.New(w.hub, cfg)
			a := w.run(p, func(ctx context.Context) error { return w.pullSlowly(ctx, p) })
			w.feed(time.Second, "0", 2)
			a.stop()
			w.wantNoErrors()
			b := w.start(w.config("b"), w.note)
			after(time.Second)
			b.stop()
			if got := w.got("0"); !slices.Contains(got, 0) || !slices.Contains(got, 1) {
				t.Errorf("handled %v", got)
			}
			w.wantSaved("0", 1)
		})
	}
}

// pullSlowly takes one batch of each partition and works on it for some seconds.
func (w *world) pullSlowly(ctx context.Context, p *processor.Processor) error {
	var loops sync.WaitGroup
	defer loops.Wait()
	for part, err := range p.Partitions(ctx) {
		if err != nil {
			return err
		}
		loops.Go(func() {
			for b, err := range part.Batches(context.Background()) {
				if err != nil {
					return
				}
				time.Sleep(5 * time.Second)
				w.noteOnly(ctx, b)
			}
		})
	}
	return nil
}

func TestEndingTheLoopIsNoFailureOfTheBatch(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Continue, cfg.Lanes = true, lanes
			p := processor.New(w.hub, cfg)
			first := true
			w.run(p, func(ctx context.Context) error {
				for part, err := range p.Partitions(ctx) {
					if err != nil {
						return err
					}
					for b, err := range part.Batches(ctx) {
						if err != nil || first {
							break
						}
						if err := w.note(ctx, b); err != nil {
							return err
						}
					}
					first = false
				}
				return nil
			})
			w.feed(10*time.Second, "0", 1)
			w.wantAll()
			w.wantNoErrors()
		})
	}
}
