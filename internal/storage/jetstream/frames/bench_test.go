package frames_test

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

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
