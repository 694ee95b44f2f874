package frames_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

const hour = int64(time.Hour / time.Millisecond)

var (
	ann, bob = frames.WriterID{ID: 1}, frames.WriterID{ID: 2}
	pump     = frames.WriterID{ID: 1, Producer: true} // an idempotent producer with the number of a process
)

// step is a frame and what the rule says of it.
type step struct {
	frame frames.Header
	want  frames.Verdict
}

func data(w frames.WriterID, epoch frames.Epoch, q uint64, events int, time int64) frames.Header {
	return frames.Header{Kind: frames.KindData, Writer: w, Epoch: epoch, Q: q, Events: events, Batches: 1, Time: time, PayloadBytes: 24}
}

func fence(w frames.WriterID, epoch frames.Epoch, time int64) frames.Header {
	return frames.Header{Kind: frames.KindFence, Writer: w, Epoch: epoch, Time: time}
}

func counted(first eventlog.Sequence, time int64) frames.Verdict {
	return frames.Verdict{Outcome: frames.Counted, First: first, Time: time}
}

func void(r frames.Reason) frames.Verdict { return frames.Verdict{Outcome: frames.Void, Reason: r} }

var fenced = frames.Verdict{Outcome: frames.Fenced}

// C2: the rule, in sentences.
func TestTheRule(t *testing.T) {
	for name, steps := range map[string][]step{
		"events get the next numbers, whoever writes them": {
			{data(ann, 0, 0, 3, 10), counted(0, 10)},
			{data(bob, 0, 0, 2, 11), counted(3, 11)},
			{data(ann, 0, 1, 1, 12), counted(5, 12)},
		},
		"time never goes back": {
			{data(ann, 0, 0, 1, 50), counted(0, 50)},
			{data(bob, 0, 0, 1, 40), counted(1, 50)},
			{data(bob, 0, 1, 1, 60), counted(2, 60)},
		},
		"an unknown writer begins with (0, 0) and nothing else": {
			{data(ann, 0, 1, 1, 1), void(frames.Ahead)},
			{data(ann, 1, 0, 1, 1), void(frames.Ahead)},
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
		},
		"a frame that comes twice counts once": {
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
			{data(ann, 0, 0, 1, 1), void(frames.Behind)},
			{data(ann, 0, 1, 1, 1), counted(1, 1)},
			{data(ann, 0, 0, 1, 1), void(frames.Behind)},
		},
		"a missing frame voids those sent behind it": {
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
			{data(ann, 0, 2, 1, 1), void(frames.Ahead)},
			{data(ann, 0, 3, 1, 1), void(frames.Ahead)},
			{data(ann, 0, 1, 1, 1), counted(1, 1)},
		},
		"a fence voids all that comes later of lower epochs": {
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
			{fence(ann, 1, 1), fenced},
			{data(ann, 0, 1, 1, 1), void(frames.Behind)},
			{data(ann, 1, 0, 1, 1), counted(1, 1)},
			{data(ann, 0, 1, 1, 1), void(frames.Behind)},
			{data(ann, 1, 1, 1, 1), counted(2, 1)},
		},
		"a fence holds for its writer only": {
			{fence(ann, 9, 1), fenced},
			{data(bob, 0, 0, 1, 1), counted(0, 1)},
			{data(pump, 0, 0, 1, 1), counted(1, 1)},
			{data(ann, 0, 0, 1, 1), void(frames.Behind)},
		},
		"a fence that is not higher changes nothing": {
			{fence(ann, 2, 1), fenced},
			{data(ann, 2, 0, 1, 1), counted(0, 1)},
			{fence(ann, 2, 1), void(frames.Behind)},
			{fence(ann, 1, 1), void(frames.Behind)},
			{data(ann, 2, 1, 1, 1), counted(1, 1)},
		},
		"epoch 0 needs no fence and has none": {
			{fence(ann, 0, 1), void(frames.Behind)},
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
		},
		"a mark is nothing to a partition": {
			{frames.Header{Kind: frames.KindMark}, void(frames.Foreign)},
			{data(ann, 0, 0, 1, 1), counted(0, 1)},
		},
		"a process is forgotten after a day": {
			{data(ann, 0, 0, 1, 0), counted(0, 0)},
			{data(bob, 0, 0, 1, 24*hour-1), counted(1, 24*hour-1)},
			{data(ann, 0, 1, 1, 24*hour-1), counted(2, 24*hour-1)},
			{data(bob, 0, 1, 1, 48*hour-1), counted(3, 48*hour-1)},
			{data(ann, 0, 2, 1, 48*hour-1), void(frames.Ahead)},
			{data(ann, 0, 0, 1, 48*hour-1), counted(4, 48*hour-1)},
		},
		"a producer is forgotten after an hour": {
			{data(pump, 0, 0, 1, 0), counted(0, 0)},
			{data(bob, 0, 0, 1, hour-1), counted(1, hour-1)},
			{data(pump, 0, 1, 1, hour-1), counted(2, hour-1)},
			{data(bob, 0, 1, 1, 2*hour-1), counted(3, 2*hour-1)},
			{data(pump, 0, 2, 1, 2*hour-1), void(frames.Ahead)},
		},
		"a forgotten writer goes on with a fence": {
			{fence(ann, 7, 0), fenced},
			{data(bob, 0, 0, 1, 24*hour), counted(0, 24*hour)},
			{data(ann, 7, 0, 1, 24*hour), void(frames.Ahead)},
			{fence(ann, 8, 24*hour), fenced},
			{data(ann, 8, 0, 1, 24*hour), counted(1, 24*hour)},
		},
		"what is left of a forgotten writer is void": {
			{data(ann, 0, 0, 1, 5), counted(0, 5)},
			{fence(ann, 1, 5), fenced},
			{data(bob, 0, 0, 1, 30*hour), counted(1, 30*hour)},
			{data(ann, 0, 0, 1, 5), void(frames.Stale)},
			{fence(ann, 1, 5), void(frames.Stale)},
		},
		"a frame is stale half a day behind the newest, and half an hour for a producer": {
			{data(bob, 0, 0, 1, 12*hour), counted(0, 12*hour)},
			{data(ann, 0, 0, 1, 0), void(frames.Stale)},
			{data(ann, 0, 0, 1, 1), counted(1, 12*hour)},
			{data(pump, 0, 0, 1, 12*hour-hour/2), void(frames.Stale)},
			{data(pump, 0, 0, 1, 12*hour-hour/2+1), counted(2, 12*hour)},
		},
		// Ann's first frame is late; her fence came through. The partition has slept for days, so
		// that by its own time as of the fence she would be forgotten with Bob's next frame.
		"a fence outlives the frames that were sent before it, also where the partition's time leaps": {
			{data(bob, 0, 0, 1, 0), counted(0, 0)},
			{fence(ann, 1, 100*hour), fenced},
			{data(bob, 0, 1, 1, 100*hour), counted(1, 100*hour)},
			{data(ann, 0, 0, 1, 100*hour), void(frames.Behind)},
			{data(ann, 1, 0, 1, 100*hour), counted(2, 100*hour)},
		},
		"a fence and what is void do not move time": {
			{data(ann, 0, 0, 1, 10), counted(0, 10)},
			{fence(bob, 1, 20), fenced},
			{data(bob, 1, 1, 1, 30), void(frames.Ahead)},
			{data(ann, 0, 1, 1, 11), counted(1, 11)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := frames.NewPartition()
			for i, s := range steps {
				testkit.Equal(t, p.Apply(frames.StreamSeq(i+1), s.frame), s.want, "frame %d", i)
			}
			again := frames.NewPartition()
			for i, s := range steps { // a reader that begins with a mark, wherever it was made, is equal
				snapshot, ok := again.Snapshot("p")
				testkit.MustThat(t, ok, "no snapshot")
				again = frames.Restore(frames.StreamSeq(i), snapshot)
				testkit.Equal(t, again.Apply(frames.StreamSeq(i+1), s.frame), s.want, "frame %d behind a mark", i)
			}
			one, _ := p.Snapshot("p")
			other, _ := again.Snapshot("p")
			testkit.Diff(t, one, other)
		})
	}
}

func TestFramesBeforeTheFoldAreOld(t *testing.T) {
	p := frames.NewPartition()
	p.Apply(5, data(ann, 0, 0, 1, 1))
	for _, at := range []frames.StreamSeq{0, 4, 5} {
		testkit.Equal(t, p.Apply(at, data(ann, 0, 1, 1, 1)).Outcome, frames.Old, "at %d", at)
	}
	testkit.Equal(t, p.Apply(6, data(ann, 0, 1, 1, 1)), counted(1, 1))
}

func TestBytesAreThoseOfWhatCounts(t *testing.T) {
	p := frames.NewPartition()
	p.Apply(1, data(ann, 0, 0, 1, 1))
	p.Apply(2, data(ann, 0, 0, 1, 1))
	p.Apply(3, data(ann, 0, 1, 4, 1))
	p.Apply(4, fence(ann, 1, 1))
	testkit.Equal(t, p.State().Bytes, 200)
	p.Trim(frames.Head{First: 1, Seq: 3, Bytes: 100})
	testkit.Equal(t, p.State().Held(), 100)
	p.Trim(frames.Head{First: 0, Seq: 1})
	p.Trim(frames.Head{First: 6, Seq: 5, Bytes: 200})
	testkit.Equal(t, p.State().Head, frames.Head{First: 1, Seq: 3, Bytes: 100}, "it goes neither back nor past the end")
	testkit.Equal(t, p.State().Stable(), 5)
}

// based gives a frame the base of a writer that had folded so much.
func based(h frames.Header, seq frames.StreamSeq, next eventlog.Sequence) frames.Header {
	h.Base = frames.Base{Seq: seq, Next: next}
	return h
}

// C1: a reader that has missed something learns it from the bases of others.
func TestABaseThatDisagreesIsAHole(t *testing.T) {
	for name, tt := range map[string]struct {
		frames  map[frames.StreamSeq]frames.Header // that the reader got; the last one is judged
		last    frames.StreamSeq
		want    frames.Outcome
		missing frames.Missing
	}{
		"none when all is there": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 3: based(data(bob, 0, 0, 1, 1), 2, 3)},
			last:   3, want: frames.Counted,
		},
		"a frame is missing": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 3: based(data(bob, 0, 0, 1, 1), 2, 5)},
			last:   3, want: frames.Hole, missing: frames.Missing{First: 0, Next: 5},
		},
		"only what lies behind the last agreement is in doubt": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 2: based(data(ann, 0, 1, 1, 1), 1, 3), 5: based(data(bob, 0, 0, 1, 1), 4, 6)},
			last:   5, want: frames.Hole, missing: frames.Missing{First: 3, Next: 6},
		},
		"a fence is missing, and the reader counted too much": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 3: data(ann, 0, 1, 4, 1), 4: based(data(bob, 0, 0, 1, 1), 3, 3)},
			last:   4, want: frames.Hole, missing: frames.Missing{First: 0, Next: 7},
		},
		"the stream has lost its end, which a writer had seen": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 2: based(data(bob, 0, 0, 1, 1), 9, 3)},
			last:   2, want: frames.Hole, missing: frames.Missing{First: 0, Next: 3},
		},
		"a void frame speaks for its base, too": {
			frames: map[frames.StreamSeq]frames.Header{1: data(ann, 0, 0, 3, 1), 3: based(data(bob, 0, 7, 1, 1), 2, 5)},
			last:   3, want: frames.Hole, missing: frames.Missing{First: 0, Next: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := frames.NewPartition()
			var got frames.Verdict
			for at := range tt.last + 1 {
				if h, ok := tt.frames[at]; ok {
					got = p.Apply(at, h)
				}
			}
			testkit.Equal(t, got.Outcome, tt.want)
			testkit.Equal(t, got.Missing, tt.missing)
			if tt.want != frames.Hole {
				return
			}
			testkit.Equal(t, p.Apply(tt.last+1, data(bob, 0, 1, 1, 1)).Outcome, frames.Hole, "all that follows is unknown")
			_, ok := p.Snapshot("p")
			testkit.That(t, !ok, "a fold with a hole makes no mark")
			testkit.Equal(t, p.ApplyAnyway(tt.last, tt.frames[tt.last]).Outcome != frames.Hole, true, "unless it is sure")
			testkit.Equal(t, p.Apply(tt.last+1, fence(bob, 9, 1)), fenced, "and goes on")
			testkit.Equal(t, p.ApplyAnyway(tt.last, tt.frames[tt.last]).Outcome, frames.Old)
		})
	}
}

func TestABaseBeforeAllThatIsRememberedIsNotChecked(t *testing.T) {
	p := frames.NewPartition()
	for i := range 200 {
		testkit.MustEqual(t, p.Apply(frames.StreamSeq(i+1), based(data(ann, 0, uint64(i), 1, 1), frames.StreamSeq(i), eventlog.Sequence(i))), counted(eventlog.Sequence(i), 1))
	}
	testkit.Equal(t, p.Agrees(3, 77), true, "forgotten")
	testkit.Equal(t, p.Agrees(190, 190), true)
	testkit.Equal(t, p.Agrees(190, 191), false)
	testkit.Equal(t, p.Agrees(500, 77), true, "not reached yet")
	testkit.Equal(t, p.Apply(201, based(data(bob, 0, 0, 1, 1), 3, 77)), counted(200, 1))
	restored, _ := p.Snapshot("p")
	q := frames.Restore(201, restored)
	testkit.Equal(t, q.Apply(202, based(data(bob, 0, 1, 1, 1), 190, 77)), counted(201, 1), "a fold knows nothing before its mark")
	testkit.Equal(t, q.Apply(203, based(data(bob, 0, 2, 1, 1), 201, 77)).Outcome, frames.Hole)
}

func TestAStampAgreesWithTheFold(t *testing.T) {
	p := frames.NewPartition()
	p.Apply(7, data(ann, 0, 0, 3, 1000))
	for name, tt := range map[string]struct {
		folded frames.StreamSeq
		now    int64
		base   frames.Base
		time   int64
	}{
		"the clock is ahead":                      {7, 2000, frames.Base{Seq: 7, Next: 3}, 2000},
		"the clock is behind":                     {7, 500, frames.Base{Seq: 7, Next: 3}, 1000},
		"other partitions of the stream go on":    {90, 2000, frames.Base{Seq: 90, Next: 3}, 2000},
		"the stream's fold is behind this one":    {5, 2000, frames.Base{Seq: 7, Next: 3}, 2000},
		"a clock beyond all bounds is held there": {7, 1 << 60, frames.Base{Seq: 7, Next: 3}, 253402300799999},
	} {
		t.Run(name, func(t *testing.T) {
			base, time := p.Stamp(tt.folded, tt.now)
			testkit.Equal(t, base, tt.base)
			testkit.Equal(t, time, tt.time)
		})
	}
}

// Where a reader that looks for a number or a time may begin.
func TestAStateIsBefore(t *testing.T) {
	p := frames.NewPartition()
	testkit.That(t, p.State().Before(0) && p.State().BeforeTime(1), "the start is before all")
	p.Apply(1, data(ann, 0, 0, 3, 50))
	for number, want := range map[eventlog.Sequence]bool{2: false, 3: true, 4: true} {
		testkit.Equal(t, p.State().Before(number), want, "before number %d", number)
	}
	for time, want := range map[int64]bool{49: false, 50: false, 51: true} { // the last event is of 50, and so may be the next
		testkit.Equal(t, p.State().BeforeTime(time), want, "before time %d", time)
	}
}

// Rows of writers that nobody remembers are not kept for ever.
func TestTheTableOfWritersIsBounded(t *testing.T) {
	p := frames.NewPartition()
	for i := range 10_000 {
		w := frames.WriterID{ID: uint64(i), Producer: true}
		testkit.MustEqual(t, p.Apply(frames.StreamSeq(i+1), data(w, 0, 0, 1, int64(i)*hour/10)).Outcome, frames.Counted)
	}
	testkit.That(t, p.Rows() < 50, "%d rows for 10 writers an hour", p.Rows())
}
