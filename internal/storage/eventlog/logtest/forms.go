package logtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// FormOpaque is a form of the suite's own, which no engine can know anything of.
const FormOpaque eventlog.Form = 200

// opaqueHead is what Place fills in of a frame: number and time. The text follows.
const opaqueHead = 16

// Opaque makes a frame with a text.
func Opaque(count int, text string) eventlog.Batch {
	raw := append(bytes.Repeat([]byte{0xee}, opaqueHead), text...)
	return eventlog.Batch{Form: FormOpaque, Raw: raw, Count: count, Place: stampOpaque}
}

func stampOpaque(raw []byte, first eventlog.Sequence, ms int64) {
	binary.BigEndian.PutUint64(raw, uint64(first))
	binary.BigEndian.PutUint64(raw[8:], uint64(ms))
}

// OpaqueText gives the text of a run that Opaque made; an error unless it knows its place.
func OpaqueText(run eventlog.Run) (string, error) {
	if run.Form != FormOpaque || len(run.Events) > 0 || len(run.Raw) < opaqueHead {
		return "", fmt.Errorf("%s with %d events and %d bytes is no frame of the suite's", run.Form, len(run.Events), len(run.Raw))
	}
	first, ms := eventlog.Sequence(binary.BigEndian.Uint64(run.Raw)), int64(binary.BigEndian.Uint64(run.Raw[8:]))
	if first != run.First-eventlog.Sequence(run.Skip) || ms != run.Time.UnixMilli() {
		return "", fmt.Errorf("the frame was placed at %d, %d, but %d of its events stand before %d at %v", first, ms, run.Skip, run.First, run.Time)
	}
	return string(run.Raw[opaqueHead:]), nil
}

// texts shows everything up to the end: events as their texts, frames as TEXT*EVENTS, with +SKIP
// where some come before the cursor's place.
func (f *fixture) texts(c eventlog.Cursor) (all []string) {
	f.t.Helper()
	for {
		run, err := c.TryNext(f.t.Context())
		testkit.Must(f.t, err)
		if run.Len() == 0 {
			return all
		}
		testkit.MustEqual(f.t, c.At(), run.Next(), "where the cursor stands")
		all = append(all, f.show(run)...)
	}
}

func (f *fixture) show(run eventlog.Run) (texts []string) {
	f.t.Helper()
	if run.Form == eventlog.FormEvents {
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
		return texts
	}
	text, err := OpaqueText(run)
	testkit.Must(f.t, err)
	if text = fmt.Sprintf("%s*%d", text, run.Count); run.Skip > 0 {
		text += fmt.Sprintf("+%d", run.Skip)
	}
	return []string{text}
}

func (f *fixture) wantTexts(p eventlog.Partition, at eventlog.Position, want ...string) {
	f.t.Helper()
	if got := f.texts(f.cursor(p, at)); !slices.Equal(got, want) {
		f.t.Errorf("from %v: got %.300q, want %.300q", at, got, want)
	}
}

func (f *fixture) appendBatch(p eventlog.Partition, b eventlog.Batch) eventlog.Appended {
	f.t.Helper()
	done, err := eventlog.Append(f.t.Context(), p, b)
	testkit.Must(f.t, err)
	return done
}

// K4
func testFrames(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a", "b")
	frame := Opaque(3, "frame")
	before := bytes.Clone(frame.Raw)
	done := f.appendBatch(p, frame)
	testkit.Equal(t, done.First, 2, "the frame's number")
	testkit.Equal(t, string(frame.Raw), string(before), "the caller's bytes")
	f.append(p, "c")
	unplaced := Opaque(1, "")
	unplaced.Place = nil
	f.appendBatch(p, unplaced)
	c := f.cursor(p, eventlog.Earliest())
	for _, want := range []string{"[a b]", "[frame*3]", "[c]"} {
		testkit.Equal(t, fmt.Sprint(f.show(testkit.Value(c.Next(t.Context()))(t))), want)
	}
	run := testkit.Value(c.Next(t.Context()))(t)
	testkit.Equal(t, string(run.Raw), string(unplaced.Raw), "what has no place to fill in")
	testkit.Equal(t, run.First, 6, "behind the frame of 3")
	bounds := testkit.Value(p.Bounds(t.Context()))(t)
	testkit.Equal(t, bounds.Next, 7, "the next number")
}

// K4: another's memory is its own after Submit, and the frame is placed in the engine's copy.
func testFrameOwnership(t *testing.T, f *fixture) {
	p := f.partition(0)
	frame := Opaque(2, "text")
	r, err := p.Submit(t.Context(), frame)
	testkit.Must(t, err)
	for i := range frame.Raw {
		frame.Raw[i] = 'X'
	}
	testkit.Must(t, testkit.Err(r.Wait(t.Context())))
	f.wantTexts(p, eventlog.Earliest(), "text*2")
}

// K4
func testInsideFrame(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "0")
	frame := Opaque(4, "frame")
	frame.Producer = eventlog.Producer{ID: 77, Epoch: 3, First: 1000, Set: true}
	f.appendBatch(p, frame)
	f.append(p, "5")
	for skip := range eventlog.Sequence(4) {
		c := f.cursor(p, eventlog.At(1+skip))
		run := testkit.Value(c.Next(t.Context()))(t)
		want := eventlog.Producer{ID: 77, Epoch: 3, First: 1000 + int32(skip), Set: true}
		if run.First != 1+skip || run.Skip != int(skip) || run.Count != 4 || run.Len() != 4-int(skip) || run.Next() != 5 || run.Producer != want {
			t.Errorf("at %d: %+v", 1+skip, run)
		}
		testkit.Must(t, testkit.Err(OpaqueText(run)))
		testkit.Equal(t, c.At(), 5, "behind the frame")
		testkit.Equal(t, fmt.Sprint(f.texts(c)), "[5]")
	}
}

func testFrameRefusals(t *testing.T, f *fixture) {
	p := f.partition(0)
	noBytes, noEvents, mixed, huge := Opaque(1, ""), Opaque(0, "x"), Opaque(1, "x"), Opaque(1, "")
	noBytes.Raw = nil
	mixed.Events = []eventlog.Event{{Message: []byte("x")}}
	huge.Raw = make([]byte, eventlog.MaxBatchBytes+1)
	for _, tt := range []struct {
		batch eventlog.Batch
		want  error
	}{
		{noBytes, eventlog.ErrEmptyBatch}, {noEvents, eventlog.ErrEmptyBatch}, {mixed, eventlog.ErrForm}, {huge, eventlog.ErrTooLarge},
	} {
		testkit.ErrorIs(t, testkit.Err(eventlog.Append(t.Context(), p, tt.batch)), tt.want)
	}
	largest := Opaque(1, "")
	largest.Raw = make([]byte, eventlog.MaxBatchBytes)
	testkit.Equal(t, f.appendBatch(p, largest).First, 0, "the largest frame")
}

// testFrameTimes: readers by enqueued time are not misled by create times. // H4, K4
func testFrameTimes(t *testing.T, f *fixture) {
	p := f.partition(0)
	first := f.append(p, "a")
	future := Opaque(2, "future")
	future.MaxTime = first.Time.Add(1000 * time.Hour)
	second := f.appendBatch(p, future)
	past := Opaque(2, "past")
	past.MaxTime = time.UnixMilli(-1)
	later := f.appendBatch(p, past)
	for later.Time.Equal(second.Time) { // until the clock has moved on
		later = f.appendBatch(p, past)
	}
	f.append(p, "z")
	f.wantTexts(p, eventlog.Since(later.Time), "past*2", "z")
	if got := f.texts(f.cursor(p, eventlog.Since(first.Time))); len(got) < 4 || got[0] != "a" || got[1] != "future*2" {
		t.Errorf("since the first event: %q", got)
	}
	f.wantTexts(p, eventlog.Since(first.Time.Add(time.Hour)))
}

// K4: many frames among events, over a restart, and from every position.
func testFramesReopen(t *testing.T, f *fixture) {
	p := f.partition(0)
	var want []string
	first := map[eventlog.Sequence]int{} // what begins at a number
	for i := range 300 {
		first[f.next(p)] = i
		text := fmt.Sprintf("%d %s", i, bytes.Repeat([]byte("x"), i*7))
		if i%3 == 0 {
			f.append(p, text)
			want = append(want, text)
		} else {
			count := 1 + i%5
			f.appendBatch(p, Opaque(count, text))
			want = append(want, fmt.Sprintf("%s*%d", text, count))
		}
	}
	next := f.next(p)
	f.wantTexts(p, eventlog.Earliest(), want...)
	f.Engine = f.reopen()
	p = f.partition(0)
	testkit.Equal(t, f.next(p), next, "the next number")
	f.wantTexts(p, eventlog.Earliest(), want...)
	for at, i := range first {
		if i%17 == 0 {
			f.wantTexts(p, eventlog.At(at), want[i:]...)
		}
	}
	f.appendBatch(p, Opaque(2, "more"))
	f.wantTexts(p, eventlog.At(next), "more*2")
}

func (f *fixture) next(p eventlog.Partition) eventlog.Sequence {
	f.t.Helper()
	return testkit.Value(p.Bounds(f.t.Context()))(f.t).Next
}

// H4, K4
func testFramesRetention(t *testing.T, f *fixture) {
	const keep, count = 256 << 10, 3
	p := f.keeping(0, eventlog.Retention{Bytes: keep})
	text := string(bytes.Repeat([]byte("x"), 2000))
	for range 800 {
		f.appendBatch(p, Opaque(count, text))
	}
	f.runs()
	b := f.until(p, func(b eventlog.Bounds) bool { return b.First > 0 && b.Bytes <= keep })
	if b.Next != 800*count || b.Empty() || b.First%count != 0 {
		t.Errorf("bounds %+v: retention must keep the newest, and frames whole", b)
	}
	testkit.Equal(t, len(f.texts(f.cursor(p, eventlog.Earliest()))), int(b.Next-b.First)/count, "frames kept")
	testkit.Must(t, p.Trim(t.Context(), b.Next-1))
	b = testkit.Value(p.Bounds(t.Context()))(t)
	if got := f.texts(f.cursor(p, eventlog.At(b.Next-1))); len(got) != 1 || got[0] != fmt.Sprintf("%s*%d+%d", text, count, count-1) {
		t.Errorf("the last event, which was to stay, reads as %.60q", got)
	}
}

// H2, H3, K4
func testFramesOfManyWriters(t *testing.T, f *fixture) {
	const writers, each = 8, 40
	p := f.partition(0)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b := Opaque(2, fmt.Sprintf("%d/%d", w, i))
				if w%2 == 0 {
					b = batchOf(fmt.Sprintf("%d/%d", w, i))
				}
				if _, err := eventlog.Append(t.Context(), p, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var next [writers]int
	for _, text := range f.texts(f.cursor(p, eventlog.Earliest())) {
		var w, n int
		fmt.Sscanf(text, "%d/%d", &w, &n)
		testkit.MustEqual(t, n, next[w], "batch of writer %d", w)
		next[w]++
	}
	testkit.Equal(t, f.next(p), each*(writers/2+writers/2*2), "the next number")
}

// testEventsOnly: a reader of events comes as far as there are events, and is told of the frame
// behind them. // K4
func testEventsOnly(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a")
	f.appendBatch(p, Opaque(2, "frame"))
	c := eventlog.EventsOnly(f.cursor(p, eventlog.Earliest()))
	testkit.Equal(t, f.show(testkit.Value(c.Next(t.Context()))(t))[0], "a")
	for range 2 {
		if _, err := c.TryNext(t.Context()); !errors.Is(err, eventlog.ErrForm) || c.At() != 1 {
			t.Errorf("a reader of events at %d: %v", c.At(), err)
		}
	}
}
