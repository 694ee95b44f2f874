package entries

import (
	"cmp"
	"slices"
	"time"
)

// line puts the messages of one bucket into the order of their sequences, wherever they come from:
// our own writes, announcements of other nodes, and batches read from the stream. It is plain state:
// no clock, no I/O, no lock.
//
// Each sequence is one write, and its writer announces it, so announcements have no holes unless one
// was lost. A stream does have holes, since it keeps one message a key: what is not there any more
// was replaced by a later message. So a batch that was read from the stream up to its end leaves no
// key older than its last message. A batch that ends early may have skipped a message that was
// replaced by one behind its end; and the next batch may be answered by another server, which has
// not got that far. Then the line is in doubt: complete stays where it is until a message is reached
// that was written after the doubt arose (settle), by steps that raise no doubt themselves. All that
// any server had by then comes before that message.
type line struct {
	reached  uint64 // every sequence up to it was received, or is not there any more
	complete uint64 // the state of no key is older than this
	highest  uint64 // known to have been written

	doubt     bool
	settledAt uint64 // the doubt ends here; zero: unknown yet

	ahead    map[uint64]message // received, behind a gap
	gapSince time.Time          // when the gap in front of them was first seen; zero: there is none
}

// receive takes a message in and gives those that are to be applied, in order.
func (l *line) receive(m message, now time.Time) []message {
	l.highest = max(l.highest, m.seq)
	switch {
	case m.seq <= l.complete:
		return nil
	case m.seq <= l.reached: // it was thought to be gone
		return []message{m}
	}
	if l.ahead == nil {
		l.ahead = make(map[uint64]message)
	}
	l.ahead[m.seq] = m
	return l.advance(nil, now)
}

// learn notes that a sequence was written.
func (l *line) learn(seq uint64) { l.highest = max(l.highest, seq) }

// fetched takes in a batch that was read from the stream, beginning at from. ended: at that time the
// server had nothing behind it.
func (l *line) fetched(from uint64, batch []message, ended bool, now time.Time) []message {
	if from > l.reached+1 {
		return nil // what is in front of it is unknown
	}
	if !ended {
		l.doubt, l.settledAt = true, 0
	}
	if len(batch) == 0 {
		return nil
	}
	last := batch[len(batch)-1].seq
	l.highest = max(l.highest, last)
	if last > l.reached {
		l.reached = last
		for seq, m := range l.ahead {
			if seq <= last { // our own may have been replaced in the stream, and we have seen them acknowledged
				batch = append(batch, m)
				delete(l.ahead, seq)
			}
		}
		slices.SortFunc(batch, func(a, b message) int { return cmp.Compare(a.seq, b.seq) })
	}
	return l.advance(batch, now)
}

// settle names a sequence that was written after the present doubt arose.
func (l *line) settle(seq uint64, now time.Time) {
	l.learn(seq)
	if l.doubt && l.settledAt == 0 {
		l.settledAt = seq
	}
	l.advance(nil, now)
}

// restart begins to read the stream from its first message. What was complete stays so.
func (l *line) restart() {
	l.reached, l.doubt, l.settledAt = 0, true, 0
	l.ahead, l.gapSince = nil, time.Time{}
}

// advance goes on over what was received ahead, and keeps the account of doubt and of gaps.
func (l *line) advance(apply []message, now time.Time) []message {
	moved := false
	for {
		m, ok := l.ahead[l.reached+1]
		if !ok {
			break
		}
		delete(l.ahead, m.seq)
		l.reached, moved = m.seq, true
		apply = append(apply, m)
	}
	if l.doubt && l.settledAt > 0 && l.reached >= l.settledAt {
		l.doubt, l.settledAt = false, 0
	}
	if !l.doubt {
		l.complete = max(l.complete, l.reached)
	}
	switch {
	case len(l.ahead) == 0:
		l.gapSince = time.Time{}
	case l.gapSince.IsZero() || moved: // another gap than before
		l.gapSince = now
	}
	return apply
}

// behind: something is known to have been written that was not reached.
func (l *line) behind() bool { return l.highest > l.reached }

// unsettled: a message has to be written for the doubt to end.
func (l *line) unsettled() bool { return l.doubt && l.settledAt == 0 }
