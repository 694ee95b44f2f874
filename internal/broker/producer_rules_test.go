package broker

import (
	"errors"
	"math"
	"testing"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// How an epoch begins.
func TestBegin(t *testing.T) {
	known := &record{epoch: 3, last: 9, run: 5, newest: 2, used: 1}
	idle := &record{epoch: 3, last: 9}
	exhausted := &record{epoch: math.MaxInt16, last: 9, run: 1}
	tests := []struct {
		what    string
		present *record
		cfg     ProducerConfig
		want    record
		err     error
	}{
		{"a new producer begins with epoch 0 at 0", nil, ProducerConfig{}, record{last: -1}, nil},
		{"or with the epoch it asks for", nil, ProducerConfig{Epoch: new(int16(7))}, record{epoch: 7, last: -1}, nil},
		{"and behind the number it gives", nil, ProducerConfig{Last: new(int32(41))}, record{last: 41}, nil},
		{"a known one gets the next epoch, and the first batch decides about the numbers", known, ProducerConfig{}, record{epoch: 4, last: 9, anew: true, used: 1}, nil},
		{"a higher epoch is taken", known, ProducerConfig{Epoch: new(int16(8))}, record{epoch: 8, last: 9, anew: true, used: 1}, nil},
		{"it may go on behind what is stored", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(9))}, record{epoch: 4, last: 9, used: 1}, nil},
		{"or begin at 0", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(-1))}, record{epoch: 4, last: -1, used: 1}, nil},
		{"but nowhere else", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(5))}, record{}, ErrOutOfOrder},
		{"also where the broker chose the epoch", known, ProducerConfig{Last: new(int32(5))}, record{}, ErrOutOfOrder},
		{"the same epoch goes on", known, ProducerConfig{Epoch: new(int16(3))}, *known, nil},
		{"whatever the producer missed", known, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(7))}, *known, nil},
		{"or believes", known, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(99))}, *known, nil},
		{"the same epoch that stored nothing begins again", idle, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(-1))}, record{epoch: 3, last: -1}, nil},
		{"a lower epoch is refused", known, ProducerConfig{Epoch: new(int16(2))}, record{}, ErrProducerFenced},
		{"a negative one too", nil, ProducerConfig{Epoch: new(int16(-1))}, record{}, ErrProducerFenced},
		{"and a negative number", nil, ProducerConfig{Last: new(int32(-2))}, record{}, ErrOutOfOrder},
		{"when the epochs are used up no other can be chosen", exhausted, ProducerConfig{}, record{}, ErrProducerFenced},
		{"the last one goes on", exhausted, ProducerConfig{Epoch: new(int16(math.MaxInt16))}, *exhausted, nil},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := begin(tt.present, tt.cfg)
			if got != tt.want || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// What becomes of a batch.
func TestJudge(t *testing.T) {
	const largest = math.MaxInt32
	ten := record{last: 9, run: 10} // 0 to 9, in batches nobody remembers
	five := record{last: 9, run: 10, newest: 5}
	later := record{last: 9, run: 3} // 7 to 9 in this epoch
	fresh := record{epoch: 1, last: 9, anew: true}
	around := record{last: 2, run: 10, newest: 4} // the newest were largest to 2
	tests := []struct {
		what   string
		r      record
		first  int32
		count  int
		repeat bool
		err    error
	}{
		{"the first number is 0", record{last: -1}, 0, 3, false, nil},
		{"and no other", record{last: -1}, 1, 3, false, ErrOutOfOrder},
		{"the next follows", ten, 10, 4, false, nil},
		{"a gap is refused", ten, 11, 1, false, ErrOutOfOrder},
		{"what is stored is a repeat", ten, 0, 10, true, nil},
		{"also a part of it", ten, 3, 2, true, nil},
		{"half of it is none", ten, 8, 4, false, ErrOutOfOrder},
		{"the newest batch again is a repeat", five, 5, 5, true, nil},
		{"and those before it", five, 0, 5, true, nil},
		{"its beginning alone is not: other events have its numbers", five, 5, 3, false, ErrOutOfOrder},
		{"nor its middle", five, 6, 1, false, ErrOutOfOrder},
		{"nor its end", five, 9, 1, false, ErrOutOfOrder},
		{"nor more than it", five, 4, 6, false, ErrOutOfOrder},
		{"what this epoch did not store is no repeat", later, 6, 2, false, ErrOutOfOrder},
		{"what it did store is", later, 7, 2, true, nil},
		{"a fresh epoch goes on", fresh, 10, 1, false, nil},
		{"or begins at 0", fresh, 0, 1, false, nil},
		{"and repeats nothing", fresh, 9, 1, false, ErrOutOfOrder},
		{"after the largest comes 0", record{last: largest, run: 1}, 0, 1, false, nil},
		{"a batch may run over it", record{last: largest - 1, run: 1}, largest, 3, false, nil},
		{"and is recognised again", around, largest, 4, true, nil},
		{"with what is before it", around, largest - 6, 6, true, nil},
		{"but not what was never stored", around, largest - 7, 2, false, ErrOutOfOrder},
		{"far ahead is not behind", record{last: 5, run: 6}, largest - 2, 1, false, ErrOutOfOrder},
		{"below 0 is no number", ten, -1, 1, false, ErrOutOfOrder},
		{"however low", ten, math.MinInt32, 11, false, ErrOutOfOrder},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			repeat, err := tt.r.judge(tt.first, tt.count)
			if repeat != tt.repeat || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Errorf("repeat %v, %v", repeat, err)
			}
		})
	}
}

// A first batch that is refused has decided all the same: the second cannot pass for it.
func TestTheFirstBatchDecides(t *testing.T) {
	fresh := record{epoch: 1, last: 2, anew: true}
	begun := fresh.decided(0)
	if _, err := begun.judge(3, 1); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("the second batch of an epoch that began at 0 followed the epoch before: %v", err)
	}
	if repeat, err := begun.judge(0, 3); repeat || err != nil {
		t.Errorf("the first again: %v, %v", repeat, err)
	}
	if _, err := fresh.decided(3).judge(0, 1); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("an epoch that went on began at 0: %v", err)
	}
}

// What is read from the log gives the record that storing gave, from wherever the reading
// begins, also when some of it is counted in already.
func TestLearnIsRepeatable(t *testing.T) {
	r := record{last: -1}
	type stored struct {
		p     eventlog.Producer
		count int
	}
	var log []stored
	store := func(epoch int16, first int32, count int) {
		if epoch != r.epoch {
			r = record{epoch: epoch, last: r.last, anew: true}
		}
		if repeat, err := r.judge(first, count); repeat || err != nil {
			t.Fatal(repeat, err)
		}
		r = r.decided(first).extend(first, count, uint32(count))
		log = append(log, stored{eventlog.Producer{ID: 1, Epoch: epoch, First: first, Set: true}, count})
	}
	var records []record
	for _, step := range []struct {
		epoch int16
		first int32
		count int
	}{{0, 0, 3}, {0, 3, 1}, {1, 4, 2}, {1, 6, 4}, {2, 0, 2}, {2, 2, 5}} {
		store(step.epoch, step.first, step.count)
		records = append(records, r)
	}
	for have := range records { // what a snapshot was taken of
		for from := 0; from <= have+1; from++ { // what it is true up to
			got := records[have]
			for _, s := range log[from:] {
				got = got.learn(s.p, s.count, 0)
			}
			if got.epoch != r.epoch || got.last != r.last || got.run != r.run {
				t.Errorf("snapshot after %d, read from %d: got %+v, want %+v", have, from, got, r)
			}
		}
	}
	unknown := record{epoch: -1}.learn(log[3].p, log[3].count, 77)
	if want := (record{epoch: 1, last: 9, run: 4, used: 77}); unknown != want {
		t.Errorf("of an unknown one: got %+v, want %+v", unknown, want)
	}
}
