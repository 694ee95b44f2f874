package circuit

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/processor/memory"
)

var (
	seeds = flag.Int("circuit.seeds", 16, "how many schedules are played")
	first = flag.Uint64("circuit.first", 0, "the first seed")
)

// F5, F7: members come, leave and die, functions fail and recover, the store refuses, loses answers
// and writes late, operators hold and resume, and on every seed the ledger's rules hold.
func TestSchedules(t *testing.T) {
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { play(t, seed) })
		})
	}
}

// schedule is one seed's: what can happen, and how long.
type schedule struct {
	policy breaker.Policy
	watch  bool // the store can be watched
	storms bool // the store has bad times
	lasts  time.Duration
}

func scheduleOf(dice *rand.Rand) schedule {
	s := schedule{
		policy: breaker.Policy{Failures: 3 + dice.IntN(15), Within: time.Duration(8+dice.IntN(12)) * time.Second},
		watch:  dice.IntN(2) == 0,
		storms: dice.IntN(3) > 0,
		lasts:  5 * time.Minute,
	}
	if dice.IntN(3) > 0 {
		s.policy.Probe = time.Duration(2+dice.IntN(10)) * time.Second
	}
	return s
}

// drama is a schedule that is played.
type drama struct {
	t      *testing.T
	plan   schedule
	seed   uint64
	ledger *ledger
	dice   *rand.Rand // the director's alone

	mu      sync.Mutex
	ill     bool // the function fails
	stormy  bool
	members map[string]*actor
	next    int
	running sync.WaitGroup
}

func play(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 7))
	s := &drama{t: t, plan: scheduleOf(dice), seed: seed, dice: dice, members: map[string]*actor{}}
	s.ledger = newLedger(s.plan, memory.New())
	for range 1 + dice.IntN(4) {
		s.join()
	}
	for end := time.Now().Add(s.plan.lasts); time.Now().Before(end); {
		s.act()
		time.Sleep(time.Duration(dice.Int64N(int64(4 * time.Second))))
		s.check()
	}
	s.calm()
	for id := range s.members {
		s.leave(id)
	}
	s.running.Wait()
	s.report()
}

func (s *drama) report() {
	l := s.ledger
	l.judge()
	s.t.Logf("seed %d (%+v): %d changes, %d openings, %d probes, %d failures, %d put away", s.seed, s.plan,
		len(l.writes), l.openings, len(l.passes), len(l.failures), len(l.away))
	for _, b := range l.broken {
		s.t.Error(b)
	}
	if len(l.broken) > 0 {
		for _, w := range l.writes {
			s.t.Logf("%v %s: %s term %d: %s", w.at.Sub(l.began), w.by, w.r.State, w.r.Term, w.r.Reason)
		}
		s.t.Errorf("to repeat: go test ./internal/functions/circuit -run TestSchedules -circuit.first=%d -circuit.seeds=1 -count=20", s.seed)
	}
}

// act is one thing that happens.
func (s *drama) act() {
	switch n := s.dice.IntN(20); {
	case n < 3:
		s.setIll(true)
	case n < 7:
		s.setIll(false)
	case n < 9 && s.plan.storms && !s.stormy:
		s.storm()
	case n < 12 && s.stormy:
		s.calm()
	case n < 13 && len(s.members) < 6:
		s.join()
	case n < 14 && len(s.members) > 1:
		s.leave(s.someone())
	case n < 15 && len(s.members) > 1:
		s.kill(s.someone())
	case n < 16:
		s.operate("ann", breaker.Held)
	case n < 18:
		s.operate("ann", breaker.Closed)
	}
	if len(s.members) == 0 {
		s.join()
	}
}

func (s *drama) setIll(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ill = is
}

func (s *drama) isIll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ill
}

func (s *drama) storm() {
	s.stormy = true
	s.ledger.setStorm(true)
}

func (s *drama) calm() {
	s.stormy = false
	s.ledger.setStorm(false)
}

// someone is chosen by the dice alone.
func (s *drama) someone() string {
	for n := s.dice.IntN(s.next); ; n = (n + 1) % s.next {
		if id := fmt.Sprint("m", n); s.members[id] != nil {
			return id
		}
	}
}

// operate is an operator's word, which is told again until the store has understood.
func (s *drama) operate(by string, to breaker.State) {
	store := s.ledger.view(by, s.seed^uint64(time.Now().UnixNano()))
	s.running.Go(func() {
		_, _ = Change(s.t.Context(), store, group, function, func(r breaker.Record) (breaker.Record, bool) {
			if to == breaker.Held {
				return breaker.Hold(r, fmt.Sprint("i", time.Now().UnixNano()), by, "let me look", time.Now())
			}
			return breaker.Resume(r, by, "mended", time.Now())
		})
	})
}

// actor is a member and its workers.
type actor struct {
	s      *drama
	id     string
	m      *Member
	store  *view
	joined time.Time
	stop   context.CancelFunc
	ended  chan struct{}
}

func (s *drama) join() {
	id := fmt.Sprint("m", s.next)
	s.next++
	store := s.ledger.view(id, s.seed*1000+uint64(s.next))
	ctx, stop := context.WithCancel(s.t.Context())
	a := &actor{s: s, id: id, store: store, joined: time.Now(), stop: stop, ended: make(chan struct{})}
	cfg := Config{Store: store, Group: group, Function: function, Instance: id, Policy: s.plan.policy, Log: quiet}
	if s.plan.watch {
		cfg.Store = watchedView{store}
	}
	a.m = New(cfg)
	s.members[id] = a
	s.ledger.alive(id, true)
	s.running.Go(func() { a.run(ctx) })
}

// leave ends a member in good order, kill without a word; either is heard of later.
func (s *drama) leave(id string) {
	a := s.members[id]
	delete(s.members, id)
	s.ledger.alive(id, false)
	a.stop()
	<-a.ended
}

func (s *drama) kill(id string) {
	s.members[id].store.kill()
	s.leave(id)
}

// run is a host's: the workers end before the circuit does.
func (a *actor) run(ctx context.Context) {
	defer close(a.ended)
	var workers sync.WaitGroup
	for n := range 3 {
		dice := rand.New(rand.NewPCG(a.s.seed, uint64(n)<<32+uint64(a.joined.UnixNano())))
		workers.Go(func() { a.work(ctx, dice) })
	}
	circuit, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.m.Run(circuit)
	}()
	workers.Wait()
	stop()
	<-ended
}

// work is a partition's: wait for the circuit, call, tell how it went.
func (a *actor) work(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		p, err := a.m.Wait(ctx, nil)
		if err != nil {
			return
		}
		a.s.ledger.passed(a.id, p)
		if p.Probe {
			a.try(ctx, dice, p)
			continue
		}
		if sleep.For(ctx, time.Duration(dice.Int64N(int64(time.Second))), nil) != nil {
			return
		}
		if a.s.isIll() || dice.IntN(50) == 0 {
			a.fail(ctx, dice)
		}
	}
}

// try is a probe: most end soon, some are given back, some outlast the member.
func (a *actor) try(ctx context.Context, dice *rand.Rand, p Pass) {
	err := sleep.For(ctx, time.Duration(dice.Int64N(int64(3*time.Second))), nil)
	if dice.IntN(20) == 0 {
		err = sleep.For(ctx, 5*time.Minute, nil)
	}
	if err != nil || dice.IntN(6) == 0 {
		a.s.ledger.returned(p.Term)
		a.m.Returned(p)
		return
	}
	ok := !a.s.isIll()
	a.s.ledger.probed(p.Term, ok)
	_ = a.m.Probed(ctx, p, ok, breaker.Sample{Error: "still no"})
}

// fail tells of failures: of attempts, or of events that are put away if they may.
func (a *actor) fail(ctx context.Context, dice *rand.Rand) {
	before, _ := a.m.Record()
	n := 1 + dice.IntN(3)
	began := time.Now()
	allowed, err := n, error(nil)
	if dice.IntN(4) == 0 {
		_, _ = a.m.Failed(ctx, n, breaker.Sample{At: began, Error: "no"})
	} else if allowed, _, err = a.m.MayPutAway(ctx, AnyTerm, n, breaker.Sample{At: began, Error: "no"}); err == nil && allowed > 0 {
		a.s.ledger.putAway(a.id, began, allowed)
	}
	after, _ := a.m.Record()
	a.s.ledger.failed(failure{by: a.id, at: time.Now(), began: began, n: n, sure: allowed, first: before.Term, last: after.Term})
}

// check: in good weather everybody knows what was stored a second ago.
func (s *drama) check() {
	l := s.ledger
	if l.stormyWithin(5 * time.Second) {
		return
	}
	now := time.Now()
	then := l.at(now.Add(-seenWithin))
	for id, a := range s.members {
		if r, _ := a.m.Record(); now.Sub(a.joined) > seenWithin && r.Term < then.Term {
			l.breaks("%v: %s knows term %d (%s), but for more than a second it was %d (%s)", now.Sub(l.began), id, r.Term, r.State, then.Term, then.State)
		}
	}
	l.checkOpening(now)
}
