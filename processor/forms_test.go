package processor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
)

// P4
func TestAWorkerIsOpenedOnceBeforeAnyEventAndClosedOnceAfterTheLast(t *testing.T) {
	bubble(t, 2, func(w *world) {
		workers := map[string]*diary{}
		make := func(id string) func(string) processor.Worker {
			return func(p string) processor.Worker {
				w.mu.Lock()
				defer w.mu.Unlock()
				d := &diary{w: w}
				workers[id+p] = d
				return d
			}
		}
		a := w.startHost(w.config("a"), make("a"))
		w.feedAll(time.Second, 3)
		b := w.startHost(w.config("b"), make("b"))
		after(time.Minute)
		moved := "0"
		if w.lease("1").Owner == "b" {
			moved = "1"
		}
		a.stop()
		after(time.Second)
		b.stop()
		w.wantAll()
		kept := map[string]string{"0": "1", "1": "0"}[moved]
		for worker, want := range map[string][]string{
			"a" + moved: {"open " + moved, "close " + moved + " handoff"},
			"b" + moved: {"open " + moved, "close " + moved + " shutdown"},
			"a" + kept:  {"open " + kept, "close " + kept + " shutdown"},
			"b" + kept:  {"open " + kept, "close " + kept + " shutdown"},
		} {
			testkit.Slices(t, workers[worker].list(), want, "worker %s saw", worker)
		}
	})
}

// P4
func TestAWorkerThatCannotOpenReleasesThePartitionAndIsTriedAgain(t *testing.T) {
	bubble(t, 1, func(w *world) {
		var made []*diary
		failures := 3
		w.startHost(w.config("a"), func(string) processor.Worker {
			d := &diary{w: w}
			d.open = func() error {
				if failures--; failures >= 0 {
					return errHandler
				}
				return nil
			}
			made = append(made, d)
			return d
		})
		w.feed(10*time.Second, "0", 2)
		w.wantAll()
		w.wantReported(errHandler)
		testkit.MustEqual(t, len(made), 4, "workers")
		testkit.Slices(t, made[0].list(), []string{"open 0"}, "the first saw")
		testkit.Equal(t, w.lease("0").Epoch, 4, "epoch")
	})
}

// Better uneven than unread.
func TestAPartitionThatCannotBeOpenedHereIsTakenByAnother(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.startHost(w.config("bad"), func(string) processor.Worker {
			return &diary{w: w, open: func() error { return errHandler }}
		})
		w.startHost(w.config("good"), func(string) processor.Worker { return &diary{w: w} })
		after(10 * time.Minute)
		w.feedAll(2*time.Minute, 3)
		w.wantAll()
	})
}

func TestProcessErrorHearsOfErrorsOfThePartition(t *testing.T) {
	bubble(t, 1, func(w *world) {
		d := &diary{w: w, process: w.failing}
		a := w.startHost(w.config("a"), func(string) processor.Worker { return d })
		w.feed(time.Second, "0", 1)
		a.stop()
		testkit.Slices(t, d.list(), []string{"open 0", "error 0", "close 0 shutdown"}, "the worker saw")
	})
}

// pull works on partitions in the pull form until ctx ends.
func (w *world) pull(ctx context.Context, p *processor.Processor) error {
	var loops sync.WaitGroup
	defer loops.Wait()
	for part, err := range p.Partitions(ctx) {
		if err != nil {
			return err
		}
		loops.Go(func() {
			for b, err := range part.Batches(context.Background()) {
				if err != nil {
					w.onError(err)
					return
				}
				w.noteOnly(ctx, b)
			}
		})
	}
	return nil
}

// P5
func TestThePullFormGivesPartitionsAndBatches(t *testing.T) {
	bubble(t, 4, func(w *world) {
		cfg := w.config("a")
		cfg.Checkpoints.Auto = true
		a := processor.New(w.hub, cfg)
		ra := w.run(a, func(ctx context.Context) error { return w.pull(ctx, a) })
		after(time.Second)
		cfg.ID = "b"
		b := processor.New(w.hub, cfg)
		rb := w.run(b, func(ctx context.Context) error { return w.pull(ctx, b) })
		for range 60 {
			w.feedAll(time.Second, 1)
		}
		w.wantCounts(2, 2)
		ra.stop()
		after(time.Second)
		rb.stop()
		w.wantAll()
		w.wantSaved("3", 59)
		if len(w.errs) > 0 || w.owners() != "" {
			t.Errorf("errors %v, owners %s", w.errs, w.owners())
		}
	})
}

func TestEndingTheLoopOverBatchesReleasesThePartitionAndTheBatchIsNotDone(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg := w.config("a")
		cfg.MaxBatch = 2
		cfg.Checkpoints.Auto = true
		p := processor.New(w.hub, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.hub.SendN("0", 6)
		times := 0
		for part, err := range p.Partitions(ctx) {
			testkit.Must(t, err)
			times++
			for b, err := range part.Batches(ctx) {
				testkit.Must(t, err)
				if times == 1 && b.Events[0].Sequence == 2 {
					break
				}
				w.noteOnly(ctx, b)
				if b.Events[0].Sequence == 4 {
					cancel()
				}
			}
		}
		w.wantAll()
		testkit.Equal(t, times, 2, "given times")
		testkit.Equal(t, w.lease("0").Epoch, 2, "epoch")
	})
}

func TestThePullFormReportsALostLease(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, cut := w.faulty("a")
		p := processor.New(w.hub, cfg)
		w.run(p, func(ctx context.Context) error { return w.pull(ctx, p) })
		after(time.Second)
		cut.setDown(true)
		after(time.Minute)
		w.wantReported(processor.ErrLeaseLost)
		cut.setDown(false)
		w.feed(time.Minute, "0", 1)
		w.wantAll()
	})
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	bubble(t, 1, func(w *world) {
		for _, change := range []func(*processor.Config){
			func(c *processor.Config) { c.Renew = 20 * time.Second },
			func(c *processor.Config) { c.ID = "a/b" },
			func(c *processor.Config) { c.MinBatch = 200 },
			func(c *processor.Config) { c.Lease = -1 },
			func(c *processor.Config) { c.Store = nil }, // and the hub is no yard's
		} {
			cfg := w.config("a")
			change(&cfg)
			err := processor.New(w.hub, cfg).Run(context.Background(), w.note)
			if err == nil || !strings.Contains(err.Error(), "processor") {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
		p := processor.New(w.hub, w.config("a"))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		testkit.Check(t, p.Run(ctx, w.note))
		if p.Run(ctx, w.note) == nil {
			t.Error("it ran twice")
		}
	})
}

func TestIDsAreMadeUpWhereNoneIsGiven(t *testing.T) {
	h := &fakehub.Hub{}
	a, b := processor.New(h, processor.Config{}), processor.New(h, processor.Config{})
	if a.ID() == "" || a.ID() == b.ID() {
		t.Errorf("ids %q and %q", a.ID(), b.ID())
	}
}

// Instances come and go at any moment, and nothing is lost or hangs.
func TestAStormOfStartsAndStops(t *testing.T) {
	bubble(t, 8, func(w *world) {
		cfg := w.config("")
		cfg.Checkpoints = processor.Checkpoints{Auto: true, Events: 10}
		cfg.Strategy = processor.Greedy
		var last *running
		for i := range 60 {
			cfg.ID = ""
			r := w.start(cfg, w.noteOnly)
			w.feedAll(time.Duration(i*i%700)*time.Millisecond, 2)
			if last != nil {
				last.stop()
			}
			last = r
		}
		after(time.Minute)
		last.stop()
		w.wantAll()
		w.wantNothingLeft()
		if slices.ContainsFunc(w.errs, func(err error) bool { return !errors.Is(err, hub.ErrEvicted) }) {
			t.Errorf("errors %v", w.errs)
		}
	})
}
