package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eventyard/eventyard/processor"
)

var (
	errDown = errors.New("the store cannot be reached")
	errLost = errors.New("connection lost before the answer came")
)

// store is the group's store as one run of an instance reaches it: behind its gate, through the
// weather, and with the ledger told of every write at the moment it is made.
type store struct {
	world *world
	run   *run

	mu    sync.Mutex
	calls map[string]int // guarded by mu
}

// draw gives the chances of one call.
func (s *store) draw(op string) *dice {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	return s.run.dice.of(op, s.calls[op])
}

// ask makes one call: there, done, and back. In each part it may be too late.
func ask[T any](ctx context.Context, s *store, op string, write bool, do func() (T, error)) (T, error) {
	var none T
	if err := s.run.gate.pass(); err != nil {
		return none, err
	}
	d, sky := s.draw(op), s.sky()
	if sky == down {
		return none, s.fail(ctx, d)
	}
	if err := s.run.gate.wait(ctx, s.latency(d, sky)); err != nil {
		if write && d.chance(0.7) {
			s.world.later(d, func() { apply(s, do) })
		}
		return none, err
	}
	v, err := apply(s, do)
	if write && sky == lossy && d.chance(0.3) {
		s.run.disturb()
		s.run.gate.wait(ctx, d.between(time.Millisecond, 12*time.Second))
		return none, errLost
	}
	if late := s.run.gate.wait(ctx, s.latency(d, sky)); late != nil {
		return none, late
	}
	if gone := s.run.gate.pass(); gone != nil {
		return none, gone
	}
	return v, err
}

// apply lets the store and the ledger see one call at a time, in the same order.
func apply[T any](s *store, do func() (T, error)) (T, error) {
	s.world.applying.Lock()
	defer s.world.applying.Unlock()
	return do()
}

func (s *store) sky() sky {
	if s.run.cut.Load() {
		return down
	}
	return s.world.weather.now()
}

// fail answers at once or keeps the caller waiting.
func (s *store) fail(ctx context.Context, d *dice) error {
	s.run.disturb()
	wait := d.between(time.Millisecond, 5*time.Millisecond)
	if d.chance(0.3) {
		wait = d.between(time.Second, time.Minute)
	}
	if err := s.run.gate.wait(ctx, wait); err != nil {
		return err
	}
	s.run.disturb()
	return errDown
}

// latency is never nothing: what takes no time would happen at the same instant.
func (s *store) latency(d *dice, sky sky) time.Duration {
	if sky == slow || sky == lossy && d.chance(0.1) {
		s.run.disturb()
		return d.between(100*time.Millisecond, 9*time.Second)
	}
	return d.between(time.Millisecond, 4*time.Millisecond)
}

func (s *store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	return ask(ctx, s, "leases", false, func() ([]processor.Lease, error) {
		leases, err := s.world.store.Leases(context.Background(), g)
		s.skew(leases)
		return leases, err
	})
}

// skew shows the times of a clock that jumps.
func (s *store) skew(leases []processor.Lease) {
	for i := range leases {
		leases[i].Acquired = s.world.wallClock(leases[i].Acquired)
		leases[i].Renewed = s.world.wallClock(leases[i].Renewed)
	}
}

func (s *store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	start := time.Now()
	leases = append([]processor.Lease(nil), leases...)
	written, err := ask(ctx, s, "claim", true, func() ([]processor.Lease, error) { return s.claim(g, leases) })
	s.world.ledger.proved(s.run, start, written)
	s.skew(written)
	return written, err
}

// claim is sometimes cut off in the middle.
func (s *store) claim(g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	d, asked := s.draw("cut claim"), len(leases)
	if s.sky() == lossy && d.chance(0.2) {
		s.run.disturb()
		leases = leases[:d.below(asked+1)]
	}
	written, err := s.world.store.Claim(context.Background(), g, leases)
	s.world.ledger.claimed(s.run, written)
	if len(leases) < asked && err == nil {
		err = errLost
	}
	return written, err
}

func (s *store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	return ask(ctx, s, "checkpoints", false, func() ([]processor.Checkpoint, error) {
		return s.world.store.Checkpoints(context.Background(), g)
	})
}

func (s *store) Begin(ctx context.Context, g processor.Group, lease processor.Lease) (processor.Checkpoint, error) {
	return ask(ctx, s, "begin "+lease.Partition, true, func() (processor.Checkpoint, error) {
		c, err := s.world.store.Begin(context.Background(), g, lease)
		if err == nil {
			s.world.ledger.begun(s.run, lease, c)
		}
		return c, err
	})
}

func (s *store) Save(ctx context.Context, g processor.Group, lease processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	return ask(ctx, s, "save "+lease.Partition, true, func() (processor.Checkpoint, error) {
		saved, err := s.world.store.Save(context.Background(), g, lease, c)
		if err == nil {
			s.world.ledger.saved(s.run, lease, saved)
		}
		return saved, err
	})
}

func (s *store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	return c, errors.New("only operators force")
}

func (s *store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return ask(ctx, s, "entries "+prefix, false, func() ([]processor.Entry, error) {
		return s.world.store.Entries(context.Background(), g, prefix)
	})
}

func (s *store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	return ask(ctx, s, "put "+f.Key, true, func() (processor.Entry, error) {
		return s.world.store.Put(context.Background(), g, f)
	})
}

func (s *store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	_, err := ask(ctx, s, "remove "+f.Key, true, func() (struct{}, error) {
		return struct{}{}, s.world.store.Remove(context.Background(), g, f)
	})
	return err
}

// watched is a store that tells of changes.
type watched struct{ *store }

// Watch ends with an error when the store goes down, and holds its tongue during a pause.
func (s watched) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if err := s.run.gate.pass(); err != nil {
		return err
	}
	d := s.draw("watch")
	if s.sky() == down {
		return s.fail(ctx, d)
	}
	source, ok := s.world.store.(processor.Watcher)
	if !ok {
		return errors.New("the store cannot be watched")
	}
	ctx, stop := context.WithCancel(ctx)
	reported, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- source.Watch(ctx, g, ready, reported) }()
	err := s.pass(ctx, reported, changed)
	stop()
	<-ended
	return err
}

// pass hands on what is told.
func (s watched) pass(ctx context.Context, reported <-chan struct{}, changed chan<- struct{}) error {
	for {
		select {
		case <-reported:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.run.gate.dead:
			return errDead
		}
		if err := s.run.gate.wait(ctx, s.draw("tell").between(time.Millisecond, 4*time.Millisecond)); err != nil {
			return err
		}
		if err := s.run.gate.pass(); err != nil {
			return err
		}
		if s.sky() == down {
			return errDown
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
