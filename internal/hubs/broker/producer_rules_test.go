package broker

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sizes are batches of which nobody knows where they are.
func sizes(counts ...uint32) (all recent) {
	for i, n := range counts {
		all[i].count = n
	}
	return all
}

// How an epoch begins.
func TestBegin(t *testing.T) {
	known := &record{epoch: 3, last: 9, run: 5, recent: sizes(2), used: 1}
	quiet := &record{epoch: 3, last: 9} // the epoch has stored nothing, those before it have
	blank := &record{epoch: 3, last: 41, none: true}
	exhausted := &record{epoch: math.MaxInt16, last: 9, run: 1}
	tests := []struct {
		what    string
		present *record
		cfg     ProducerConfig
		want    record
		err     error
	}{
		{"a new producer begins with epoch 0 behind 0", nil, ProducerConfig{}, record{none: true}, nil},
		{"or with the epoch it asks for", nil, ProducerConfig{Epoch: new(int16(7))}, record{epoch: 7, none: true}, nil},
		{"and behind the number it gives", nil, ProducerConfig{Last: new(int32(41))}, record{last: 41, none: true}, nil},
		{"or at 0", nil, ProducerConfig{Last: atZero}, record{last: -1, none: true}, nil},
		{"a known one gets the next epoch and goes on", known, ProducerConfig{}, record{epoch: 4, last: 9}, nil},
		{"a higher epoch is taken", known, ProducerConfig{Epoch: new(int16(8))}, record{epoch: 8, last: 9}, nil},
		{"it goes on behind what is stored", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(9))}, record{epoch: 4, last: 9}, nil},
		{"or begins at 0", known, ProducerConfig{Epoch: new(int16(4)), Last: atZero}, record{epoch: 4, last: -1, none: true}, nil},
		{"but nowhere else, whatever it believes", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(5))}, record{epoch: 4, last: 9}, nil},
		{"also where the broker chose the epoch", known, ProducerConfig{Last: new(int32(20))}, record{epoch: 4, last: 9}, nil},
		{"the same epoch goes on", known, ProducerConfig{Epoch: new(int16(3))}, *known, nil},
		{"whatever the producer missed", known, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(7))}, *known, nil},
		{"or believes", known, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(99))}, *known, nil},
		{"it does not begin at 0 again", known, ProducerConfig{Epoch: new(int16(3)), Last: atZero}, *known, nil},
		{"unless it stored nothing", quiet, ProducerConfig{Epoch: new(int16(3)), Last: atZero}, record{epoch: 3, last: -1, none: true}, nil},
		{"and else goes on", quiet, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(2))}, record{epoch: 3, last: 9}, nil},
		{"one that never stored anything begins where it says", blank, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(2))}, record{epoch: 3, last: 2, none: true}, nil},
		{"or behind 0", blank, ProducerConfig{Epoch: new(int16(5))}, record{epoch: 5, none: true}, nil},
		{"a lower epoch is refused", known, ProducerConfig{Epoch: new(int16(2))}, record{}, ErrProducerFenced},
		{"a negative one too", nil, ProducerConfig{Epoch: new(int16(-1))}, record{}, ErrProducerFenced},
		{"and a negative number", nil, ProducerConfig{Last: new(int32(-2))}, record{}, ErrOutOfOrder},
		{"frames of a new one begin where they say", nil, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(41)), frames: true}, record{epoch: 3, last: 41, none: true}, nil},
		{"those of a known one at 0 of the next epoch", known, ProducerConfig{Epoch: new(int16(4)), Last: atZero, frames: true}, record{epoch: 4, last: -1, none: true}, nil},
		{"and nowhere else", known, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(9)), frames: true}, record{}, ErrOutOfOrder},
		{"unless nothing is stored", blank, ProducerConfig{Epoch: new(int16(4)), Last: new(int32(9)), frames: true}, record{epoch: 4, last: 9, none: true}, nil},
		{"of several at once the first counts", blank, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(9)), frames: true}, *blank, nil},
		{"also behind what is stored", quiet, ProducerConfig{Epoch: new(int16(3)), Last: new(int32(20)), frames: true}, *quiet, nil},
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
	five := record{last: 9, run: 10, recent: sizes(5)}
	three := record{last: 9, run: 10, recent: sizes(1, 3, 2)} // 4 to 5, 6 to 8, 9
	later := record{last: 9, run: 3}                          // 7 to 9 in this epoch
	fresh := record{epoch: 1, last: 9}
	around := record{last: 2, run: 10, recent: sizes(4)} // the newest were largest to 2
	tests := []struct {
		what   string
		r      record
		first  int32
		count  int
		repeat bool
		err    string
	}{
		{"the first number is behind the one told", record{none: true}, 1, 3, false, ""},
		{"and no other", record{none: true}, 2, 3, false, "numbers 2 to 4, the next is 1: "},
		{"nor that one", record{none: true}, 0, 3, false, "old sequence numbers 0 to 2, the next is 1: "},
		{"or it is 0", record{last: -1, none: true}, 0, 3, false, ""},
		{"and none else", record{last: -1, none: true}, 1, 3, false, "numbers 1 to 3, the next is 0: "},
		{"the next follows", ten, 10, 4, false, ""},
		{"a gap is refused", ten, 11, 1, false, "numbers 11 to 11, the next is 10: "},
		{"what is stored is a repeat", ten, 0, 10, true, ""},
		{"also a part of it", ten, 3, 2, true, ""},
		{"half of it is none", ten, 8, 4, false, "old sequence"},
		{"the newest batch again is a repeat", five, 5, 5, true, ""},
		{"and those before it", five, 0, 5, true, ""},
		{"its beginning alone is not: other events have its numbers", five, 5, 3, false, "old sequence"},
		{"nor its middle", five, 6, 1, false, "old sequence"},
		{"nor its end", five, 9, 1, false, "old sequence"},
		{"nor more than it", five, 4, 6, false, "old sequence"},
		{"those before it are known one by one", three, 6, 3, true, ""},
		{"each of them", three, 4, 2, true, ""},
		{"and not in parts", three, 7, 2, false, "old sequence"},
		{"nor together", three, 4, 5, false, "old sequence"},
		{"nor across", three, 5, 2, false, "old sequence"},
		{"nor with some before them", three, 3, 3, false, "old sequence"},
		{"of which only the sum is known", three, 1, 2, true, ""},
		{"what this epoch did not store is no repeat", later, 6, 2, false, "old sequence"},
		{"what it did store is", later, 7, 2, true, ""},
		{"a fresh epoch goes on", fresh, 10, 1, false, ""},
		{"and does not begin at 0", fresh, 0, 1, false, "old sequence"},
		{"and repeats nothing", fresh, 9, 1, false, "old sequence"},
		{"after the largest comes 0", record{last: largest, run: 1}, 0, 1, false, ""},
		{"a batch may run over it", record{last: largest - 1, run: 1}, largest, 3, false, ""},
		{"and is recognised again", around, largest, 4, true, ""},
		{"with what is before it", around, largest - 6, 6, true, ""},
		{"but not what was never stored", around, largest - 7, 2, false, "old sequence"},
		{"far ahead is not behind", record{last: 5, run: 6}, largest/2 + 1, 1, false, "numbers"},
		{"below 0 is no number", ten, -1, 1, false, "-1 is no number of an event: "},
		{"however low", ten, math.MinInt32, 11, false, "-2147483648 is no number of an event: "},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			repeat, err := tt.r.judge(tt.first, tt.count)
			if repeat != tt.repeat || (err != nil) != (tt.err != "") {
				t.Fatalf("repeat %v, %v", repeat, err)
			}
			if err != nil && (!errors.Is(err, ErrOutOfOrder) || !strings.HasPrefix(err.Error(), tt.err)) {
				t.Errorf("got %q, want %q", err, tt.err)
			}
		})
	}
}

// A first batch that is refused is waited for: the second cannot pass for it.
func TestTheFirstBatchIsWaitedFor(t *testing.T) {
	for _, last := range []int32{-1, 0, 9} {
		r := record{last: last, none: true}
		testkit.ErrorIs(t, testkit.Err(r.judge(last+2, 1)), ErrOutOfOrder, "the second batch behind %d", last)
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
			r = record{epoch: epoch, last: r.last}
		}
		if first == 0 {
			r.last = noNumber
		}
		if repeat, err := r.judge(first, count); repeat || err != nil {
			t.Fatal(repeat, err)
		}
		r = r.extend(first, count, []part{{count: uint32(count)}})
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
				got = got.learn(s.p, s.count, nil, 0)
			}
			if got.epoch != r.epoch || got.last != r.last || got.run != r.run {
				t.Errorf("snapshot after %d, read from %d: got %+v, want %+v", have, from, got, r)
			}
		}
	}
	unknown := record{epoch: -1}.learn(log[3].p, log[3].count, nil, 77)
	testkit.Equal(t, unknown, record{epoch: 1, last: 9, run: 4, used: 77}, "of an unknown one")
}
