package processor_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// A thousand idle partitions are to cost next to nothing: a goroutine each, and no timer that
// fires.
func TestAnIdlePartitionIsOneGoroutineThatSleeps(t *testing.T) {
	for name, c := range map[string]processor.Config{
		"in order":                {},
		"deferred checkpoints":    {Checkpoints: processor.Checkpoints{Auto: true, Every: time.Minute}},
		"called only when wanted": {CallWhenIdle: true},
		"by events":               {Checkpoints: processor.Checkpoints{Auto: true, Events: 1000}, MinBatch: 10},
	} {
		t.Run(name, func(t *testing.T) {
			cost := map[int]int{}
			for _, n := range []int{2, 22} {
				bubble(t, n, func(w *world) {
					cfg := w.config("a")
					cfg.Checkpoints, cfg.MinBatch, cfg.CallWhenIdle = c.Checkpoints, c.MinBatch, c.CallWhenIdle
					before := runtime.NumGoroutine()
					w.startHost(cfg, func(string) processor.Worker { return calmWorker{w} })
					after(time.Second)
					w.feedAll(time.Minute, 3)
					w.wantAll()
					cost[n] = runtime.NumGoroutine() - before
					waits := w.hub.Waits.Load()
					after(time.Hour)
					if more := w.hub.Waits.Load() - waits; more != 0 {
						t.Errorf("%d partitions: waited %d times in an idle hour", n, more)
					}
					w.feed(10*time.Second, "1", 1)
					w.wantAll()
				})
			}
			if more := cost[22] - cost[2]; more > 25 { // a few may be others' that are about to end
				t.Errorf("%d goroutines for 20 partitions more", more)
			}
		})
	}
}

// calmWorker notes what comes, and never wants to be called with nothing.
type calmWorker struct{ w *world }

func (c calmWorker) Open(context.Context, *processor.Partition) error { return nil }
func (c calmWorker) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	return c.w.noteOnly(ctx, b)
}
func (c calmWorker) ProcessError(context.Context, *processor.Partition, error)           {}
func (c calmWorker) Close(context.Context, *processor.Partition, processor.Reason) error { return nil }
func (c calmWorker) WantsIdleCalls() bool                                                { return false }
