package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// A frame of a transaction is stored only while that goes on, and its partition was made part of it: else it would come
// to light without ever being decided, or as a part of the next one. Who coordinates the transaction knows, and is asked
// once in each transaction (Verify). That holds until a control frame ends the transaction in the partition, by the same
// account: nothing of the producer is under way then. Where several nodes append, whoever writes the control frame
// claims the producer first. So who had asked before has lost its claim, and asks again when it has the next.
//
// A control frame is written by who has asked likewise (EndTransaction): one that comes late, from a coordinator that was
// replaced, finds its claim lost, asks again, and hears that the transaction is over.

// errUnverified: nobody was asked yet whether the transaction of a frame goes on.
var errUnverified = errors.New("whether the transaction goes on is to be asked")

// errNoTransaction: a frame of a transaction came without somebody to ask.
var errNoTransaction = fmt.Errorf("%w: it is of a transaction that nobody knows", eventlog.ErrForm)

// verify asks whether the transaction of a frame goes on.
func (l *ledger) verify(ctx context.Context, p *Pending, producer int64) error {
	before, known := l.accounts.stamp(producer)
	if !known {
		return nil // the next look says what is so
	}
	if err := p.mayWrite(ctx, eventlog.FormTransaction); err != nil {
		return err
	}
	l.accounts.verified(before)
	return nil
}

// mayWrite asks whether the transaction of a frame goes on, if it is of one.
func (p *Pending) mayWrite(ctx context.Context, form eventlog.Form) error {
	switch {
	case form != eventlog.FormTransaction:
		return nil
	case p.verify == nil:
		return errNoTransaction
	}
	return p.verify(ctx)
}

// stamp is an account as it was when somebody asked.
type stamp struct {
	account *account
	marks   uint64
	claim   eventlog.Claim
}

func (as *accounts) stamp(producer int64) (stamp, bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[producer]
	if a == nil {
		return stamp{}, false
	}
	return stamp{a, a.marks, a.claim}, true
}

// verified notes that the transaction goes on, unless it may have ended since somebody asked.
func (as *accounts) verified(at stamp) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := at.account
	if as.byID[a.id] == a && a.halted == nil && a.claimed && a.claim == at.claim && a.marks == at.marks {
		a.verified = true
	}
}

// markLocked notes that a control frame is stored. A higher epoch ends those before it.
func (a *account) markLocked(p eventlog.Producer) {
	a.marks++
	a.verified = false
	if p.Epoch > a.epoch {
		a.record = record{epoch: p.Epoch, last: noNumber, none: true, open: true, used: a.used}
		a.kept = true // it is in the log
	}
}

// mark stores a control frame, behind all that its producer has under way. check is asked when nobody can store anything
// for the producer any more but this node.
func (l *ledger) mark(ctx context.Context, frame eventlog.Batch, check func(context.Context) error) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return err
	}
	a, release := l.accounts.halt(&frame.Producer.ID)
	defer release()
	if err := l.drain(ctx, a); err != nil {
		return err
	}
	if err := l.settleDoubt(ctx, a); err != nil {
		return err
	}
	if !l.accounts.holds(a) {
		if err := l.claim(ctx, a); err != nil {
			return err
		}
	}
	if err := check(ctx); err != nil {
		return err
	}
	frame.Claim = l.accounts.claimOf(a)
	receipt, err := l.partition.Submit(ctx, frame)
	if err != nil {
		l.accounts.unmarked(a, err)
		return err
	}
	stored, err := receipt.Wait(context.WithoutCancel(ctx))
	if err != nil {
		l.accounts.unmarked(a, err)
		return err
	}
	l.accounts.marked(a, frame.Producer, stored)
	return nil
}

func (as *accounts) claimOf(a *account) eventlog.Claim {
	as.mu.Lock()
	defer as.mu.Unlock()
	return a.claim
}

// marked notes where a control frame is stored.
func (as *accounts) marked(a *account, p eventlog.Producer, stored eventlog.Appended) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.used = time.Now().Unix()
	a.markLocked(p)
	if as.sole || stored.First == as.seen {
		as.seen = max(as.seen, stored.First+1)
	}
	as.changes++
}

// unmarked notes that a control frame was not stored, or may not have been: it will be written again.
func (as *accounts) unmarked(a *account, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.verified = false
	a.marks++
	a.claimed = a.claimed && !lost(err)
}

// EndTransaction ends the transaction of a producer in a partition of a log, by a control frame. When it returns that is
// as durable as the engine promises, and no frame of the transaction comes behind it. check is asked, perhaps more than
// once, whether the transaction is still to be ended so, at a moment from which on nobody else can end it without this
// failing: its error is given back. A second control frame changes nothing. Of a hub that was deleted there is nothing
// to end.
//
// Errors: check's, the store's and the engine's. After any of them it is to be called again.
func (f *Frames) EndTransaction(ctx context.Context, log string, partition int, frame eventlog.Batch, check func(context.Context) error) error {
	b := f.broker
	h := b.hubs.byLog()[log]
	if h == nil || h.broken != nil {
		if LogGone(ctx, b, log) {
			return nil
		}
		return fmt.Errorf("end a transaction in %s/%d: %w: the hub is not known here yet", log, partition, eventlog.ErrUnavailable)
	}
	if partition >= h.Partitions { // there never are fewer: another node has heard of more
		return fmt.Errorf("end a transaction in %s/%d: %w: the partition is not known here yet", h.Name, partition, eventlog.ErrUnavailable)
	}
	err := h.begin(ctx, partition)
	if err == nil {
		err = eventlog.Again(func() error { return b.ledgers.of(h, partition).mark(ctx, frame, check) }, eventlog.ErrFenced)
	}
	if errors.Is(err, eventlog.ErrRemoved) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end a transaction in %s/%d: %w", h.Name, partition, err)
	}
	return nil
}
