package broker

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	// maxProducers is how many producers a partition remembers.
	maxProducers = 10_000
	// producerLife is for how long one is remembered that is not used.
	producerLife = 7 * 24 * time.Hour
)

// ledger is what is known of the producers of one partition: which epoch each is in and
// which of its numbers are stored.
//
// What was stored is in the log itself: each batch carries its producer, epoch and first
// number. Reading all of it at each start would take too long, and retention removes it;
// and that an epoch has begun is in the log only when it has stored something. So there
// is a snapshot in the meta store, which is true up to some number in the log, and behind
// that the log is read. It is written
//
//   - before the first producer of a partition begins, so that where there is none no
//     batch of a producer is in the log either;
//   - when an epoch begins, before its first batch, so that the lower ones stay fenced;
//   - now and then, by the broker's Run, so that there is little to read: when there is
//     something to tell, or the log has grown.
//
// The account in memory moves only when the engine has said what became of a batch.
// Where it could not say, the log is read again. When the batch is found there it is
// stored. When it is not, that proves nothing yet: it may still come to light, after a
// crash at the latest. But an engine settles what is in doubt before it stores anything
// behind it; so the batch is appended again, and when that is answered all is known.
//
// All of it holds because one node writes to a partition. The snapshot changes by
// compare-and-set all the same: what another has written there counts as much as what
// we know, and its epochs fence ours.
type ledger struct {
	broker    *Broker
	hub       *hub
	number    int
	partition eventlog.Partition
	limit     int

	// turn has room for the one who may begin an epoch, read the log and write the
	// snapshot; it takes mu for short moments within.
	turn chan struct{}
	// loaded, revision and saved are of the turn's holder: whether the snapshot and what
	// is behind it was read, the snapshot's revision, and up to where it is true. So are
	// savedBytes and savedChanges: how much the log held then, and which changes it has.
	loaded       bool
	revision     meta.Revision
	saved        eventlog.Sequence
	savedBytes   int64
	savedChanges uint64

	mu sync.Mutex
	// All below is guarded by mu.

	accounts map[int64]*account
	// changes counts all that a snapshot would have to tell.
	changes uint64
	// seen: every batch below this number that was stored by a producer is in the
	// accounts, but for flights that have not landed and those in doubt.
	seen eventlog.Sequence
}

func newLedger(b *Broker, h *hub, number int, p eventlog.Partition) *ledger {
	return &ledger{
		broker: b, hub: h, number: number, partition: p, limit: maxProducers,
		turn:     make(chan struct{}, 1),
		accounts: make(map[int64]*account),
	}
}

func (l *ledger) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *ledger) endTurn() { <-l.turn }

// begin begins an epoch of a producer, or goes on with it; see Broker.Producer.
func (l *ledger) begin(ctx context.Context, cfg ProducerConfig) (*Producer, error) {
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	if p := l.outranked(cfg); p != nil {
		return p, nil
	}
	a, release := l.halt(cfg.ID)
	defer release()
	if err := l.drain(ctx, a); err != nil {
		return nil, err
	}
	fresh, err := l.enter(a, cfg)
	if err != nil {
		return nil, fmt.Errorf("producer %d: %w", a.id, err)
	}
	if err := l.keep(ctx, a); err != nil {
		return nil, err
	}
	return l.producer(a, fresh, cfg), nil // another node's may have been faster
}

func (l *ledger) producer(a *account, r record, cfg ProducerConfig) *Producer {
	p := &Producer{ledger: l, account: a, epoch: r.epoch, last: r.last}
	if cfg.Last != nil {
		p.last = *cfg.Last
	}
	return p
}

// outranked gives a producer whose epoch is over, nil if it is not. Those in force are not
// held up for it.
func (l *ledger) outranked(cfg ProducerConfig) *Producer {
	if cfg.ID == nil || cfg.Epoch == nil || *cfg.Epoch < 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[*cfg.ID]
	if a == nil || *cfg.Epoch >= a.epoch {
		return nil
	}
	return l.producer(a, record{epoch: *cfg.Epoch, last: a.last}, cfg)
}

// halt stops a producer from sending anything more until it is released. One that is not
// known gets an account, which is not in the ledger yet.
func (l *ledger) halt(id *int64) (a *account, release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == nil {
		id = new(l.freeIDLocked())
	}
	if a = l.accounts[*id]; a == nil {
		return &account{id: *id}, func() {}
	}
	a.halted = make(chan struct{})
	return a, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(a.halted)
		a.halted = nil
	}
}

// maxID is beyond the ids that the broker chooses: a number of JavaScript holds no more.
const maxID = 1 << 53

// freeIDLocked chooses an id that nobody has.
func (l *ledger) freeIDLocked() int64 {
	for {
		if id := rand.Int64N(maxID); l.accounts[id] == nil {
			return id
		}
	}
}

// drain waits for what a halted producer has under way, and clears up how it ended.
func (l *ledger) drain(ctx context.Context, a *account) error {
	for {
		l.mu.Lock()
		air := a.air
		l.mu.Unlock()
		if air == nil {
			return l.settleDoubt(ctx, a)
		}
		if err := until(ctx, air.landed); err != nil {
			return err
		}
	}
}

// enter puts the rule of how an epoch begins into force.
func (l *ledger) enter(a *account, cfg ProducerConfig) (record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var present *record
	if l.accounts[a.id] == a {
		present = &a.record
	}
	fresh, err := begin(present, cfg)
	if err != nil {
		return record{}, err
	}
	if present == nil {
		l.addLocked(a)
		a.kept = fresh.epoch == 0 // as if it had never been here
	} else if fresh.epoch != a.epoch {
		a.kept = false
	}
	fresh.used = time.Now().Unix()
	a.record = fresh
	if !fresh.blank() {
		l.changes++
	}
	return fresh, nil
}

// keep sees to it that the epoch outlasts a restart.
func (l *ledger) keep(ctx context.Context, a *account) error {
	l.mu.Lock()
	kept := a.kept
	l.mu.Unlock()
	if kept {
		return nil
	}
	return l.save(ctx)
}

// addLocked makes room for an account.
func (l *ledger) addLocked(a *account) {
	if len(l.accounts) >= l.limit {
		l.forgetLocked()
	}
	l.accounts[a.id] = a
}

// forgetLocked drops some of those who have nothing under way: first such that have
// never stored anything nor fenced anyone, then those unused for longest. Several at a
// time, since it has to look at all.
func (l *ledger) forgetLocked() {
	var idle []*account
	for _, a := range l.accounts {
		if a.idle() {
			idle = append(idle, a)
		}
	}
	l.changes++
	slices.SortFunc(idle, func(x, y *account) int {
		return cmp.Or(cmp.Compare(x.worth(), y.worth()), cmp.Compare(x.used, y.used))
	})
	for _, a := range idle[:min(len(idle), 1+l.limit/16)] {
		delete(l.accounts, a.id)
	}
}

// forgetUnusedLocked drops those who did nothing for producerLife.
func (l *ledger) forgetUnusedLocked(now time.Time) {
	oldest := now.Add(-producerLife).Unix()
	for id, a := range l.accounts {
		if a.used < oldest && a.idle() {
			delete(l.accounts, id)
			l.changes++
		}
	}
}

// idle: nothing is under way.
func (a *account) idle() bool { return a.air == nil && a.doubt == nil && a.halted == nil }

// blank: it could as well not be known.
func (r record) blank() bool { return r.epoch == 0 && r.none }

func (r record) worth() int {
	if r.blank() {
		return 0
	}
	return 1
}
