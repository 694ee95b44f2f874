package broker

import (
	"cmp"
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
	// census counts them with those of other partitions; nil: nobody does, any more.
	census *census
	// changes counts all that a snapshot would have to hold.
	changes uint64
	// seen: every batch below this number that was stored by a producer is in the
	// accounts, but for flights that have not landed and those in doubt. It moves by reading, and
	// by what is stored here; what others store in between would else be taken for known.
	seen eventlog.Sequence
	// owed are frames of producers that have not begun, by their ids: they were refused and will come
	// again. Those behind them must not pass for the first.
	owed map[int64]eventlog.Producer
}

// account is one producer in a ledger. All of it is guarded by accounts.mu.
//
// A producer has one flight in the air at a time: what the engine was given at once and
// has not answered for. What is submitted meanwhile gathers behind it and travels with
// the next: events as one batch, frames as the batches they are, of which the engine stores
// a prefix. So whatever happens to a flight, it is known what is stored before the next one
// starts: no batch is stored behind one that is not, which the engine does not promise for
// batches that are submitted one by one.
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
	// verified: its transaction goes on, as far as anyone here knows. marks counts the control frames that ended one.
	verified bool
	marks    uint64
	// owner is the account that has begun the present epoch; empty: none, or it is not known since a start.
	owner string
	// halted is closed when an epoch has begun, or was refused; nil while none is
	// about to. Nothing starts meanwhile.
	halted chan struct{}
}

// idle: nothing is under way.
func (a *account) idle() bool { return a.air == nil && a.doubt == nil && a.halted == nil }

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
		if a.epoch == unknown && as.byID[a.id] == a {
			as.census.drop(as.byID, a)
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
	if cfg.frames {
		if err := as.settleLocked(a, cfg); err != nil {
			return record{}, false, err
		}
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
// it has begun anew meanwhile, that account is the one. Held is nil where nobody does: then it may
// be gone.
func (as *accounts) remember(id int64, held *account) *account {
	as.mu.Lock()
	defer as.mu.Unlock()
	if present := as.byID[id]; present != nil || held == nil {
		return present
	}
	held.used, held.claimed = time.Now().Unix(), false
	as.addLocked(held)
	as.changes++
	return held
}

// learn enters what the log says. A flight in the air is left alone: what is stored of
// it, it will say itself.
func (as *accounts) learn(run eventlog.Run) {
	if !run.Producer.Set {
		return
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.findOrAddLocked(run.Producer.ID)
	if run.Form == eventlog.FormControl {
		as.changes++
		a.markLocked(run.Producer)
		return
	}
	if a.air == nil {
		as.changes++
		a.record = a.record.learn(run.Producer, run.Len(), partsOf(run), run.Time.Unix())
		a.kept = a.kept || a.epoch == run.Producer.Epoch
	}
}

// partsOf is what the log says of how a run was sent: a frame is one publication, events may be several.
func partsOf(run eventlog.Run) []part {
	if run.Form == eventlog.FormEvents || run.Skip > 0 {
		return nil
	}
	return []part{{count: uint32(run.Count), end: run.Next()}}
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
			as.census.drop(as.byID, a)
		}
	}
	as.byID[a.id] = a
	as.census.add(a.owner, 1)
}

// advance says that every batch of a producer below next is accounted for, and forgets those who
// did nothing for producerLife. It gives what floorLocked does then, and the number of changes.
func (as *accounts) advance(next eventlog.Sequence, now time.Time) (floor eventlog.Sequence, changes uint64) {
	as.mu.Lock()
	defer as.mu.Unlock()
	oldest := now.Add(-producerLife).Unix()
	for _, a := range as.byID {
		if a.used < oldest && a.idle() {
			as.census.drop(as.byID, a)
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
	as.census.clear(as.byID)
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
	as.census.clear(as.byID)
	for id, r := range s.producers {
		as.byID[id] = &account{id: id, record: r, kept: true}
	}
	as.census.add("", len(as.byID))
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

// written notes that a snapshot is durable. Only the holder of the ledger's turn begins epochs and forgets
// single producers, so that they are as they were; but all are gone where the ledger was dropped meanwhile.
func (as *accounts) written(s snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for id := range s.producers {
		if a := as.byID[id]; a != nil {
			a.kept = true
		}
	}
}
