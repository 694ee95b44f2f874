package demo

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// holding makes holdings of one partition, "0".
func holding(blobs, open map[int64]int64, saved, end int64) holdings {
	h := newHoldings()
	for period, n := range blobs {
		h.blobs[page{"0", period}] = n
	}
	for period, n := range open {
		h.open[page{"0", period}] = n
	}
	h.saved["0"], h.ends["0"] = saved, end
	return h
}

// S: acknowledged = in blobs + on their way, and nothing else.
func TestLiveBooks(t *testing.T) {
	before := counts{0: {Begun: 100, Acked: 100}, 60: {Begun: 50, Acked: 40}}
	after := counts{0: {Begun: 100, Acked: 100}, 60: {Begun: 60, Acked: 55}}
	for name, tt := range map[string]struct {
		holdings
		want Books
	}{
		"all is there": {
			holding(map[int64]int64{0: 100}, map[int64]int64{60: 30}, 129, 139),
			Books{Acknowledged: 140, InBlobs: 100, OnTheWay: 40},
		},
		"a period that moves from a state to its blob is seen in both": {
			holding(map[int64]int64{0: 100}, map[int64]int64{0: 90, 60: 30}, 129, 139),
			Books{Acknowledged: 140, InBlobs: 100, OnTheWay: 40},
		},
		"more was read than was acknowledged before": {
			holding(map[int64]int64{0: 100}, map[int64]int64{60: 55}, 154, 154),
			Books{Acknowledged: 140, InBlobs: 100, OnTheWay: 40},
		},
		"nothing is saved yet": {
			holding(nil, nil, -1, 139),
			Books{Acknowledged: 140, OnTheWay: 140},
		},
		"ten are gone": {
			holding(map[int64]int64{0: 90}, map[int64]int64{60: 40}, 139, 139),
			Books{Acknowledged: 140, InBlobs: 90, OnTheWay: 40, Lost: 10},
		},
		"seven are counted twice": {
			holding(map[int64]int64{0: 107}, map[int64]int64{60: 60}, 159, 159),
			Books{Acknowledged: 140, InBlobs: 107, OnTheWay: 33, CountedTwice: 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := liveBooks(before, after, tt.holdings, 0)
			testkit.Equal(t, got, tt.want)
			testkit.Equal(t, got.Acknowledged, got.InBlobs+got.OnTheWay+got.Lost, "the sum")
		})
	}
}

// S: at the end each minute balances by itself: a loss in one does not hide behind a repeat in another.
func TestFinalBooks(t *testing.T) {
	sent := counts{0: {Begun: 100, Acked: 100}, 60: {Begun: 50, Acked: 40}}
	for name, tt := range map[string]struct {
		blobs map[int64]int64
		want  Books
	}{
		"all is there":                      {map[int64]int64{0: 100, 60: 40}, Books{Acknowledged: 140, InBlobs: 140, ReadTwice: 3}},
		"some were stored without a word":   {map[int64]int64{0: 100, 60: 45}, Books{Acknowledged: 140, InBlobs: 145, ReadTwice: 3}},
		"one is lost and one counted twice": {map[int64]int64{0: 99, 60: 51}, Books{Acknowledged: 140, InBlobs: 150, Lost: 1, CountedTwice: 1, ReadTwice: 3}},
		"a minute that nobody sent":         {map[int64]int64{0: 100, 60: 40, 120: 2}, Books{Acknowledged: 140, InBlobs: 142, CountedTwice: 2, ReadTwice: 3}},
		"nothing arrived":                   {nil, Books{Acknowledged: 140, Lost: 140, ReadTwice: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := finalBooks(sent, holding(tt.blobs, nil, 139, 139), 3)
			testkit.Equal(t, got, tt.want)
			testkit.Equal(t, got.balanced(), tt.want.Lost+tt.want.CountedTwice == 0, "they balance")
		})
	}
	h := holding(map[int64]int64{0: 100, 60: 40}, nil, 139, 139)
	h.repeats[page{"0", 60}] = 2
	testkit.Equal(t, finalBooks(sent, h, 0).CountedTwice, 2, "readings that stand twice in a blob")
}

func TestDrained(t *testing.T) {
	testkit.That(t, holding(nil, nil, 139, 139).drained(), "everything was read")
	testkit.That(t, !holding(nil, nil, 138, 139).drained(), "one event was not read")
	testkit.That(t, !newHoldings().drained(), "nothing is known")
}

func TestReadTwice(t *testing.T) {
	var r rereads
	r.note("0", 0, 99)
	r.note("0", 100, 149)
	r.note("1", 0, 9)
	testkit.Equal(t, r.twice, 0, "events read once")
	r.note("0", 120, 219) // another consumer began at the last checkpoint
	testkit.Equal(t, r.twice, 30, "events read twice")
	r.note("0", 200, 210)
	testkit.Equal(t, r.twice, 41, "events read again once more")
}

// S: what nobody reads is behind as well, for as long as its reader is dead.
func TestPartitionsOfTheDeadAreBehind(t *testing.T) {
	ended := noon.Add(-12 * time.Second)
	dead, alive := &child{name: "consumer-1", ending: "killed", ended: ended, cmd: &exec.Cmd{Process: &os.Process{}}}, &child{name: "consumer-2", cmd: &exec.Cmd{Process: &os.Process{}}}
	now := map[string]progress{"consumer-2": {events: 10, behind: 4 * time.Millisecond, at: noon}}
	for owner, want := range map[string]time.Duration{"consumer-1": 12 * time.Second, "consumer-2": 4 * time.Millisecond} {
		b := boardAt(0, owner)
		(&flow{}).measure(b, []*child{dead, alive}, now)
		testkit.Equal(t, b.Behind, want, "behind, with the partition at "+owner)
	}
}
