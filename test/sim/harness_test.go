package sim

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// small is a short plan with everything in it, quick to simulate.
func small(seed uint64) plan {
	p := planOf(seed)
	p.lasts, p.partitions, p.instances, p.most = 20*time.Minute, 16, 4, 6
	p.every, p.publish, p.maxBatch, p.failures = 25*time.Second, 200*time.Millisecond, 10, 0.02
	p.greedy, p.watch = true, false
	// A toy has no watchdog for readers that hear nothing.
	p.acts = slices.DeleteFunc(slices.Clone(p.acts), func(a act) bool { return a == static })
	return p
}

// A toy processor without flaws keeps the rules: what the harness finds is no fault of its own.
func TestTheHarnessFindsNothingWrongWithASoundToy(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, small(seed))
			w.body = sound.body
			report(t, w.plan, w.play())
			if w.ledger.calls == 0 || w.ledger.moves < 16 {
				t.Errorf("seed %d: only %d calls and %d acquisitions: nothing was tried", seed, w.ledger.calls, w.ledger.moves)
			}
		})
	}
}

// Each flaw of a toy, and of a store, is found within a few seeds.
func TestTheHarnessFindsFlaws(t *testing.T) {
	for _, c := range []struct {
		name  string
		flaw  flaw
		store func(processor.Store) processor.Store
		acts  []act // nil: those of the seed
		rule  rule
	}{
		{name: "acquires without raising the epoch", flaw: sameEpoch, rule: ruleEpoch},
		{name: "goes on when it cannot prove its lease", flaw: trustsItself, rule: ruleLate},
		{name: "begins one event too late", flaw: skipsOne, rule: ruleGap},
		{name: "saves before the work", flaw: savesFirst, rule: ruleAhead},
		{name: "does not save before it gives up", flaw: savesSeldom, rule: ruleRepeat},
		{name: "goes on past a failed batch", flaw: givesUpFailed, rule: ruleGap},
		{name: "makes two calls at once", flaw: callsTwice, rule: ruleOverlap},
		{name: "takes without asking", flaw: takes, rule: ruleTaken},
		{name: "does not give up what it is asked for", flaw: keeps, rule: ruleEven},
		{name: "stops without releasing", flaw: vanishes, rule: ruleStop},
		{name: "a store that does not fence", store: func(s processor.Store) processor.Store { return unfenced{s} },
			acts: []act{storm, crash, comeBack, join}, rule: ruleFence},
		{name: "a store that lets everyone claim", store: func(s processor.Store) processor.Store { return unguarded{s} }, rule: ruleTaken},
		{name: "a store that forgets what it saved", store: func(s processor.Store) processor.Store { return forgetful{s} }, rule: ruleRepeat},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				if found := tryFlaw(t, seed, c.flaw, c.store, c.acts); found[c.rule] > 0 {
					return
				} else if len(found) > 0 {
					t.Logf("seed %d: %v", seed, found)
				}
			}
			t.Errorf("no seed found that this was broken: %s", c.rule)
		})
	}
}

func tryFlaw(t *testing.T, seed uint64, f flaw, broken func(processor.Store) processor.Store, acts []act) (found map[rule]int) {
	synctest.Test(t, func(t *testing.T) {
		p := small(seed)
		if acts != nil {
			p.acts, p.every = acts, 8*time.Second
		}
		w := newWorld(t, p)
		w.body = f.body
		if broken != nil {
			w.store = broken(w.store)
		}
		w.play()
		found = w.ledger.found
	})
	return found
}

// unfenced lets every owner save, also one of the past.
type unfenced struct{ processor.Store }

func (s unfenced) Save(ctx context.Context, g processor.Group, lease processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	saved, err := s.Store.Save(ctx, g, lease, c)
	if err == nil {
		return saved, nil
	}
	all, err := s.Checkpoints(ctx, g)
	for _, there := range all {
		if there.Partition == c.Partition {
			c.Version = there.Version
		}
	}
	if err != nil {
		return c, err
	}
	return s.Force(ctx, g, c)
}

// unguarded writes whatever version a lease has.
type unguarded struct{ processor.Store }

func (s unguarded) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	there, err := s.Leases(ctx, g)
	if err != nil {
		return nil, err
	}
	for i := range leases {
		for _, l := range there {
			if l.Partition != leases[i].Partition {
				continue
			}
			if leases[i].Version = l.Version; l.Owner != leases[i].Owner {
				leases[i].Epoch = l.Epoch + 1
			}
		}
	}
	return s.Store.Claim(ctx, g, leases)
}

// forgetful gives a new owner no checkpoint.
type forgetful struct{ processor.Store }

func (s forgetful) Begin(ctx context.Context, g processor.Group, lease processor.Lease) (processor.Checkpoint, error) {
	c, err := s.Store.Begin(ctx, g, lease)
	c.Sequence, c.Offset = -1, ""
	return c, err
}
