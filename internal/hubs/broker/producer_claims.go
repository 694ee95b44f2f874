package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Several nodes may append to a partition, and a producer may come by way of any of them. So the
// node that judges its batches claims it first: what others had under way for it lies below the
// claim, where it is read, or is never stored, and so is what they append from then on. That makes
// the account here all there is to know, until another node claims. Then the engine refuses the next
// batch, the account is no good any more, and the producer is claimed again before anything else of
// it is judged. Two nodes that have links of one producer take turns so, slowly and rightly.
//
// An epoch that has stored nothing is in the snapshot alone. Therefore
//
//   - who has claimed writes the snapshot: it changes by compare-and-set, so that when this succeeds
//     every epoch is known that was begun before the claim;
//   - who has begun an epoch claims once more when the snapshot is written.
//
// An epoch of frames is promised to nobody before one of them is stored, and is in the log then: a
// node that has begun one and lost the claim before it stored anything has begun nothing.
//
// Of two nodes, the one with the newer claim so knows the newer epoch, and the other's batches are
// refused. Where only one process appends none of this is needed: it knows all that is stored.

// maxContests is how often an epoch begins anew because other nodes were at work for the producer.
const maxContests = 8

// enter lets an epoch of a producer begin, which is halted. Everything is as it says when it returns.
func (l *ledger) enter(ctx context.Context, a *account, cfg ProducerConfig) (fresh record, err error) {
	if err := l.drain(ctx, a); err != nil {
		return record{}, err
	}
	if err := l.settleDoubt(ctx, a); err != nil {
		return record{}, err
	}
	if err := l.claim(ctx, a); err != nil {
		return record{}, err
	}
	for range maxContests {
		if over, last := l.accounts.outranked(cfg); over != nil { // as the claim has shown
			return record{epoch: *cfg.Epoch, last: last}, nil
		}
		prior := l.accounts.recordOf(a)
		fresh, kept, err := l.accounts.enter(a, cfg)
		if err != nil {
			return record{}, fmt.Errorf("producer %d: %w", a.id, err)
		}
		if kept || cfg.frames {
			return fresh, nil
		}
		if err := l.save(ctx); err != nil {
			return record{}, err
		}
		if l.accounts.sole {
			return fresh, nil
		}
		if cfg.Epoch == nil && l.accounts.contested(a, fresh) {
			continue
		}
		if undisturbed, err := l.confirm(ctx, a, prior, fresh); err != nil || undisturbed {
			return fresh, err
		}
	}
	_, _, _ = l.accounts.enter(a, cfg) // the epoch is written, and ends those before it
	return record{}, fmt.Errorf("producer %d: other nodes keep beginning it: %w", a.id, eventlog.ErrFenced)
}

// claim makes this node the one that appends for a producer, and learns what it has stored.
func (l *ledger) claim(ctx context.Context, a *account) error {
	c, err := l.partition.Claim(ctx, a.id)
	if err != nil {
		return fmt.Errorf("claim producer %d: %w", a.id, err)
	}
	if !l.accounts.sole {
		if err := l.save(ctx); err != nil {
			return err
		}
		if err := l.catchUp(ctx, l.accounts.unread(a), c.Next); err != nil {
			return err
		}
	} else if f := l.accounts.doubtOf(a); f != nil {
		if err := l.read(ctx, f.floor, c.Next); err != nil {
			return err
		}
	}
	l.accounts.hold(a, c)
	return nil
}

// catchUp reads the log up to a number, from seen or before.
func (l *ledger) catchUp(ctx context.Context, from, to eventlog.Sequence) error {
	if err := l.read(ctx, from, to); err != nil {
		return err
	}
	l.accounts.saw(to)
	return nil
}

// confirm claims a producer once more, when its new epoch is written. Another node may have claimed
// it before the epoch was, and stored something under a lower one: then the epoch has to begin
// behind that.
func (l *ledger) confirm(ctx context.Context, a *account, prior, fresh record) (undisturbed bool, err error) {
	c, err := l.partition.Claim(ctx, a.id)
	if err != nil {
		return false, fmt.Errorf("claim producer %d: %w", a.id, err)
	}
	if err := l.save(ctx); err != nil {
		return false, err
	}
	if l.accounts.recordOf(a).epoch != fresh.epoch { // somebody has begun a higher one
		return true, nil
	}
	l.accounts.replace(a, prior) // which a batch of a lower epoch still counts for
	if err := l.catchUp(ctx, l.accounts.unread(a), c.Next); err != nil {
		l.accounts.replace(a, fresh)
		return false, err
	}
	if l.accounts.recordOf(a) != prior {
		return false, nil
	}
	l.accounts.replace(a, fresh)
	l.accounts.hold(a, c)
	return true, nil
}

// lost reports whether an append failed because the producer is another node's, perhaps.
func lost(err error) bool { return errors.Is(err, eventlog.ErrFenced) }

// holds reports whether the producer is this node's, as far as anyone here knows.
func (as *accounts) holds(a *account) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return a.claimed
}

// hold notes a claim, up to which everything is known.
func (as *accounts) hold(a *account, c eventlog.Claim) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.claim, a.claimed, a.verified = c, true, false
}

// unread is from where on the log may have something of a producer that its account has not; nil:
// of any that has no flight in doubt.
func (as *accounts) unread(a *account) eventlog.Sequence {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a != nil && a.doubt != nil {
		return min(as.seen, a.doubt.floor)
	}
	return as.seen
}

// contested reports whether another node has begun the same epoch, or a higher one.
func (as *accounts) contested(a *account, fresh record) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return a.rival || a.epoch != fresh.epoch
}

func (as *accounts) recordOf(a *account) record {
	as.mu.Lock()
	defer as.mu.Unlock()
	return a.record
}

func (as *accounts) replace(a *account, r record) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.record = r
}
