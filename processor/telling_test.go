package processor_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// logged is a configuration whose errors are logged, and the log.
func (w *world) logged(id string, level slog.Level) (processor.Config, *testkit.Buffer) {
	book := &testkit.Buffer{}
	cfg := w.config(id)
	cfg.OnError, cfg.Log = nil, slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: level}))
	return cfg, book
}

// P9
func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, log := w.logged("a", slog.LevelWarn)
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			if b.Attempt == 1 {
				panic("on purpose")
			}
			return w.note(ctx, b)
		})
		w.feed(time.Second, "0", 1)
		a.stop()
		for _, want := range []string{"panicked at processor/telling_test.go:", "stack=", "TestAPanicIsLoggedWithItsStack"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %q in the log: %s", want, log)
			}
		}
	})
}

// P11
func TestANormalStopOfThePullFormLogsNoWarning(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 2, func(w *world) {
			cfg, log := w.logged("a", slog.LevelWarn)
			cfg.Lanes, cfg.MaxBatch = lanes, 1
			p := processor.New(w.hub, cfg)
			a := w.run(p, func(ctx context.Context) error { return w.pullSlowly(ctx, p) })
			for range 10 {
				w.feed(time.Second, "0", 2)
			}
			a.stop()
			testkit.Equal(t, log.String(), "", "logged: %s", log)
		})
	}
}

// P9: partitions that come and go are for who looks for an error: 64 shards move each time a node does.
func TestPartitionsThatMoveAreLoggedForDebuggingOnly(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		bubble(t, 2, func(w *world) {
			cfg, log := w.logged("a", level)
			a := w.start(cfg, w.note)
			w.feed(time.Second, "0", 1)
			a.stop()
			for _, line := range []string{"a partition is ours", "a partition is given up"} {
				testkit.Equal(t, strings.Contains(log.String(), line), want, "%q at level %v: %s", line, level, log)
			}
		})
	}
}

// P10
func TestAMoveByAnOperatorIsReportedOnce(t *testing.T) {
	bubble(t, 1, func(w *world) {
		a := w.start(w.config("a"), w.note)
		w.feed(time.Second, "0", 5)
		w.force("0", 1)
		after(time.Minute)
		a.stop()
		if len(w.errs) != 1 || w.errs[0].Error() != "partition 0: start again: the checkpoint was moved by an operator" {
			t.Errorf("told %v", w.errs)
		}
	})
}

// P6
func TestAStartBeyondTheEndIsNotCalledACheckpoint(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.hub.SendN("0", 2)
		cfg := w.config("a")
		cfg.Start = func(string) hub.Position { return hub.After(100) }
		w.start(cfg, w.note)
		after(time.Minute)
		w.wantAll()
		w.wantReported(processor.ErrBadStart)
		if w.reported(processor.ErrBadCheckpoint) {
			t.Errorf("told %v", w.errs)
		}
	})
}

// P1, P2: who starts an instance after a crash learns why nothing happens yet, once.
func TestAnInstanceThatWaitsSaysForWhat(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.crash("a")
		cfg, log := w.logged("b", slog.LevelInfo)
		b := w.start(cfg, w.note)
		after(time.Minute)
		b.stop()
		if n := strings.Count(log.String(), "others hold leases"); n != 1 || !strings.Contains(log.String(), "leases=2 run_out_within=30s") {
			t.Errorf("said %d times: %s", n, log)
		}
	})
	bubble(t, 2, func(w *world) {
		w.crash("a")
		cfg, log := w.logged("a", slog.LevelInfo)
		again := w.start(cfg, w.note)
		after(time.Minute)
		again.stop()
		if !strings.Contains(log.String(), "waiting to see whether it lives") || !strings.Contains(log.String(), "unchanged_for=15s") ||
			strings.Contains(log.String(), "others hold leases") {
			t.Errorf("said: %s", log)
		}
	})
}

// crash leaves behind what an instance that died does.
func (w *world) crash(id string) {
	cfg, cut := w.faulty(id)
	dead := w.start(cfg, w.note)
	after(time.Second)
	cut.setDown(true)
	dead.cancel()
	<-dead.done
}

// P11: a store that is down at the end is told of, as ever, and no error of the run.
func TestALeaseThatCannotBeReleasedIsReported(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg, cut := w.faulty("a")
		a := w.start(cfg, w.note)
		after(time.Second)
		cut.setDown(true)
		a.stop()
		w.wantReported(errDown)
	})
}

// P4, P5: an event that cannot be decoded is told of and passed, and nothing else is; a partition
// that ends in one is not taken for stalled.
func TestAnUnreadableEventIsReportedAndPassed(t *testing.T) {
	for _, lanes := range []int{0, 2} {
		bubble(t, 1, func(w *world) {
			cfg := w.config("a")
			cfg.Lanes, cfg.MinBatch = lanes, 3
			w.hub.Garble("0", 0, 3, 4, 9)
			w.hub.SendN("0", 10)
			w.start(cfg, w.note)
			after(time.Minute)
			w.wantInAnyOrder("0", 1, 2, 5, 6, 7, 8)
			after(20 * time.Minute)
			if n := len(w.errs); n != 4 || !strings.Contains(w.errs[0].Error(), "sequence number 0") || len(w.hub.Opened()) != 1 {
				t.Errorf("%d errors %v, %d readers opened", n, w.errs, len(w.hub.Opened()))
			}
			w.feed(10*time.Second, "0", 1)
			w.wantSaved("0", 10)
		})
	}
}
