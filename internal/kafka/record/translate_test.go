package record

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// numbered are records whose values are their numbers.
func numbered(n, bytesEach int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i] = Record{Timestamp: baseTimestamp, Value: append(fmt.Appendf(nil, "%d ", i), make([]byte, bytesEach)...)}
	}
	return records
}

func numberOf(t testkit.T, e eventlog.Event) (n int) {
	body, ok := message.Body(e.Message)
	testkit.MustThat(t, ok, "no body: %q", e.Message)
	_, err := fmt.Sscan(string(body), &n)
	testkit.Must(t, err)
	return n
}

// K4: a frame is translated from wherever a reader stands, however it is packed, and in parts.
func TestTranslateFromWithin(t *testing.T) {
	const count = 50
	forEachPacking(t, func(t *testing.T, p packing) {
		frame := eventlog.Run{Form: eventlog.FormKafka, Raw: batchOf(t, p, numbered(count, 100)), Count: count}
		for _, maxBytes := range []int{1, 1000, 1 << 20} {
			given := 0
			for frame.Skip = 0; frame.Skip < count; {
				before := []byte("before")
				events, buf, err := Translate(nil, before, frame, maxBytes)
				testkit.Must(t, err)
				testkit.MustThat(t, bytes.HasPrefix(buf, before) && len(events) > 0, "%d events behind %.10q", len(events), buf)
				testkit.That(t, len(events) == 1 || eventlog.Batch{Events: events}.Bytes() <= maxBytes, "%d events are more than %d bytes", len(events), maxBytes)
				for _, e := range events {
					testkit.MustEqual(t, numberOf(t, e), given)
					given++
				}
				frame.Skip += len(events)
			}
			testkit.Equal(t, given, count)
		}
	})
}

// A frame that is not what was stored is an error.
func TestTranslateRefuses(t *testing.T) {
	raw := batchOf(t, packings[0], numbered(3, 0))
	for what, tt := range map[string]struct {
		frame eventlog.Run
		want  error
	}{
		"another number of records": {eventlog.Run{Raw: raw, Count: 4}, ErrInvalid},
		"a cut frame":               {eventlog.Run{Raw: raw[:70], Count: 3}, ErrCorrupt},
		"no frame":                  {eventlog.Run{Count: 3}, ErrCorrupt},
		"a record that is none": {eventlog.Run{Raw: batchOf(t, packings[0], numbered(3, 0), func(b *kmsg.RecordBatch) {
			b.Records = append(bytes.Clone(b.Records[:len(b.Records)-1]), 9)
		}), Count: 3}, ErrInvalid},
	} {
		_, _, err := Translate(nil, nil, tt.frame, 1<<20)
		testkit.ErrorIs(t, err, tt.want, what)
	}
}

// K4: where the time of storing counts there is none of creation.
func TestAppendTimeIsNoCreationTime(t *testing.T) {
	raw := batchOf(t, packings[0], numbered(1, 0), func(b *kmsg.RecordBatch) { b.Attributes = int16(AppendTime) })
	e := testkit.Value(message.Decode(translate(t, raw, 1, 0)[0]))(t)
	testkit.Equal(t, len(e.System), 0, "system values")
}

// typical has a thousand records as they usually are, by what they carry.
func typical() map[string][]Record {
	plain, rich := numbered(1000, 96), numbered(1000, 96)
	for i := range rich {
		rich[i].Key = fmt.Appendf(nil, "key-%d", i)
		rich[i].Headers = []Header{header("trace", "0123456789abcdef"), header("content-type", "application/json")}
	}
	return map[string][]Record{"100 B": plain, "100 B with key and headers": rich, "1 KiB": numbered(1000, 1020)}
}

// The paths that every record takes do not allocate.
func TestHotPathsDoNotAllocate(t *testing.T) {
	for name, records := range typical() {
		raw := batchOf(t, packings[0], records)
		frame := eventlog.Run{Form: eventlog.FormKafka, Raw: raw, Count: len(records)}
		events, buf, err := Translate(nil, nil, frame, 1<<30)
		testkit.Must(t, err)
		run := eventlog.Run{Events: cloned(events)}
		batch, _ := AppendRun(nil, run)
		for what, tt := range map[string]struct {
			most float64
			f    func()
		}{
			"check":     {0, func() { _, _ = Check(raw) }},
			"translate": {0, func() { events, buf, _ = Translate(events[:0], buf[:0], frame, 1<<30) }},
			"encode":    {10, func() { batch, _ = AppendRun(batch[:0], run) }}, // of a whole run: headers, and texts
		} {
			allocs := testing.AllocsPerRun(5, tt.f)
			testkit.That(t, allocs <= tt.most, "%s of %s: %v allocations for %d records, want at most %v", what, name, allocs, len(records), tt.most)
		}
	}
}

func cloned(events []eventlog.Event) []eventlog.Event {
	copies := make([]eventlog.Event, len(events))
	for i, e := range events {
		copies[i].Message = bytes.Clone(e.Message)
	}
	return copies
}

// Whatever bytes come, they are refused or can be read by everybody.
func FuzzBatch(f *testing.F) {
	for _, p := range packings {
		f.Add(batchOf(f, p, everything()))
		f.Add(batchOf(f, p, numbered(3, 10)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) >= HeadBytes {
			seal(raw) // or nothing would come behind the checksum
		}
		frame, err := Check(raw)
		if err != nil {
			return
		}
		events, _, err := Translate(nil, nil, eventlog.Run{Form: frame.Form, Raw: raw, Count: frame.Count}, 1<<30)
		testkit.Must(t, err)
		testkit.MustEqual(t, len(events), frame.Count)
		for _, e := range events {
			testkit.Must(t, testkit.Err(wire.Sections(e.Message)))
		}
		records := read(t, raw)
		sameRecords(t, read(t, build(records)), records, "written again")
		back, unread := AppendRun(nil, eventlog.Run{Events: events})
		testkit.MustEqual(t, unread, 0)
		testkit.Must(t, testkit.Err(ReadHead(back)))
	})
}

func benchmark(b *testing.B, f func(b *testing.B, records []Record)) {
	for name, records := range typical() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, records)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, p := range packings {
		b.Run(p.name, func(b *testing.B) {
			benchmark(b, func(b *testing.B, records []Record) {
				raw := batchOf(b, p, records)
				b.ResetTimer()
				for b.Loop() {
					testkit.Must(b, testkit.Err(Check(raw)))
				}
			})
		})
	}
}

func BenchmarkTranslate(b *testing.B) {
	benchmark(b, func(b *testing.B, records []Record) {
		frame := eventlog.Run{Form: eventlog.FormKafka, Raw: batchOf(b, packings[0], records), Count: len(records)}
		var (
			events []eventlog.Event
			buf    []byte
			err    error
		)
		for b.Loop() {
			events, buf, err = Translate(events[:0], buf[:0], frame, 1<<30)
			testkit.Must(b, err)
		}
	})
}

func BenchmarkAppendRun(b *testing.B) {
	benchmark(b, func(b *testing.B, records []Record) {
		frame := eventlog.Run{Form: eventlog.FormKafka, Raw: batchOf(b, packings[0], records), Count: len(records)}
		events, _, err := Translate(nil, nil, frame, 1<<30)
		testkit.Must(b, err)
		run, batch := eventlog.Run{Events: events}, []byte(nil)
		for b.Loop() {
			batch, _ = AppendRun(batch[:0], run)
		}
	})
}
