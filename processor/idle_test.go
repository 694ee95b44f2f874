package processor_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// A thousand idle partitions are to cost next to nothing: a goroutine each, and no timer that fires.
func TestAnIdlePartitionIsOneGoroutineThatSleeps(t *testing.T) {
	for name, c := range map[string]processor.Config{
		"in order":             {},
		"deferred checkpoints": {Checkpoints: processor.Checkpoints{Auto: true, Every: time.Minute}},
		"by events":            {Checkpoints: processor.Checkpoints{Auto: true, Events: 1000}, MinBatch: 10},
	} {
		t.Run(name, func(t *testing.T) {
			cost := map[int]int{}
			for _, n := range []int{2, 22} {
				bubble(t, n, func(w *world) {
					cfg := w.config("a")
					cfg.Checkpoints, cfg.MinBatch = c.Checkpoints, c.MinBatch
					before := runtime.NumGoroutine()
					r := w.start(cfg, w.noteOnly)
					after(time.Second)
					for _, p := range w.hub.parts {
						w.hub.send(p.id, 3)
					}
					after(time.Minute)
					w.wantAll()
					cost[n] = runtime.NumGoroutine() - before
					waits := w.hub.waits.Load()
					after(time.Hour)
					if more := w.hub.waits.Load() - waits; more != 0 {
						t.Errorf("%d partitions: waited %d times in an idle hour", n, more)
					}
					w.hub.send("1", 1)
					after(10 * time.Second)
					w.wantAll()
					r.stop()
				})
			}
			if per := (cost[22] - cost[2]) / 20; per != 1 {
				t.Errorf("%d goroutines for each partition", per)
			}
		})
	}
}
