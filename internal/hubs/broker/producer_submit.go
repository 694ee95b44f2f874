package broker

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What becomes of a batch in the accounts: it is judged, travels with a flight, and lands or does not.

// Why a batch cannot be judged yet.
var (
	errDoubt     = errors.New("it is not known what is stored")
	errForgotten = errors.New("the producer was forgotten")
	errUnclaimed = errors.New("others may have stored something for the producer")
	errUnbegun   = errors.New("the epoch of a frame has not begun")
)

// submit judges a batch. It returns a flight that the caller has to start, or what has to end
// first; with neither of them the batch travels with a flight, or was stored before. sure: the
// producer was claimed after the batch was sent.
func (as *accounts) submit(p *Pending, b eventlog.Batch, sure bool) (start *flight, wait <-chan struct{}, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[b.Producer.ID]
	if wait, err := a.ready(b); wait != nil || err != nil {
		return nil, wait, err
	}
	a.expect(b.Producer)
	outlook := a.record // when all that is under way is stored
	for _, f := range []*flight{a.air, a.queue} {
		if f != nil {
			outlook = outlook.extend(f.first, f.count, f.parts)
		}
	}
	repeat, err := outlook.judge(b.Producer.First, p.count)
	switch {
	case err != nil && !sure && a.air != nil:
		return nil, a.air.landed, nil
	case err != nil && !sure: // its numbers may follow what was stored by way of another node
		a.claimed = false
		return nil, nil, errUnclaimed
	case err != nil:
		return nil, nil, err
	case repeat:
		as.repeatLocked(a, p, b.Producer.First)
		return nil, nil, nil
	case a.air == nil:
		a.air = as.newFlightLocked(a, b.Producer.First)
		a.air.join(p, b)
		return a.air, nil, nil
	case a.queue == nil:
		a.queue = as.newFlightLocked(a, b.Producer.First)
	case !a.queue.takes(b, p.bytes):
		return nil, a.air.landed, nil
	}
	a.queue.join(p, b)
	return nil, nil, nil
}

// ready says why a batch cannot be judged now, or what it has to wait for. Events come behind an epoch
// that has begun. Frames begin theirs, as in Kafka.
func (a *account) ready(b eventlog.Batch) (wait <-chan struct{}, err error) {
	epoch, begins := b.Producer.Epoch, b.Form != eventlog.FormEvents
	switch {
	case a == nil && begins:
		return nil, errUnbegun
	case a == nil:
		return nil, errForgotten
	case a.epoch != epoch && a.epoch != unknown && !(begins && epoch > a.epoch):
		return nil, fenced(epoch, a.epoch)
	case a.halted != nil:
		return a.halted, nil
	case begins && a.epoch != epoch:
		return nil, errUnbegun
	case a.doubt != nil:
		return nil, errDoubt
	case !a.claimed:
		return nil, errUnclaimed
	case b.Form == eventlog.FormTransaction && !a.verified:
		return nil, errUnverified
	}
	return nil, nil
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
			p.flight = f
			p.batch, p.offset = f.find(int(at))
			p.offset -= p.count - 1
			return
		}
	}
	p.at = a.storedAt(first, p.count)
}

func (as *accounts) newFlightLocked(a *account, first int32) *flight {
	return &flight{account: a, epoch: a.epoch, claim: a.claim, first: first, floor: as.seen, landed: make(chan struct{})}
}

// land ends a flight that was stored and gives the next one, which the caller has to start.
func (as *accounts) land(f *flight, stored []eventlog.Appended) (next *flight) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := f.account
	as.enterLocked(f, stored)
	f.events, f.frames = nil, nil
	if next = a.queue; next != nil {
		next.floor = as.seen
	}
	a.air, a.queue = next, nil
	close(f.landed)
	return next
}

// enterLocked notes which batches of a flight are stored, the first ones, and where.
func (as *accounts) enterLocked(f *flight, stored []eventlog.Appended) {
	a, first := f.account, f.first
	f.stored = stored
	for batch, at := range stored {
		parts, count := f.partsOf(batch)
		end := at.First + eventlog.Sequence(count)
		if len(f.frames) > 0 {
			parts[0].end = end
		}
		if f.epoch == a.epoch {
			a.record = a.extend(first, count, parts)
			a.used, a.kept = at.Time.Unix(), true
		}
		if as.sole || at.First == as.seen {
			as.seen = max(as.seen, end)
		}
		first = ahead(first, count)
		as.changes++
	}
}

// crash ends a flight of which only the first batches were stored, or where that is not known of the
// others. Nothing that gathered behind it is stored. lost: the claim may be another's by now.
func (as *accounts) crash(f *flight, stored []eventlog.Appended, err error, doubt, lost bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := f.account
	as.enterLocked(f, stored)
	f.err = err
	if !as.sole {
		// What another node stored may have been read here meanwhile, and left alone because of the
		// flight; see learn.
		as.seen = min(as.seen, f.floor)
		a.claimed = a.claimed && !lost
	}
	if doubt || f.again {
		a.doubt = f.left(len(stored))
	}
	if next := a.queue; next != nil {
		next.err = fmt.Errorf("%w: the numbers before were not stored", eventlog.ErrFenced)
		close(next.landed)
	}
	a.air, a.queue = nil, nil
	close(f.landed)
}

// resume ends the doubt where the log has answered it, and makes the flight that has to
// be sent off where it has not.
func (as *accounts) resume(a *account) *flight {
	as.mu.Lock()
	defer as.mu.Unlock()
	f := a.doubt
	a.doubt = nil
	if a.epoch != f.epoch { // another node's has begun: it is for that one to say
		return nil
	}
	left := f
	if !a.none {
		left = f.left(f.ending(a.last))
	}
	switch {
	case left == nil && len(f.frames) == 0:
		a.recent = record{}.extend(f.first, f.count, f.parts).recent // the log could not say
		return nil
	case left == nil || left.first != ahead(a.last, 1): // its sender went on by way of another node
		return nil
	case !as.sole && left.transacted(): // its transaction may be over, by way of another node; behind the claim it is void
		return nil
	}
	a.air = &flight{
		account: a, epoch: f.epoch, claim: a.claim, first: left.first, count: left.count, bytes: left.bytes, parts: left.parts,
		events: left.events, frames: left.frames, floor: f.floor, again: true, landed: make(chan struct{}),
	}
	return a.air
}
