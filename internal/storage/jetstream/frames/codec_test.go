package frames_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

func drawWriterID(t *rapid.T) frames.WriterID {
	return frames.WriterID{ID: rapid.Uint64().Draw(t, "id"), Producer: rapid.Bool().Draw(t, "is a producer")}
}

func drawHeader(t *rapid.T) frames.Header {
	return frames.Header{
		Writer: drawWriterID(t),
		Epoch:  frames.Epoch(rapid.Uint64().Draw(t, "epoch")),
		Q:      rapid.Uint64().Draw(t, "q"),
		Time:   rapid.Int64Range(0, 253402300799999).Draw(t, "time"),
		Base: frames.Base{
			Seq:  frames.StreamSeq(rapid.Uint64().Draw(t, "base sequence")),
			Next: eventlog.Sequence(rapid.Int64Range(0, 1<<62).Draw(t, "base next")),
		},
	}
}

func drawBatch(t *rapid.T) frames.Batch {
	b := frames.Batch{
		Events: rapid.IntRange(1, 1<<20).Draw(t, "events"),
		Form:   rapid.Byte().Draw(t, "form"),
		Body:   rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body"),
	}
	if rapid.Bool().Draw(t, "has a producer mark") {
		b.Producer = eventlog.Producer{ID: rapid.Int64().Draw(t, "producer"), Epoch: rapid.Int16().Draw(t, "producer epoch"), First: rapid.Int32().Draw(t, "first"), Set: true}
	}
	return b
}

// C2: what is read is what was written, and reading changes nothing of it.
func TestDataIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawHeader(t)
		batches := rapid.SliceOfN(rapid.Custom(drawBatch), 1, 5).Draw(t, "batches")
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")

		buf := frames.AppendData(slices.Clone(before), want, batches)
		testkit.MustThat(t, bytes.HasPrefix(buf, before), "what was in the buffer has changed")
		message := buf[len(before):]
		f, err := frames.Decode(message)
		testkit.Must(t, err)

		at := 0
		for offset, b := range f.All() {
			testkit.Equal(t, offset, want.Events, "events before batch %d", at)
			testkit.Diff(t, batches[at], b)
			want.Events += b.Events
			at++
		}
		testkit.Equal(t, at, len(batches), "batches")
		testkit.Equal(t, f.Bytes(), len(message), "size")
		alone, err := frames.DecodeHeader(message[:frames.HeaderBytes])
		testkit.Must(t, err)
		testkit.Equal(t, alone, f.Header, "the header alone")
		testkit.Equal(t, f.Kind, frames.KindData)
		testkit.Equal(t, f.Header.Batches, len(batches))
		testkit.Equal(t, frames.Plain(f.Header), frames.Plain(withContent(want, f.Header)))
	})
}

// withContent takes over what an encoder finds out by itself, which the test compares above.
func withContent(h, from frames.Header) frames.Header {
	h.Kind, h.Batches, h.PayloadBytes = from.Kind, from.Batches, from.PayloadBytes
	return h
}

func TestFencesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawHeader(t)
		f, err := frames.Decode(frames.AppendFence(nil, want))
		testkit.Must(t, err)
		want.Kind, want.Q = frames.KindFence, 0
		testkit.Equal(t, frames.Plain(f.Header), want)
		for range f.All() {
			t.Fatal("a fence has no batches")
		}
	})
}

// C1: no flipped bit and no missing byte goes unnoticed.
func TestDamageIsFound(t *testing.T) {
	whole := frames.AppendData(nil, frames.Header{Writer: frames.WriterID{ID: 7}, Time: 1}, []frames.Batch{{Events: 2, Body: []byte("body")}})
	for at := range len(whole) {
		for bit := range 8 {
			damaged := slices.Clone(whole)
			damaged[at] ^= 1 << bit
			if _, err := frames.Decode(damaged); err == nil {
				t.Fatalf("bit %d of byte %d was flipped, and nobody noticed", bit, at)
			}
		}
		testkit.ErrorIs(t, testkit.Err(frames.Decode(whole[:at])), frames.ErrShort, "cut at %d", at)
	}
	testkit.ErrorIs(t, testkit.Err(frames.Decode(append(whole, 0))), frames.ErrShort, "a byte too many")
}

// C7: an older program refuses frames of a newer one, and does not take them for damage.
func TestWhatIsWrongWithAFrameHasItsOwnError(t *testing.T) {
	data := func() []byte {
		return frames.AppendData(nil, frames.Header{}, []frames.Batch{{Events: 1, Body: []byte("a")}, {Events: 1}})
	}
	for name, tt := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"nothing":                           {func([]byte) []byte { return nil }, frames.ErrShort},
		"another's message":                 {func([]byte) []byte { return []byte("what a stranger has sent us") }, frames.ErrNotFrame},
		"a newer version":                   {func(b []byte) []byte { b[3] = 2; return resum(b) }, frames.ErrVersion},
		"a newer version, longer header":    {func(b []byte) []byte { b[3], b[8] = 2, 78; return resum(b) }, frames.ErrVersion},
		"a newer version, damaged":          {func(b []byte) []byte { b[3] = 2; return b }, frames.ErrChecksum},
		"a control frame":                   {func(b []byte) []byte { b[10] = 4; return resum(b) }, frames.ErrVersion},
		"a kind nobody knows":               {func(b []byte) []byte { b[10] = 99; return resum(b) }, frames.ErrVersion},
		"a header shorter than its prefix":  {func(b []byte) []byte { b[8] = 3; return b }, frames.ErrMalformed},
		"a header of another length":        {func(b []byte) []byte { b[8] = 75; return resum(b) }, frames.ErrMalformed},
		"a flag nobody knows":               {func(b []byte) []byte { b[11] = 2; return resum(b) }, frames.ErrMalformed},
		"a time before 1970":                {func(b []byte) []byte { b[47] = 0xff; return resum(b) }, frames.ErrMalformed},
		"a base below zero":                 {func(b []byte) []byte { b[63] = 0xff; return resum(b) }, frames.ErrMalformed},
		"no batches":                        {func(b []byte) []byte { b[12] = 0; return resum(b) }, frames.ErrMalformed},
		"fewer batches than there are":      {func(b []byte) []byte { b[12] = 1; return resum(b) }, frames.ErrMalformed},
		"more events than there are":        {func(b []byte) []byte { b[64] = 3; return resum(b) }, frames.ErrMalformed},
		"a batch without events":            {func(b []byte) []byte { b[frames.HeaderBytes+4] = 0; return resum(b) }, frames.ErrMalformed},
		"a batch beyond the frame":          {func(b []byte) []byte { b[frames.HeaderBytes] = 200; return resum(b) }, frames.ErrMalformed},
		"a batch that swallows the next":    {func(b []byte) []byte { b[frames.HeaderBytes] = 25; return resum(b) }, frames.ErrMalformed},
		"a flag of a batch nobody knows":    {func(b []byte) []byte { b[frames.HeaderBytes+9] = 2; return resum(b) }, frames.ErrMalformed},
		"a fence with a payload":            {func(b []byte) []byte { b[10] = 2; return resum(b) }, frames.ErrMalformed},
		"another length than in the header": {func(b []byte) []byte { return b[:len(b)-1] }, frames.ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(frames.Decode(tt.change(data()))), tt.want)
		})
	}
}

// resum makes the checksums right for what the frame says now.
func resum(b []byte) []byte {
	table, size := crc32.MakeTable(crc32.Castagnoli), int(binary.LittleEndian.Uint16(b[8:]))
	if size == frames.HeaderBytes {
		binary.LittleEndian.PutUint32(b[72:], crc32.Checksum(b[frames.HeaderBytes:], table))
	}
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(crc32.Checksum(b[:4], table), table, b[8:size]))
	return b
}
