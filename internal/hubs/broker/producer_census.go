package broker

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A partition remembers so many producers. That alone is no bound, since there are many partitions, and whoever may send to one
// can name a new producer with each batch. So there is a bound for all partitions of a node together, of which an account may
// have half. A new producer beyond it takes the place of others: of some of the account's own, where it has as many as it may;
// else of those at rest, whosever they are; where nobody is, of the account's own; and only where it has none, of another's.
// Of these it is always the one that was unused longest. Whoever is forgotten and comes again begins as if he were new, which
// Kafka's clients and brokers do as well. But what he sends again then, since its answer was lost, is stored twice. That can
// happen to one who waits for longer than producerRest until he sends it again, at a node that remembers as many as it may, and
// sooner only where his own account or his partition has so many, or for others that had no producer at that node.

// maxAllProducers is how many producers a node remembers, of about 250 bytes each.
const maxAllProducers = 500_000

// census counts the accounts of all ledgers. The nil census counts nothing.
type census struct {
	limit int

	mu  sync.Mutex
	all int            // guarded by mu
	by  map[string]int // by who publishes, where that is known; guarded by mu
}

func newCensus() *census { return &census{limit: maxAllProducers, by: make(map[string]int)} }

// add counts accounts of somebody; a negative number are those that are gone.
func (c *census) add(owner string, n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += n
	if c.by[owner] += n; owner == "" || c.by[owner] == 0 {
		delete(c.by, owner)
	}
}

// drop takes an account out of a ledger, and clear all; their lock is held.
func (c *census) drop(from map[int64]*account, a *account) {
	delete(from, a.id)
	c.add(a.owner, -1)
}

func (c *census) clear(from map[int64]*account) {
	for _, a := range from {
		c.drop(from, a)
	}
}

// room: there may be another one of somebody's. own: it is he who has as many as he may.
func (c *census) room(owner string) (room, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own = owner != "" && c.by[owner] >= c.limit/2
	return !own && c.all < c.limit, own
}

// over is by how many there are too many.
func (c *census) over() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.all-c.limit, 0)
}

// makeRoom lets somebody have another producer, in the ledger whose turn the caller has. Several go at a time where they can be
// spared, since it has to look at all.
func (ls *ledgers) makeRoom(owner string, held *ledger) {
	room, own := ls.census.room(owner)
	if room {
		return
	}
	rested := time.Now().Add(-producerRest).Unix()
	some := ls.idle(func(a *account) bool { return a.owner == owner || !own && a.used < rested })
	if len(some) == 0 && !own {
		ls.forgetSome(ls.idle(func(*account) bool { return true }), 1, held)
		return
	}
	// Those at rest come first, and what is behind them is his own.
	n := len(some)
	if at := slices.IndexFunc(some, func(i idleAccount) bool { return i.used >= rested }); at >= 0 {
		n = at
	}
	ls.forgetSome(some, max(min(n, 1+ls.census.limit/32), 1+(len(some)-n)/32), held)
}

// trim forgets those who are too many, as when a start has read what was written down.
func (ls *ledgers) trim() {
	if n := ls.census.over(); n > 0 {
		ls.forgetSome(ls.idle(func(*account) bool { return true }), n, nil)
	}
}

// idleAccount is one that may be forgotten.
type idleAccount struct {
	ledger  *ledger
	account *account
	used    int64
}

// idle gives those that nothing is under way of, but for the yard's own, of those that are meant: the ones unused for longest first.
func (ls *ledgers) idle(meant func(*account) bool) (all []idleAccount) {
	for _, l := range ls.live() {
		l.accounts.mu.Lock()
		for _, a := range l.accounts.byID {
			if a.id >= 0 && a.idle() && meant(a) {
				all = append(all, idleAccount{l, a, a.used})
			}
		}
		l.accounts.mu.Unlock()
	}
	slices.SortFunc(all, func(x, y idleAccount) int { return cmp.Compare(x.used, y.used) })
	return all
}

// forgetSome forgets so many, the first of them. It takes the turn of their ledgers where that is free: nobody else forgets any.
func (ls *ledgers) forgetSome(all []idleAccount, n int, held *ledger) {
	byLedger := make(map[*ledger][]*account)
	for _, i := range all[:min(n, len(all))] {
		byLedger[i.ledger] = append(byLedger[i.ledger], i.account)
	}
	for l, some := range byLedger {
		if l == held {
			l.forget(some)
			continue
		}
		select {
		case l.turn <- struct{}{}:
			l.forget(some)
			l.endTurn()
		default: // the next time, perhaps
		}
	}
}

// forget drops accounts that still have nothing under way.
func (l *ledger) forget(some []*account) {
	as := &l.accounts
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range some {
		if as.byID[a.id] == a && a.idle() {
			as.census.drop(as.byID, a)
			as.changes++
		}
	}
}

// leave drops all of them for good, whoever has the ledger's turn: those that come in what is still under way are not counted.
func (l *ledger) leave() {
	as := &l.accounts
	as.mu.Lock()
	defer as.mu.Unlock()
	as.census.clear(as.byID)
	as.census = nil
}

// own notes who publishes as a producer.
func (l *ledger) own(a *account, owner string) {
	as := &l.accounts
	as.mu.Lock()
	defer as.mu.Unlock()
	if a.owner != owner && as.byID[a.id] == a {
		as.census.add(a.owner, -1)
		as.census.add(owner, 1)
	}
	a.owner = owner
}

// knows: the producer has an account; nil is one that nobody has.
func (l *ledger) knows(id *int64) bool {
	l.accounts.mu.Lock()
	defer l.accounts.mu.Unlock()
	return id != nil && l.accounts.byID[*id] != nil
}
