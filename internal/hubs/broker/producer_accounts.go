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
	// producerRest is how long one has done nothing until its node may leave it to others.
	producerRest = 10 * time.Minute
	// maxID is beyond the ids that the broker chooses: a number of JavaScript holds no more.
	maxID = 1 << 53
)

// accounts are what a ledger knows of its producers, in memory. Its methods do no I/O.
type accounts struct {
	repeats prometheus.Counter
	limit   int
	// sole: only this process appends to the partition.
	sole bool

	mu sync.Mutex
	// All below is guarded by mu, and so are the accounts themselves.

	byID map[int64]*account
	// changes counts all that a snapshot would have to hold.
	changes uint64
	// seen: every batch below this number that was stored by a producer is in the
	// accounts, but for flights that have not landed and those in doubt. It moves by reading, and
	// by what is stored here; what others store in between would else be taken for known.
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
	// record has epoch unknown before anything is known of the producer.
	record
	// kept: a restart would find the epoch again. rival: it turned out that another node has begun the
	// epoch, too, before it was kept.
	kept, rival bool
	// claim is what batches go with. claimed: as far as anyone here knows it holds, so that nobody
	// else stores anything for the producer, and the record is all there is.
	claim   eventlog.Claim
	claimed bool
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
	errUnclaimed = errors.New("others may have stored something for the producer")
)

// submit judges a batch. It returns a flight that the caller has to start, or what has to end
// first; with neither of them the batch travels with a flight, or was stored before. sure: the
// producer was claimed after the batch was sent.
func (as *accounts) submit(who *Producer, p *Pending, first int32, events []eventlog.Event, sure bool) (start *flight, wait <-chan struct{}, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[who.account.id]
	switch {
	case a == nil:
		return nil, nil, errForgotten
	case a.epoch != who.epoch && a.epoch != unknown:
		return nil, nil, fenced(who.epoch, a.epoch)
	case a.halted != nil:
		return nil, a.halted, nil
	case a.doubt != nil:
		return nil, nil, errDoubt
	case !a.claimed:
		return nil, nil, errUnclaimed
	}
	outlook := a.record // when all that is under way is stored
	for _, f := range []*flight{a.air, a.queue} {
		if f != nil {
			outlook = outlook.extend(f.first, f.count, f.parts)
		}
	}
	repeat, err := outlook.judge(first, p.count)
	switch {
	case err != nil && !sure && a.air != nil:
		return nil, a.air.landed, nil
	case err != nil && !sure: // its numbers may follow what was stored by way of another node
		a.claimed = false
		return nil, nil, errUnclaimed
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
	p.repeat = true
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
	return &flight{account: a, epoch: a.epoch, claim: a.claim, first: first, floor: as.seen, landed: make(chan struct{})}
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
	if as.sole || stored.First == as.seen {
		as.seen = max(as.seen, stored.First+eventlog.Sequence(f.count))
	}
	if next = a.queue; next != nil {
		next.floor = as.seen
	}
	a.air, a.queue = next, nil
	close(f.landed)
	return next
}

// crash ends a flight that was not stored, or of which that is not known. Nothing that
// gathered behind it is stored. lost: the claim may be another's by now.
func (as *accounts) crash(f *flight, err error, doubt, lost bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := f.account
	f.err = err
	if !as.sole {
		// What another node stored may have been read here meanwhile, and left alone because of the
		// flight; see learn.
		as.seen = min(as.seen, f.floor)
		a.claimed = a.claimed && !lost
	}
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
	switch end := ahead(f.first, f.count-1); {
	case a.epoch != f.epoch: // another node's has begun: it is for that one to say
		return nil
	case a.last == end && !a.none:
		a.recent = record{}.extend(f.first, f.count, f.parts).recent // the log could not say
		return nil
	case f.first != ahead(a.last, 1): // its sender went on by way of another node
		return nil
	}
	a.air = &flight{
		account: a, epoch: f.epoch, claim: a.claim, first: f.first, count: f.count, bytes: f.bytes, parts: f.parts,
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

// halt stops a producer from sending anything more until it is released. One that is not known gets
// an account, which goes again unless something is known by then, and where id is nil an id that
// nobody has.
func (as *accounts) halt(id *int64) (a *account, release func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if id == nil {
		for id = new(rand.Int64N(maxID)); as.byID[*id] != nil; *id = rand.Int64N(maxID) {
		}
	}
	a = as.findOrAddLocked(*id)
	a.halted = make(chan struct{})
	return a, func() {
		as.mu.Lock()
		defer as.mu.Unlock()
		close(a.halted)
		a.halted = nil
		if a.epoch == unknown {
			delete(as.byID, a.id)
		}
	}
}

// enter puts the rule of how an epoch begins into force. kept: a restart would find it again.
func (as *accounts) enter(a *account, cfg ProducerConfig) (fresh record, kept bool, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	var present *record
	if a.epoch != unknown {
		present = &a.record
	}
	if fresh, err = begin(present, cfg); err != nil {
		return record{}, false, err
	}
	a.rival = false
	if present == nil {
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
	a.used, a.claimed = time.Now().Unix(), false
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
		a.record = a.record.learn(run.Producer, run.Len(), run.Time.Unix())
		a.kept = a.kept || a.epoch == run.Producer.Epoch
	}
}

func (as *accounts) findOrAddLocked(id int64) *account {
	a := as.byID[id]
	if a == nil {
		a = &account{id: id, record: record{epoch: unknown}}
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

// clearUnused forgets all accounts, unless one is in use, or was since then.
func (as *accounts) clearUnused(since time.Time) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.byID {
		if !a.idle() || a.claimed && a.used > since.Unix() {
			return false
		}
	}
	clear(as.byID)
	return true
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

// setSeen says up to where the log was read, where nothing else is known.
func (as *accounts) setSeen(seen eventlog.Sequence) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.seen = seen
}

// saw says that the log was read from seen or before up to a number.
func (as *accounts) saw(next eventlog.Sequence) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.seen = max(as.seen, next)
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

// merge takes in what another has written: its epochs fence ours, and in the same epoch it may know
// of more, which retention has removed from the log by now.
func (as *accounts) merge(s snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for id, theirs := range s.producers {
		a := as.findOrAddLocked(id)
		same := theirs.epoch == a.epoch
		if same && !a.kept {
			a.rival, a.kept = true, true
		}
		if theirs.epoch > a.epoch || same && a.air == nil && a.doubt == nil && theirs.beyond(a.record) {
			a.record, a.kept = theirs, true
			as.seen = min(as.seen, s.upTo)
		}
	}
}

// snapshot gives what is to be written, and the number of changes that it includes.
func (as *accounts) snapshot() (s snapshot, changes uint64) {
	as.mu.Lock()
	defer as.mu.Unlock()
	s = snapshot{upTo: as.floorLocked(), producers: make(map[int64]record, len(as.byID))}
	for id, a := range as.byID {
		if !a.blank() && a.epoch != unknown {
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
