package disk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestStorm has writers, readers, retention and failing storage at once, and then Close:
// what was acknowledged is there, in order. // H2, H3, H4
func TestStorm(t *testing.T) {
	for _, tt := range []struct {
		name       string
		mode       disk.SyncMode
		journaling bool
	}{
		{"always", disk.Always, false},
		{"always, by way of the journal", disk.Always, true},
		{"interval", disk.Interval, false},
		{"os", disk.OS, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(4) {
				mem := vfs.NewMem()
				s := &storm{t: t, faulty: vfs.NewFaulty(mem), acked: map[eventlog.Sequence]string{}}
				cfg := config(tt.mode, s.faulty)
				cfg.SegmentBytes = 8 << 10
				if tt.journaling {
					cfg = disk.Journaling(cfg, 16<<10, false)
				}
				s.blow(cfg, seed)
				after := mem.CrashProcess()
				if tt.mode == disk.Always {
					after = after.CutPower(newRand(seed))
				}
				s.check(config(tt.mode, after))
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// storm is one run.
type storm struct {
	t      *testing.T
	faulty *vfs.Faulty
	p      eventlog.Partition

	mu    sync.Mutex
	acked map[eventlog.Sequence]string // guarded by mu
	tries atomic.Int64
}

// stormTries is how many appends are tried before the engine is closed.
const stormTries = 1000

// blow lets the storm rage until enough was tried, and closes the engine under it.
func (s *storm) blow(cfg disk.Config, seed uint64) {
	e := mustOpen(s.t, cfg)
	s.p = mustPartition(s.t, e, eventlog.Retention{Bytes: 256 << 10})
	s.failNowAndThen(seed)
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	enough := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		testkit.Check(s.t, e.Run(ctx))
	})
	for w := range 6 {
		wg.Go(func() { s.write(w, enough) })
	}
	for _, at := range []eventlog.Position{
		eventlog.Earliest(), eventlog.Latest(), eventlog.At(10), eventlog.Since(time.Now().Add(20 * time.Millisecond)),
	} {
		wg.Go(func() { s.read(at) })
	}
	<-enough
	testkit.Check(s.t, e.Close())
	stop()
	wg.Wait()
}

// failNowAndThen makes a sixtieth of all writes and syncs fail, by seed as a full or as an
// ill disk.
func (s *storm) failNowAndThen(seed uint64) {
	var turn atomic.Uint64
	turn.Store(seed * 1000)
	failure := []error{syscall.ENOSPC, syscall.EIO}[seed%2]
	s.faulty.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpSync && op.Kind != vfs.OpWrite {
			return nil
		}
		if rnd := rand.New(rand.NewPCG(turn.Add(1), 7)); rnd.IntN(60) == 0 {
			return failure
		}
		return nil
	})
}

// write appends until the engine is closed. Each writer's events keep their order.
func (s *storm) write(w int, enough chan struct{}) {
	last := eventlog.NoSequence
	for i := 0; ; i++ {
		body := fmt.Sprintf("%d/%d %0300d", w, i, i)
		done, err := eventlog.Append(s.t.Context(), s.p, text(body))
		if s.tries.Add(1) == stormTries {
			close(enough)
		}
		if errors.Is(err, eventlog.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		if other, ok := s.acked[done.First]; ok || done.First <= last {
			s.t.Errorf("%.10q got number %d after %d; it is also that of %.10q", body, done.First, last, other)
		}
		s.acked[done.First] = body
		s.mu.Unlock()
		last = done.First
	}
}

// read reads from one kind of place after another until the engine is closed.
func (s *storm) read(at eventlog.Position) {
	for {
		c, err := s.p.Cursor(s.t.Context(), at)
		var ahead *eventlog.PositionError
		switch {
		case errors.As(err, &ahead):
			continue
		case errors.Is(err, eventlog.ErrClosed):
			return
		case err != nil:
			s.t.Errorf("a cursor at %v: %v", at, err)
			return
		}
		for range 50 {
			run, err := c.Next(s.t.Context())
			if errors.Is(err, eventlog.ErrClosed) {
				break
			}
			if err != nil || len(run.Events) == 0 {
				s.t.Errorf("reading from %v: %d events, %v", at, len(run.Events), err)
				break
			}
		}
		c.Close()
	}
}

// check wants all that was acknowledged and is not too old.
func (s *storm) check(cfg disk.Config) {
	p := mustPartition(s.t, mustOpen(s.t, cfg), eventlog.Retention{})
	b, err := p.Bounds(s.t.Context())
	testkit.Must(s.t, err)
	got, err := readFrom(s.t, p, eventlog.Earliest())
	testkit.Must(s.t, err)
	for n, body := range s.acked {
		if n >= b.First && (int(n-b.First) >= len(got) || got[n-b.First] != body) {
			s.t.Errorf("event %d was acknowledged as %.10q and is gone", n, body)
		}
	}
}
