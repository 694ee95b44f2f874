package record

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// readParts gives a frame's events in parts of so many bytes, beginning with one, and calls each before every part.
func readParts(t *testing.T, raw []byte, count, maxBytes int, each func(part int)) {
	t.Helper()
	frame := eventlog.Run{Form: eventlog.FormKafka, Raw: raw, Count: count}
	for part := 0; frame.Skip < count; part++ {
		each(part)
		events, _, err := Translate(nil, nil, frame, maxBytes)
		testkit.Must(t, err)
		for i, e := range events {
			testkit.MustEqual(t, numberOf(t, e), frame.Skip+i)
		}
		frame.Skip += len(events)
	}
}

// K6: a packed frame is unpacked once for all its parts, and for whoever reads it at that time; when it was
// read to its end nothing is left of it.
func TestAFrameIsUnpackedOnce(t *testing.T) {
	const count = 2000
	forEachPacking(t, func(t *testing.T, p packing) {
		raw := batchOf(t, p, numbered(count, 0))
		packed := p.codec != codecNone
		missed := open.missed
		parts := 0
		readParts(t, raw, count, 5000, func(part int) {
			parts++
			if part == 3 { // another reader, which comes later and goes faster
				readParts(t, raw, count, 20_000, func(int) {})
			}
		})
		testkit.That(t, parts > 10, "there are %d parts only", parts)
		if packed {
			testkit.Equal(t, open.missed-missed, 2, "unpacked: once, and again when the other had read it all")
		} else {
			testkit.Equal(t, open.missed, missed, "nothing has to be unpacked")
		}
		testkit.Equal(t, len(open.all), 0, "open frames")
		testkit.Equal(t, open.bytes, 0, "their bytes")
	})
}

// K6: what is given at once leaves nothing open.
func TestSmallFramesAreNotKept(t *testing.T) {
	raw := batchOf(t, packings[1], numbered(10, 0))
	readParts(t, raw, 10, 1<<20, func(int) {})
	testkit.Equal(t, len(open.all), 0, "open frames")
}

// size is how many bytes are open.
func (o *openFrames) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// K6: open frames are bounded in bytes. Those that are being read stay, and the others make room.
func TestOpenFramesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &openFrames{limit: 250}
		frame := func(name byte) []byte { return []byte{name, 0, 0, 0, 0, 0, 0, 0} }
		records := func() []byte { return make([]byte, 100) }
		testkit.That(t, o.keep(frame('a'), records()) && o.keep(frame('b'), records()), "there is room for two")
		testkit.That(t, !o.keep(frame('c'), records()), "there is room for three")
		time.Sleep(openBusy)
		o.find(frame('a'), 0)
		testkit.That(t, o.keep(frame('c'), records()), "who is not read does not make room")
		for name, want := range map[byte]bool{'a': true, 'b': false, 'c': true} {
			got, _ := o.find(frame(name), 0)
			testkit.Equal(t, got != nil, want, "whether %c is open", name)
		}
		testkit.That(t, o.size() <= 250, "they have %d bytes", o.size())

		time.Sleep(openIdle - time.Second)
		o.find(frame('a'), 0)
		time.Sleep(openIdle - time.Second)
		synctest.Wait()
		testkit.Equal(t, o.size(), 108, "bytes of the one that was read")
		time.Sleep(2 * openIdle)
		synctest.Wait()
		testkit.Equal(t, o.size(), 0, "bytes when nobody reads them")
	})
}

// A reader goes on from the nearest place that is known, and those that are known are few.
func TestMarks(t *testing.T) {
	o := &openFrames{limit: 1000}
	raw := []byte("frame")
	testkit.That(t, !o.mark(raw, mark{1, 1}), "what is not open has marks")
	o.keep(raw, make([]byte, 100))
	for i := range 2 * maxMarks {
		number := (i*37)%(2*maxMarks) + 1
		testkit.That(t, o.mark(raw, mark{number, 10 * number}), "it is open")
	}
	testkit.Equal(t, len(o.all[0].marks), maxMarks, "marks")
	_, from := o.find(raw, 2*maxMarks)
	testkit.Equal(t, from, mark{2 * maxMarks, 20 * maxMarks})
	_, from = o.find(raw, 0)
	testkit.Equal(t, from, mark{})
}

// A batch of very many tiny records, as one reader of single events gets it; without open frames each part
// has it unpacked.
func BenchmarkPartsOfAPackedFrame(b *testing.B) {
	const count = 1_000_000
	raw := batchOf(b, packings[len(packings)-2], make([]Record, count))
	for name, limit := range map[string]int{"open": maxOpenBytes, "closed": 0} {
		b.Run(name, func(b *testing.B) {
			open.limit = limit
			defer func() { open.limit = maxOpenBytes }()
			var events []eventlog.Event
			var buf []byte
			var err error
			for b.Loop() {
				for frame := (eventlog.Run{Form: eventlog.FormKafka, Raw: raw, Count: count}); frame.Skip < count; frame.Skip += len(events) {
					events, buf, err = Translate(events[:0], buf[:0], frame, 1<<20)
					testkit.Must(b, err)
				}
			}
		})
	}
}
