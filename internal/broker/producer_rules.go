package broker

import (
	"fmt"
	"math"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// noNumber stands where a producer has stored nothing.
const noNumber int32 = -1

// ahead counts on from a producer's number. After the largest comes 0, also after
// noNumber.
func ahead(n int32, by int) int32 { return int32((int64(n) + int64(by)) & math.MaxInt32) }

// distance is how many steps it is from one number ahead to another.
func distance(from, to int32) int64 { return (int64(to) - int64(from)) & math.MaxInt32 }

// maxRun bounds how far back a repeat is recognised: half the circle of numbers, so that
// behind and ahead are never confused.
const maxRun = 1 << 30

// record is what is known of one producer of a partition. It is a plain value; its
// methods are the rules.
type record struct {
	epoch int16
	// last is the newest number stored, noNumber if none is.
	last int32
	// run is how many numbers up to last were stored in this epoch. Only they can be
	// repeated: what an earlier epoch numbered may have been something else.
	run uint32
	// newest is how many numbers the newest batch had; 0 where that is not known.
	newest uint32
	// anew allows the first batch of the epoch to begin at 0 as well as behind last.
	anew bool
	// used is when it last did something, in Unix seconds.
	used int64
}

// begin is the rule of how an epoch begins. present is nil for a producer that is not
// known.
//
//   - Epoch: as asked for; else 0, or the one after the present. None lower than the
//     present.
//   - Numbers: a new producer's follow the Last it gives. In an epoch that has stored
//     something they go on where they are, whatever the producer believes: its last answer
//     may have been lost. In an epoch that has not they go on behind what the epochs
//     before stored, or begin anew at 0 where Last is -1; where Last is nil the first
//     batch decides. Any other Last shows that numbers were lost or given twice, and is
//     refused.
func begin(present *record, cfg ProducerConfig) (record, error) {
	epoch, err := chooseEpoch(present, cfg.Epoch)
	if err != nil {
		return record{}, err
	}
	last := noNumber
	if cfg.Last != nil {
		last = *cfg.Last
	}
	switch {
	case last < noNumber:
		return record{}, fmt.Errorf("%d is no number of an event: %w", last, ErrOutOfOrder)
	case present == nil:
		return record{epoch: epoch, last: last}, nil
	case present.epoch == epoch && present.run > 0:
		return *present, nil
	case last == noNumber || last == present.last:
		r := record{epoch: epoch, last: present.last, anew: cfg.Last == nil, used: present.used}
		if cfg.Last != nil {
			r.last = last
		}
		return r, nil
	}
	return record{}, fmt.Errorf("its newest number is %d, not %d: %w", present.last, last, ErrOutOfOrder)
}

func chooseEpoch(present *record, asked *int16) (int16, error) {
	switch {
	case asked != nil && *asked < 0:
		return 0, fmt.Errorf("epoch %d, the lowest is 0: %w", *asked, ErrProducerFenced)
	case asked != nil && present != nil && *asked < present.epoch:
		return 0, fmt.Errorf("epoch %d, the present one is %d: %w", *asked, present.epoch, ErrProducerFenced)
	case asked != nil:
		return *asked, nil
	case present == nil:
		return 0, nil
	case present.epoch == math.MaxInt16:
		return 0, fmt.Errorf("no epoch is left behind %d, use another producer id: %w", present.epoch, ErrProducerFenced)
	}
	return present.epoch + 1, nil
}

// judge is the rule of what becomes of a batch: it follows what is stored, or repeats
// it, or is ErrOutOfOrder.
//
// Repeated is what lies wholly within the run, with one exception: what repeats a part of
// the newest batch only. No client sends again less than it sent; but one that gave up on
// a batch, not knowing that it was stored, and goes on with other events under the same
// numbers does look like that, and would never learn that these are not stored.
func (r record) judge(first int32, count int) (repeat bool, err error) {
	if first < 0 {
		return false, fmt.Errorf("%d is no number of an event: %w", first, ErrOutOfOrder)
	}
	if first == ahead(r.last, 1) || r.anew && first == 0 {
		return false, nil
	}
	end := ahead(first, count-1)
	behind := distance(end, r.last)
	within := behind+int64(count) <= int64(r.run)
	apart := behind >= int64(r.newest)
	whole := behind == 0 && count == int(r.newest)
	if within && (apart || whole) {
		return true, nil
	}
	return false, fmt.Errorf("numbers %d to %d, the next is %d: %w", first, end, ahead(r.last, 1), ErrOutOfOrder)
}

// decided is the record once the first batch of an epoch is on its way: whether it will be
// stored or not, it has shown where the numbers begin. Otherwise the second, sent without
// waiting for the first, could pass for it when that was refused.
func (r record) decided(first int32) record {
	if r.anew && first == 0 {
		r.last = noNumber
	}
	r.anew = false
	return r
}

// extend is the record when a batch that follows is stored.
func (r record) extend(first int32, count int, newest uint32) record {
	r.last = ahead(first, count-1)
	r.run = min(r.run+uint32(count), maxRun)
	r.newest, r.anew = newest, false
	return r
}

// learn is the record when the log shows a batch of the producer, which may be counted in
// already. What is in the log is true, whatever the record says: an epoch that is lower
// was over before, and anything else that does not follow begins a run of its own.
func (r record) learn(p eventlog.Producer, count int, used int64) record {
	switch {
	case p.Epoch < r.epoch:
		return r
	case p.Epoch == r.epoch && r.run > 0 && distance(ahead(p.First, count-1), r.last)+int64(count) <= int64(r.run):
		return r
	case p.Epoch > r.epoch || p.First != ahead(r.last, 1):
		r = record{epoch: p.Epoch, used: r.used}
	}
	r = r.extend(p.First, count, 0)
	r.used = max(r.used, used)
	return r
}
