package frames_test

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// What is done for each frame needs no memory.
func TestFramesAreHandledWithoutAllocating(t *testing.T) {
	batches := []frames.Batch{{Events: 2, Body: make([]byte, 1000)}, {Events: 1}}
	buf, p, i := make([]byte, 0, 4096), frames.NewPartition(), 0
	p.Apply(1, data(ann, 0, 0, 1, 1))
	allocs := testing.AllocsPerRun(100, func() {
		i++
		h := frames.Header{Writer: ann, Q: uint64(i)}
		h.Base, h.Time = p.Stamp(frames.StreamSeq(i), int64(i))
		buf = frames.AppendData(buf[:0], h, batches)
		f, err := frames.Decode(buf)
		if err != nil || p.Apply(frames.StreamSeq(i+1), f.Header).Outcome != frames.Counted {
			t.Fatal("void, or no frame: ", err)
		}
		for _, b := range f.All() {
			i += 0 * b.Events
		}
	})
	if limit := 1.0; allocs >= limit { // the history grows a few times at first
		t.Errorf("%v allocations for each frame", allocs)
	}
}

func BenchmarkApply(b *testing.B) {
	p := frames.NewPartition()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h := data(frames.WriterID{ID: uint64(i % 3)}, 0, uint64(i/3), 10, int64(i))
		h.Base, h.Time = p.Stamp(frames.StreamSeq(i), h.Time)
		if p.Apply(frames.StreamSeq(i+1), h).Outcome != frames.Counted {
			b.Fatal("void")
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	batches := make([]frames.Batch, 10)
	for i := range batches {
		batches[i] = frames.Batch{Events: 10, Body: make([]byte, 10<<10), Producer: eventlog.Producer{ID: 7, Set: true}}
	}
	buf := frames.AppendData(nil, data(ann, 0, 0, 0, 1), batches)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = frames.AppendData(buf[:0], data(ann, 0, 0, 0, 1), batches)
	}
}

func BenchmarkDecode(b *testing.B) {
	batches := make([]frames.Batch, 10)
	for i := range batches {
		batches[i] = frames.Batch{Events: 10, Body: make([]byte, 10<<10)}
	}
	buf := frames.AppendData(nil, data(ann, 0, 0, 0, 1), batches)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := frames.Decode(buf)
		if err != nil {
			b.Fatal(err)
		}
		events := 0
		for _, batch := range f.All() {
			events += batch.Events
		}
		if events != f.Events {
			b.Fatal(events)
		}
	}
}

func BenchmarkDecodeHeader(b *testing.B) {
	buf := frames.AppendFence(nil, fence(ann, 1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := frames.DecodeHeader(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriter takes a batch through the window: submitted, sent, acknowledged, folded.
func BenchmarkWriter(b *testing.B) {
	w, a, body := frames.NewWriter(ann), frames.Actions{}, make([]byte, 100)
	b.ReportAllocs()
	for i := frames.StreamSeq(1); b.Loop(); i++ {
		w.Submit(frames.Batch{Events: 1, Body: body})
		w.Take(&a)
		w.Acknowledged(a.Frames[0].ID, i)
		w.Folded(i, []frames.Seen{{At: i, Header: a.Frames[0].Header, Verdict: frames.Verdict{Outcome: frames.Counted}}})
		w.Take(&a)
		if len(a.Answers) != 1 {
			b.Fatal("not confirmed")
		}
	}
}
