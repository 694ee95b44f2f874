package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/processor"
)

// rule names what must always hold, so that the harness's own tests can say which was broken.
type rule string

const (
	ruleGap       rule = "no event is skipped"
	ruleOrder     rule = "an owner's calls follow each other from the checkpoint on"
	ruleEvents    rule = "a batch is what was published, in order"
	ruleOverlap   rule = "calls for a partition do not overlap"
	ruleTwoOwners rule = "there are never two live owners"
	ruleLate      rule = "no call starts, or keeps its context, beyond the lease's proven time"
	ruleEnded     rule = "no call starts with an ended context"
	ruleEpoch     rule = "every acquisition raises the epoch"
	ruleTaken     rule = "nothing is taken from an instance that is well"
	ruleBack      rule = "checkpoints never move backwards"
	ruleFence     rule = "nothing is saved under an epoch after a higher one has begun"
	ruleAhead     rule = "no checkpoint is ahead of the work"
	ruleRepeat    rule = "events come again only after a crash, a pause or a loss"
	ruleHost      rule = "a worker is opened first, closed last and once, and called once at a time"
	ruleStop      rule = "a graceful stop ends soon, with nil, and leaves nothing behind"
	ruleAllDone   rule = "every event is processed in the end"
	ruleEven      rule = "partitions are spread evenly in the end"
)

// grace is how long before an event was handled something may have befallen its owner to
// explain why it comes again: what went wrong then may show as a lost lease only later.
const grace = 3 * time.Minute

// ledger is told of everything and knows the rules.
type ledger struct {
	lease time.Duration

	mu sync.Mutex
	// Guarded by mu.
	accounts map[string]*account
	broken   []breach
	found    map[rule]int
	calls    int
	repeats  int
	doubles  int // calls that began while another owner's, still proven, was running
	moves    int
}

type breach struct {
	rule rule
	text string
}

// account is one partition's.
type account struct {
	partition string
	held      processor.Lease   // as the store has it
	tenures   map[int64]*tenure // by epoch
	begun     int64             // the highest epoch that has begun
	saved     int64
	// handled is the newest event whose work was done, by whom and when; last is the newest
	// published.
	handled   int64
	handledBy *run
	handledAt time.Time
	last      int64
	running   []*call
	trace     []string
}

// tenure is the time that one run has a partition under one epoch.
type tenure struct {
	run    *run
	proven time.Time // until then
	next   int64     // where its next batch has to begin
	again  *call     // the call that failed last
}

// call is one handler call.
type call struct {
	run        *run
	partition  string
	epoch      int64
	attempt    int
	events     []event.Event
	ctx        context.Context
	checkpoint func(context.Context) error
}

func (c *call) first() int64 { return c.events[0].Sequence }
func (c *call) end() int64   { return c.events[len(c.events)-1].Sequence }

func newLedger(lease time.Duration) *ledger {
	return &ledger{lease: lease, accounts: map[string]*account{}, found: map[rule]int{}}
}

func (l *ledger) accountLocked(partition string) *account {
	a := l.accounts[partition]
	if a == nil {
		a = &account{partition: partition, tenures: map[int64]*tenure{}, saved: -1, handled: -1, last: -1}
		l.accounts[partition] = a
	}
	return a
}

// breakLocked notes that a rule did not hold.
func (l *ledger) breakLocked(r rule, a *account, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a != nil {
		text = fmt.Sprintf("partition %s: %s\n    %s", a.partition, text, strings.Join(a.trace, "\n    "))
	}
	// The first ones tell most; what follows from them would bury them.
	if l.found[r]++; l.found[r] <= 2 {
		l.broken = append(l.broken, breach{r, fmt.Sprintf("%v: %s", since(), text)})
	}
}

func (l *ledger) breakRule(r rule, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breakLocked(r, nil, format, args...)
}

// note keeps the last things that happened to a partition.
func (a *account) note(format string, args ...any) {
	if len(a.trace) >= 60 {
		a.trace = slices.Delete(a.trace, 0, 20)
	}
	a.trace = append(a.trace, fmt.Sprintf("%v %s", since(), fmt.Sprintf(format, args...)))
}

// since is how far the simulation has come: synctest begins at that time.
func since() time.Duration { return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) }

// published is told when the broker has stored events.
func (l *ledger) published(partition string, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(partition)
	a.last = max(a.last, last)
}

// claimed is told what the store wrote.
func (l *ledger) claimed(r *run, written []processor.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range written {
		l.claimedOne(r, l.accountLocked(lease.Partition), lease)
	}
}

func (l *ledger) claimedOne(r *run, a *account, lease processor.Lease) {
	before := a.held
	a.held = lease
	holder := a.tenures[before.Epoch]
	switch {
	case lease.Epoch < before.Epoch:
		l.breakLocked(ruleEpoch, a, "%v wrote epoch %d over %d", r, lease.Epoch, before.Epoch)
	case lease.Owner == "": // released
		a.note("%v releases epoch %d", r, lease.Epoch)
		if holder != nil && holder.run != r {
			l.breakLocked(ruleTaken, a, "%v released what %v has", r, holder.run)
		}
	case holder != nil && holder.run == r && before.Owner == lease.Owner && lease.Epoch == before.Epoch: // renewed
	case lease.Epoch == before.Epoch:
		l.breakLocked(ruleEpoch, a, "%v acquired under epoch %d, which is %v's", r, lease.Epoch, holder)
	default:
		l.acquired(r, a, before, lease)
	}
}

func (l *ledger) acquired(r *run, a *account, before, lease processor.Lease) {
	holder := a.tenures[before.Epoch]
	a.note("%v acquires epoch %d from %q of epoch %d", r, lease.Epoch, before.Owner, before.Epoch)
	l.moves++
	if before.Owner != "" && holder != nil && holder.run != r && holder.run.wellLocked(time.Now()) {
		l.breakLocked(ruleTaken, a, "%v took it from %v", r, holder.run)
	}
	a.tenures[lease.Epoch] = &tenure{run: r, next: -1}
}

// proved is told what an instance was told: from when it asked on, its leases stand.
func (l *ledger) proved(r *run, start time.Time, leases []processor.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		t := l.accountLocked(lease.Partition).tenures[lease.Epoch]
		if lease.Owner != "" && t != nil && t.run == r {
			t.proven = start.Add(l.lease)
		}
	}
}

// begun is told when the store has fenced.
func (l *ledger) begun(r *run, lease processor.Lease, c processor.Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(lease.Partition)
	a.note("%v begins epoch %d behind %d", r, lease.Epoch, c.Sequence)
	a.begun = max(a.begun, lease.Epoch)
	if t := a.tenures[lease.Epoch]; t != nil && t.next < 0 {
		t.next = c.Sequence + 1
	}
}

// saved is told when the store has stored a checkpoint.
func (l *ledger) saved(r *run, lease processor.Lease, c processor.Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(lease.Partition)
	a.note("%v saves %d under epoch %d", r, c.Sequence, lease.Epoch)
	if c.Sequence < a.saved {
		l.breakLocked(ruleBack, a, "%v saved %d after %d", r, c.Sequence, a.saved)
	}
	if lease.Epoch < a.begun {
		l.breakLocked(ruleFence, a, "%v saved under epoch %d after %d had begun", r, lease.Epoch, a.begun)
	}
	if c.Sequence > a.handled {
		l.breakLocked(ruleAhead, a, "%v saved %d, only %d is done", r, c.Sequence, a.handled)
	}
	a.saved = c.Sequence
}

// begin is told of every handler call before it does anything.
func (l *ledger) begin(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(c.partition)
	l.calls++
	a.note("%v is called with %d to %d, attempt %d, epoch %d", c.run, c.first(), c.end(), c.attempt, c.epoch)
	l.checkEventsLocked(a, c)
	l.checkOwnerLocked(a, c)
	l.checkPositionLocked(a, c)
	a.running = append(a.running, c)
}

func (l *ledger) checkEventsLocked(a *account, c *call) {
	for i, e := range c.events {
		if want := c.first() + int64(i); e.Sequence != want || string(e.Body) != body(c.partition, want) {
			l.breakLocked(ruleEvents, a, "%v got event %d %q of partition %s as its event %d", c.run, e.Sequence, e.Body, e.Partition, want)
			return
		}
	}
}

func (l *ledger) checkOwnerLocked(a *account, c *call) {
	now := time.Now()
	if c.ctx.Err() != nil {
		l.breakLocked(ruleEnded, a, "%v is called: %v", c.run, context.Cause(c.ctx))
	}
	t := a.tenures[c.epoch]
	if t == nil || t.run != c.run {
		l.breakLocked(ruleTwoOwners, a, "%v is called under epoch %d, which it never acquired", c.run, c.epoch)
		return
	}
	if now.After(t.proven) {
		l.breakLocked(ruleLate, a, "%v is called under epoch %d, proven until %v ago", c.run, c.epoch, now.Sub(t.proven))
	}
	for _, other := range a.running {
		if other.ctx.Err() == nil {
			l.checkBesideLocked(a, c, other, now)
		}
	}
}

// checkBesideLocked judges two calls at once, both with a live context.
func (l *ledger) checkBesideLocked(a *account, c, other *call, now time.Time) {
	old := a.tenures[other.epoch]
	switch {
	case other.run == c.run:
		l.breakLocked(ruleOverlap, a, "%v is called under epoch %d while it is called under %d", c.run, c.epoch, other.epoch)
	case old == nil || now.After(old.proven):
		l.breakLocked(ruleTwoOwners, a, "%v is called while %v still is, whose lease is not proven any more", c.run, other.run)
	case other.run.wellLocked(now):
		l.breakLocked(ruleTwoOwners, a, "%v is called while %v still is, which is well", c.run, other.run)
	default:
		l.doubles++
	}
}

// checkPositionLocked judges where a call begins.
func (l *ledger) checkPositionLocked(a *account, c *call) {
	if c.first() > a.handled+1 {
		l.breakLocked(ruleGap, a, "%v is called with %d, only %d is done", c.run, c.first(), a.handled)
	}
	t := a.tenures[c.epoch]
	if t == nil {
		return
	}
	if last := t.again; last != nil {
		if c.first() != last.first() || len(c.events) != len(last.events) || c.attempt != last.attempt+1 {
			l.breakLocked(ruleOrder, a, "%v is called with %d to %d, attempt %d, after attempt %d with %d to %d failed",
				c.run, c.first(), c.end(), c.attempt, last.attempt, last.first(), last.end())
		}
		return
	}
	if c.first() != t.next || c.attempt != 1 {
		l.breakLocked(ruleOrder, a, "%v is called with %d, attempt %d, want %d", c.run, c.first(), c.attempt, t.next)
	}
	if c.first() <= a.handled {
		l.checkRepeatLocked(a, c)
	}
}

func (l *ledger) checkRepeatLocked(a *account, c *call) {
	l.repeats++
	if !a.handledBy.disturbedSinceLocked(a.handledAt.Add(-grace)) {
		l.breakLocked(ruleRepeat, a, "%v is called with %d, which %v has done and was well", c.run, c.first(), a.handledBy)
	}
}

// done is told when a call's work has been done, before any checkpoint.
func (l *ledger) done(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(c.partition)
	if t := a.tenures[c.epoch]; t != nil && time.Now().After(t.proven) {
		l.breakLocked(ruleLate, a, "the context of %v's call under epoch %d is alive, proven until %v ago", c.run, c.epoch, time.Since(t.proven))
	}
	if c.end() > a.handled {
		a.handled, a.handledBy, a.handledAt = c.end(), c.run, time.Now()
	}
}

// returns is told when a call returns.
func (l *ledger) returns(c *call, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(c.partition)
	a.note("%v returns from %d to %d: %v", c.run, c.first(), c.end(), err)
	a.running = slices.DeleteFunc(a.running, func(other *call) bool { return other == c })
	t := a.tenures[c.epoch]
	if t == nil {
		return
	}
	if t.again = nil; err != nil {
		t.again = c
	} else {
		t.next = c.end() + 1
	}
}
