package broker

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// maxProducers is how many producers a partition remembers.
	maxProducers = 10_000
	// producerLife is for how long an unused one is remembered.
	producerLife = 7 * 24 * time.Hour
	// maxID is beyond the ids that the broker chooses: a number of JavaScript holds no more.
	maxID = 1 << 53
)

// accounts are what a ledger knows of its producers, in memory. Its methods do no I/O.
type accounts struct {
	repeats prometheus.Counter
	limit   int

	mu sync.Mutex
	// All below is guarded by mu, and so are the accounts themselves.

	byID map[int64]*account
	// changes counts all that a snapshot would have to hold.
	changes uint64
	// seen: every batch below this number that was stored by a producer is in the
	// accounts, but for flights that have not landed and those in doubt.
	seen eventlog.Sequence
}

// account is one producer in a ledger. All of it is guarded by accounts.mu.
//
// A producer has one flight in the air at a time: a batch that the engine was given and
// has not answered for. What is submitted meanwhile gathers behind it and travels with
// the next, as one batch. So whatever happens to a flight, it is known what is stored
// before the next one starts: no batch is stored behind one that is not, which the engine
// does not promise for batches that are under way together.
type account struct {
	id int64
	record
	// kept: a restart would find the epoch again.
	kept bool
	// air is the flight under way, queue the one that gathers behind it. Nil: none.
	air, queue *flight
	// doubt is a flight of which nobody knows whether it was stored; nil: there is none.
	// Nothing else starts before that is cleared up.
	doubt *flight
	// halted is closed when an epoch has begun, or was refused; nil while none is
	// about to. Nothing starts meanwhile.
	halted chan struct{}
}

// idle: nothing is under way.
func (a *account) idle() bool { return a.air == nil && a.doubt == nil && a.halted == nil }

// Why a batch cannot be judged yet.
var (
	errDoubt     = errors.New("it is not known what is stored")
	errForgotten = errors.New("the producer was forgotten")
)

// submit judges a batch. It returns a flight that the caller has to start, or what has to end
// first; with neither of them the batch travels with a flight, or was stored before.
func (as *accounts) submit(who *Producer, p *Pending, first int32, events []eventlog.Event) (start *flight, wait <-chan struct{}, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[who.account.id]
	switch {
	case a == nil:
		return nil, nil, errForgotten
	case a.epoch != who.epoch:
		return nil, nil, fenced(who.epoch, a.epoch)
	case a.halted != nil:
		return nil, a.halted, nil
	case a.doubt != nil:
		return nil, nil, errDoubt
	}
	outlook := a.record // when all that is under way is stored
	for _, f := range []*flight{a.air, a.queue} {
		if f != nil {
			outlook = outlook.extend(f.first, f.count, f.parts)
		}
	}
	repeat, err := outlook.judge(first, p.count)
	switch {
	case err != nil:
		return nil, nil, err
	case repeat:
		as.repeatLocked(a, p, first)
		return nil, nil, nil
	case a.air == nil:
		a.air = as.newFlightLocked(a, first)
		a.air.join(p, copyEvents(events))
		return a.air, nil, nil
	case a.queue == nil:
		a.queue = as.newFlightLocked(a, first)
	case a.queue.bytes+p.bytes > eventlog.MaxBatchBytes:
		return nil, a.air.landed, nil
	}
	a.queue.join(p, copyEvents(events))
	return nil, nil, nil
}

// repeatLocked lets a repeat wait for the flight that its last event is with: what is
// before that is stored before it.
func (as *accounts) repeatLocked(a *account, p *Pending, first int32) {
	as.repeats.Add(float64(p.count))
	end := ahead(first, p.count-1)
	for _, f := range []*flight{a.air, a.queue} {
		if f == nil {
			continue
		}
		if at := distance(f.first, end); at < int64(f.count) {
			p.flight, p.offset = f, int(at)-p.count+1
			return
		}
	}
}

func (as *accounts) newFlightLocked(a *account, first int32) *flight {
	return &flight{account: a, epoch: a.epoch, first: first, floor: as.seen, landed: make(chan struct{})}
}

// land ends a flight that was stored and gives the next one, which the caller has to start.
func (as *accounts) land(f *flight, stored eventlog.Appended) (next *flight) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := f.account
	f.events, f.stored = nil, stored
	if f.epoch == a.epoch {
		a.record = a.extend(f.first, f.count, f.parts)
		a.used, a.kept = stored.Time.Unix(), true
	}
	as.changes++
	as.seen = max(as.seen, stored.First+eventlog.Sequence(f.count))
	if next = a.queue; next != nil {
		next.floor = as.seen
	}
	a.air, a.queue = next, nil
	close(f.landed)
	return next
}

// crash ends a flight that was not stored, or of which that is not known. Nothing that
// gathered behind it is stored.
func (as *accounts) crash(f *flight, err error, doubt bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := f.account
	f.err = err
	if doubt || f.again {
		a.doubt = f
	}
	if next := a.queue; next != nil {
		next.err = fmt.Errorf("%w: the numbers before were not stored", eventlog.ErrFenced)
		close(next.landed)
	}
	a.air, a.queue = nil, nil
	close(f.landed)
}

// inAir gives a flight of the account that has not landed, or of any account where a is nil;
// nil where there is none.
func (as *accounts) inAir(a *account) *flight {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a != nil {
		return a.air
	}
	for _, a := range as.byID {
		if a.air != nil {
			return a.air
		}
	}
	return nil
}

// doubtful lists the accounts that have a flight in doubt.
func (as *accounts) doubtful() (all []*account) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.byID {
		if a.doubt != nil {
			all = append(all, a)
		}
	}
	return all
}

// doubtOf gives the flight in doubt of an account; nil if there is none.
func (as *accounts) doubtOf(a *account) *flight {
	as.mu.Lock()
	defer as.mu.Unlock()
	return a.doubt
}

// resume ends the doubt where the log has answered it, and makes the flight that has to
// be sent off where it has not.
func (as *accounts) resume(a *account) *flight {
	as.mu.Lock()
	defer as.mu.Unlock()
	f := a.doubt
	a.doubt = nil
	switch {
	case a.epoch != f.epoch: // another node's has begun: it is for that one to say
		return nil
	case a.last == ahead(f.first, f.count-1):
		a.recent = record{}.extend(f.first, f.count, f.parts).recent // the log could not say
		return nil
	}
	a.air = &flight{
		account: a, epoch: f.epoch, first: f.first, count: f.count, bytes: f.bytes, parts: f.parts,
		events: f.events, floor: f.floor, again: true, landed: make(chan struct{}),
	}
	return a.air
}

// outranked gives the account of a producer that asks for an epoch which is over; nil if it does
// not. Those in force are not held up for it.
func (as *accounts) outranked(cfg ProducerConfig) (a *account, last int32) {
	if cfg.ID == nil || cfg.Epoch == nil || *cfg.Epoch < 0 {
		return nil, 0
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if a = as.byID[*cfg.ID]; a == nil || *cfg.Epoch >= a.epoch {
		return nil, 0
	}
	return a, a.last
}

// halt stops a producer from sending anything more until it is released. One that is not
// known gets an account, which is not in the ledger yet, and where id is nil an id that nobody has.
func (as *accounts) halt(id *int64) (a *account, release func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if id == nil {
		for id = new(rand.Int64N(maxID)); as.byID[*id] != nil; *id = rand.Int64N(maxID) {
		}
	}
	if a = as.byID[*id]; a == nil {
		return &account{id: *id}, func() {}
	}
	a.halted = make(chan struct{})
	return a, func() {
		as.mu.Lock()
		defer as.mu.Unlock()
		close(a.halted)
		a.halted = nil
	}
}

// enter puts the rule of how an epoch begins into force. kept: a restart would find it again.
func (as *accounts) enter(a *account, cfg ProducerConfig) (fresh record, kept bool, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	var present *record
	if as.byID[a.id] == a {
		present = &a.record
	}
	if fresh, err = begin(present, cfg); err != nil {
		return record{}, false, err
	}
	if present == nil {
		as.addLocked(a)
		a.kept = fresh.epoch == 0 // as if it had never been here
	} else if fresh.epoch != a.epoch {
		a.kept = false
	}
	fresh.used = time.Now().Unix()
	a.record = fresh
	if !fresh.blank() {
		as.changes++
	}
	return fresh, a.kept, nil
}

// remember takes a forgotten producer up again that somebody still holds: it is as it was. Where
// it has begun anew meanwhile, that account is the one.
func (as *accounts) remember(a *account) *account {
	as.mu.Lock()
	defer as.mu.Unlock()
	if present := as.byID[a.id]; present != nil {
		return present
	}
	a.used = time.Now().Unix()
	as.addLocked(a)
	as.changes++
	return a
}

// learn enters what the log says. A flight in the air is left alone: what is stored of
// it, it will say itself.
func (as *accounts) learn(run eventlog.Run) {
	if !run.Producer.Set {
		return
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if a := as.findOrAddLocked(run.Producer.ID); a.air == nil {
		as.changes++
		a.record = a.record.learn(run.Producer, len(run.Events), run.Time.Unix())
		a.kept = a.kept || a.epoch == run.Producer.Epoch
	}
}

func (as *accounts) findOrAddLocked(id int64) *account {
	a := as.byID[id]
	if a == nil {
		a = &account{id: id, record: record{epoch: -1}}
		as.addLocked(a)
	}
	return a
}

// addLocked adds an account. Where there are too many it first forgets some of those who have
// nothing under way: those that never stored anything nor fenced anyone, then those unused for
// longest. Several at a time, since it has to look at all.
func (as *accounts) addLocked(a *account) {
	if len(as.byID) >= as.limit {
		var idle []*account
		for _, a := range as.byID {
			if a.idle() {
				idle = append(idle, a)
			}
		}
		as.changes++
		slices.SortFunc(idle, func(x, y *account) int {
			return cmp.Or(cmp.Compare(x.worth(), y.worth()), cmp.Compare(x.used, y.used))
		})
		for _, a := range idle[:min(len(idle), 1+as.limit/16)] {
			delete(as.byID, a.id)
		}
	}
	as.byID[a.id] = a
}

// advance says that every batch of a producer below next is accounted for, and forgets those who
// did nothing for producerLife. It gives what floorLocked does then, and the number of changes.
func (as *accounts) advance(next eventlog.Sequence, now time.Time) (floor eventlog.Sequence, changes uint64) {
	as.mu.Lock()
	defer as.mu.Unlock()
	oldest := now.Add(-producerLife).Unix()
	for id, a := range as.byID {
		if a.used < oldest && a.idle() {
			delete(as.byID, id)
			as.changes++
		}
	}
	as.seen = max(as.seen, next)
	return as.floorLocked(), as.changes
}

// floorLocked is the number below which all that producers stored is in the accounts.
func (as *accounts) floorLocked() eventlog.Sequence {
	floor := as.seen
	for _, a := range as.byID {
		if a.air != nil {
			floor = min(floor, a.air.floor)
		}
		if a.doubt != nil {
			floor = min(floor, a.doubt.floor)
		}
	}
	return floor
}

// setSeen says up to where the log was read.
func (as *accounts) setSeen(seen eventlog.Sequence) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.seen = seen
}

// restore replaces all accounts by those of a snapshot.
func (as *accounts) restore(s snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	clear(as.byID)
	for id, r := range s.producers {
		as.byID[id] = &account{id: id, record: r, kept: true}
	}
	as.seen = s.upTo
}

// merge takes in what another has written: its epochs fence ours.
func (as *accounts) merge(s snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.seen = min(as.seen, s.upTo)
	for id, theirs := range s.producers {
		if a := as.findOrAddLocked(id); theirs.epoch > a.epoch {
			a.record, a.kept = theirs, true
		}
	}
}

// snapshot gives what is to be written, and the number of changes that it includes.
func (as *accounts) snapshot() (s snapshot, changes uint64) {
	as.mu.Lock()
	defer as.mu.Unlock()
	s = snapshot{upTo: as.floorLocked(), producers: make(map[int64]record, len(as.byID))}
	for id, a := range as.byID {
		if !a.blank() {
			s.producers[id] = a.record
		}
	}
	return s, as.changes
}

// written notes that a snapshot is durable. Only the holder of the ledger's turn begins epochs
// and forgets producers: they are as they were.
func (as *accounts) written(s snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for id := range s.producers {
		as.byID[id].kept = true
	}
}
