package logs

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

// drawBatch makes any batch that an engine stores.
func drawBatch(t *rapid.T) eventlog.Batch {
	var b eventlog.Batch
	if rapid.Bool().Draw(t, "events") {
		for range rapid.IntRange(1, 5).Draw(t, "count") {
			b.Events = append(b.Events, eventlog.Event{
				Key:     rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "key"),
				Message: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "message"),
			})
		}
	} else {
		b = logtest.Opaque(rapid.IntRange(1, 100).Draw(t, "count"), rapid.String().Draw(t, "text"))
		if rapid.Bool().Draw(t, "created") {
			b.MaxTime = time.UnixMilli(rapid.Int64Range(-1000, 1000).Draw(t, "create time"))
		}
		if rapid.Bool().Draw(t, "placed") {
			b.Place = nil
		}
	}
	if rapid.Bool().Draw(t, "producer") {
		b.Producer = eventlog.Producer{ID: rapid.Int64().Draw(t, "id"), First: 7, Set: true}
	}
	return b
}

// What a batch becomes in a frame comes out as it was. // H3, K4
func TestBatchesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		own := rapid.SampledFrom([]int64{0, 1234}).Draw(t, "own time")
		message := frames.AppendData(nil, frames.Header{Time: 9999}, []frames.Batch{encodeBatch(b, own)})
		testkit.MustThat(t, len(message) <= frames.HeaderBytes+frames.BatchHeaderBytes+bodyOverhead+b.Bytes(), "%d bytes are too many", len(message))
		frame, err := frames.Decode(message)
		testkit.Must(t, err)
		all, err := decodeFrame(nil, frame, 50, 9999)
		testkit.Must(t, err)
		testkit.MustEqual(t, len(all), 1)
		testkit.Equal(t, all[0].bytes(), b.Bytes(), "what it measures")
		at := rapid.Int64Range(0, int64(b.Len()-1)).Draw(t, "at")
		run, _, err := all[0].run(50+eventlog.Sequence(at), nil, fillers)
		testkit.Must(t, err)
		wantTime := int64(9999)
		if own != 0 {
			wantTime = own
		}
		testkit.Equal(t, run.Time.UnixMilli(), wantTime, "time")
		testkit.Equal(t, run.Next(), 50+eventlog.Sequence(b.Len()), "next")
		testkit.Equal(t, run.Producer.Set, b.Producer.Set)
		if b.Form == eventlog.FormEvents {
			for i, e := range run.Events {
				was := b.Events[int(at)+i]
				testkit.That(t, bytes.Equal(e.Key, was.Key) && bytes.Equal(e.Message, was.Message), "event %d", i)
			}
			return
		}
		if b.MaxTime.IsZero() {
			b.MaxTime = time.UnixMilli(wantTime)
		}
		testkit.Equal(t, run.MaxTime.UnixMilli(), b.MaxTime.UnixMilli(), "create time")
		raw := bytes.Clone(b.Raw)
		if b.Place != nil {
			b.Place(raw, 50, wantTime)
		}
		testkit.Equal(t, string(run.Raw), string(raw))
	})
}

// FuzzBatch: nothing that is stored makes a reader panic or read beyond it.
func FuzzBatch(f *testing.F) {
	f.Add([]byte{}, 1, byte(0))
	f.Add(encodeBatch(logtest.Opaque(2, "x"), 5).Body, 2, byte(logtest.FormOpaque))
	f.Add(encodeBatch(eventlog.Batch{Events: []eventlog.Event{{Key: []byte("k"), Message: []byte("m")}}}, 0).Body, 1, byte(0))
	f.Fuzz(func(t *testing.T, body []byte, events int, form byte) {
		if events < 1 || events > 1<<20 {
			return
		}
		b, err := decodeBatch(frames.Batch{Events: events, Form: form, Body: body}, 10, 20)
		if err != nil {
			return
		}
		run, _, err := b.run(10, nil, Fillers{logtest.FormOpaque: func([]byte, eventlog.Sequence, int64) {}})
		if err == nil && run.Len() != events {
			t.Errorf("%d events of %d", run.Len(), events)
		}
	})
}

// FuzzAnnouncement: whatever is heard does no harm.
func FuzzAnnouncement(f *testing.F) {
	fence := frames.AppendFence(nil, frames.Header{Epoch: 1})
	mark := frames.AppendMark(nil, frames.Header{}, frames.NewMarks(3, nil, 0)[0])
	f.Add(appendAnnounced(appendAnnounced(nil, 7, "0", fence), 8, markSubject, mark))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := decodeAnnouncement(data)
		for _, h := range all {
			if err == nil && h.subject == markSubject && len(h.mark) == 0 {
				t.Error("a mark without content")
			}
		}
	})
}

func TestAnnouncements(t *testing.T) {
	fence := frames.AppendFence(nil, frames.Header{Epoch: 1 << 32})
	mark := frames.AppendMark(nil, frames.Header{}, frames.NewMarks(3, nil, 0)[0])
	news := appendAnnounced(appendAnnounced(nil, 7, "0", fence), 8, markSubject, mark)
	all, err := decodeAnnouncement(news)
	testkit.Must(t, err)
	testkit.MustEqual(t, len(all), 2)
	testkit.Equal(t, all[0].seq, 7)
	testkit.Equal(t, all[0].header.Epoch, frames.Epoch(1<<32))
	testkit.Equal(t, string(all[1].mark), string(mark))
	for n := range len(news) {
		if got, err := decodeAnnouncement(news[:n]); err == nil && len(got) == 2 {
			t.Errorf("%d bytes of %d are enough", n, len(news))
		}
	}
}
