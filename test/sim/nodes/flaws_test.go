package nodes

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/processor"
)

// Each flaw between the parts is found within some seeds, mostly the first, and by the rule that it breaks.
func TestTheSimulationFindsFlaws(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint64 // the first seed
		acts  []act
		flaw  func(*yard)
		finds string
	}{
		{"entries are written without a condition", 0, []act{crash, kill, weather},
			func(y *yard) { y.flawedConn = func(c entries.Conn) entries.Conn { return unconditional{c} } }, "follows that of"},
		{"what is in doubt is taken for stored", 1, []act{weather, noLeader},
			func(y *yard) {
				y.flawedStorage = func(s streams.Storage) streams.Storage { return &hopeful{Storage: s} }
			}, "to another"},
		{"checkpoints are saved without a fence", 5, []act{freeze, cutOff, crash},
			func(y *yard) { y.flawedStore = func(i *instance) processor.Store { return unfenced{store{i}} } }, "checkpoint"},
		{"receivers are not paused", 0, []act{freeze, cutOff},
			func(y *yard) { y.judge.reckless = true }, "at once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := c.first; seed < c.first+100; seed++ {
				if problems := tryFlaw(t, seed, c.acts, c.flaw); strings.Contains(problems, c.finds) {
					t.Logf("found by seed %d", seed)
					return
				} else if problems != "" {
					t.Logf("seed %d: %s", seed, problems)
				}
			}
			t.Errorf("no seed found that something %q", c.finds)
		})
	}
}

func tryFlaw(t *testing.T, seed uint64, acts []act, flaw func(*yard)) (problems string) {
	synctest.Test(t, func(t *testing.T) {
		p := planOf(seed, 5*time.Minute)
		p.acts, p.every, p.instances = acts, 15*time.Second, 3
		y := newYard(p, flaw)
		y.play()
		problems = strings.Join(y.judge.problems, "\n")
	})
	return problems
}

// unconditional writes whatever was there before.
type unconditional struct{ entries.Conn }

func (c unconditional) RequestMsgWithContext(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	plain := *msg
	plain.Header = nil
	return c.Conn.RequestMsgWithContext(ctx, &plain)
}

// hopeful takes what it has not heard of in time for stored behind the last that it has.
type hopeful struct {
	streams.Storage
	last atomic.Uint64
}

func (s *hopeful) Publish(stream, subject string, data []byte, done func(streams.Seq, error)) {
	s.Storage.Publish(stream, subject, data, func(seq streams.Seq, err error) {
		switch {
		case err == nil:
			s.last.Store(uint64(seq))
		case errors.Is(err, streams.ErrUncertain):
			seq, err = streams.Seq(s.last.Add(1)), nil
		}
		done(seq, err)
	})
}

// unfenced lets every owner save, also one of the past.
type unfenced struct{ store }

func (s unfenced) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	saved, err := s.store.Save(ctx, g, l, c)
	if err == nil {
		return saved, nil
	}
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) (processor.Checkpoint, error) {
		all, err := n.groups.Checkpoints(ctx, g)
		for _, there := range all {
			if there.Partition == c.Partition {
				c.Version = there.Version
			}
		}
		if err != nil {
			return c, err
		}
		return n.groups.Force(ctx, g, c)
	})
}
