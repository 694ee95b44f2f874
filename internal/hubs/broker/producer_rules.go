package broker

import (
	"fmt"
	"math"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// noNumber stands where a producer has stored nothing.
const noNumber int32 = -1

// ahead counts on from a producer's number. After the largest comes 0, also after noNumber.
func ahead(n int32, by int) int32 { return int32((int64(n) + int64(by)) & math.MaxInt32) }

// distance is how many steps it is from one number ahead to another.
func distance(from, to int32) int64 { return (int64(to) - int64(from)) & math.MaxInt32 }

// unknown stands for the epoch of a producer that nobody has heard of.
const unknown int16 = -1

// maxRun bounds how far back a repeat is recognised: half the circle of numbers, so that
// behind and ahead are never confused.
const maxRun = 1 << 30

// maxRecent is how many of a producer's batches are known one by one, as in Kafka.
const maxRecent = 5

// recent are the newest batches, the newest first. Behind the first without events they are not known.
type recent [maxRecent]part

// part is what a producer sent at once.
type part struct {
	count uint32
	// end is the number in the log behind its last event; 0: nobody remembers it. Of single events
	// nobody does: only who sends frames wants to know where a repeat was stored.
	end eventlog.Sequence
}

// first is the number in the log of its first event, NoSequence where nobody remembers it.
func (p part) first() eventlog.Sequence {
	if p.end == 0 {
		return eventlog.NoSequence
	}
	return p.end - eventlog.Sequence(p.count)
}

// record is what is known of one producer of a partition. It is a plain value; its
// methods are the rules.
type record struct {
	epoch int16
	// last is the newest number stored or, with none, the one that the first will follow.
	last int32
	// none: of all up to last nothing was stored, as far as anyone knows or cares.
	none bool
	// open: none, and not even the number that the first will have is known. It is that of who comes first.
	open bool
	// run is how many numbers up to last were stored in this epoch. Only they can be
	// repeated: what an earlier epoch numbered may have been something else.
	run uint32
	// recent are the newest batches of the run.
	recent recent
	// used is when it last did something, in Unix seconds.
	used int64
}

// beyond: it knows of more stored events than another of the same epoch.
func (r record) beyond(other record) bool {
	if r.none || r.run == 0 {
		return false
	}
	by := distance(other.last, r.last)
	return other.none || other.run == 0 || by > 0 && by < maxRun
}

// blank: it could as well not be known.
func (r record) blank() bool { return r.epoch == 0 && r.none }

// worth is 0 for a record that is forgotten before the others.
func (r record) worth() int {
	if r.blank() {
		return 0
	}
	return 1
}

// begin is the rule of how an epoch begins. present is nil for a producer that is not known.
//
//   - Epoch: as asked for; else 0, or the one after the present. None lower than the
//     present.
//   - Numbers: where nothing is stored they follow the Last that the producer gives, or 0:
//     Event Hubs' clients take what they are told for used, and count from 1. Where
//     something is they go on behind it, whatever the producer believes: the last answer
//     may have been lost, and each batch will show. But in an epoch that has stored nothing
//     they begin anew at 0 where Last is -1. Frames begin nowhere else in a new epoch, as in Kafka.
func begin(present *record, cfg ProducerConfig) (record, error) {
	epoch, err := chooseEpoch(present, cfg.Epoch)
	if err != nil {
		return record{}, err
	}
	var last int32
	if cfg.Last != nil {
		last = *cfg.Last
	}
	switch {
	case cfg.frames && present != nil && present.epoch == epoch: // another frame was faster
		return *present, nil
	case last < noNumber:
		return record{}, fmt.Errorf("%d is no number of an event: %w", last, ErrOutOfOrder)
	case present == nil || present.none:
		return record{epoch: epoch, last: last, none: true}, nil
	case present.epoch == epoch && present.run > 0:
		return *present, nil
	case last == noNumber:
		return record{epoch: epoch, last: last, none: true}, nil
	case cfg.frames:
		return record{}, fmt.Errorf("epoch %d begins with number %d, use 0: %w", epoch, last+1, ErrOutOfOrder)
	}
	return record{epoch: epoch, last: present.last}, nil
}

func chooseEpoch(present *record, asked *int16) (int16, error) {
	switch {
	case asked != nil && *asked < 0:
		return 0, fmt.Errorf("epoch %d, the lowest is 0: %w", *asked, ErrProducerFenced)
	case asked != nil && present != nil && *asked < present.epoch:
		return 0, fenced(*asked, present.epoch)
	case asked != nil:
		return *asked, nil
	case present == nil:
		return 0, nil
	case present.epoch == math.MaxInt16:
		return 0, fmt.Errorf("no epoch is left behind %d, use another producer id: %w", present.epoch, ErrProducerFenced)
	}
	return present.epoch + 1, nil
}

// fenced says that an epoch is over, in the words that clients' tests look for.
func fenced(received, current int16) error {
	return fmt.Errorf("epoch Received:%d Current:%d: %w", received, current, ErrProducerFenced)
}

// judge is the rule of what becomes of a batch: it follows what is stored, or repeats
// it, or is ErrOutOfOrder.
func (r record) judge(first int32, count int) (repeat bool, err error) {
	if first < 0 {
		return false, fmt.Errorf("%d is no number of an event: %w", first, ErrOutOfOrder)
	}
	next := ahead(r.last, 1)
	if first == next {
		return false, nil
	}
	end := ahead(first, count-1)
	if r.repeats(end, count) {
		return true, nil
	}
	what := "numbers"
	if distance(first, r.last) < maxRun {
		what = "old sequence numbers"
	}
	return false, fmt.Errorf("%s %d to %d, the next is %d: %w", what, first, end, next, ErrOutOfOrder)
}

// repeats reports whether a batch that ends with a number was stored already: what lies wholly
// within the run, except where it would be a part of one of the recent batches, or more than one.
// No client sends again less than it sent, or other than it sent it; but one that gave up on a
// batch, not knowing that it was stored, and goes on with other events under the same numbers does
// look like that, and would never learn that these are not stored.
func (r record) repeats(end int32, count int) bool {
	behind := distance(end, r.last)
	if behind+int64(count) > int64(r.run) {
		return false
	}
	var at int64
	for _, p := range r.recent {
		if p.count == 0 {
			break
		}
		if behind < at+int64(p.count) {
			return behind == at && count == int(p.count)
		}
		at += int64(p.count)
	}
	return true
}

// storedAt is the number in the log of the first event of a repeat; NoSequence where nobody remembers it.
func (r record) storedAt(first int32, count int) eventlog.Sequence {
	behind := distance(ahead(first, count-1), r.last)
	for _, p := range r.recent {
		if behind == 0 && int(p.count) == count {
			return p.first()
		}
		if behind -= int64(p.count); p.count == 0 || behind < 0 {
			break
		}
	}
	return eventlog.NoSequence
}

// extend is the record when batches that follow are stored; parts are what they are made of, nil
// where only the sum is known.
func (r record) extend(first int32, count int, parts []part) record {
	r.last = ahead(first, count-1)
	r.none, r.open = false, false
	r.run = min(r.run+uint32(count), maxRun)
	if parts == nil {
		r.recent = recent{}
	}
	for _, p := range parts {
		copy(r.recent[1:], r.recent[:maxRecent-1])
		r.recent[0] = p
	}
	return r
}

// learn is the record when the log shows a batch of the producer, which may be counted in
// already. What is in the log is true, whatever the record says: an epoch that is lower
// was over before, and anything else that does not follow begins a run of its own. parts as for extend.
func (r record) learn(p eventlog.Producer, count int, parts []part, used int64) record {
	switch {
	case p.Epoch < r.epoch:
		return r
	case p.Epoch == r.epoch && r.run > 0 && distance(ahead(p.First, count-1), r.last)+int64(count) <= int64(r.run):
		return r
	case p.Epoch > r.epoch || p.First != ahead(r.last, 1):
		r = record{epoch: p.Epoch, used: r.used}
	}
	r = r.extend(p.First, count, parts)
	r.used = max(r.used, used)
	return r
}
