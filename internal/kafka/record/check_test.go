package record

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K1, K6: what may not be stored is refused, with what its producer has to know.
func TestCheckRefuses(t *testing.T) {
	plain, one := packings[0], []Record{{Timestamp: baseTimestamp, Key: []byte("k"), Value: []byte("v")}}
	changed := func(change func(*kmsg.RecordBatch)) []byte { return batchOf(t, plain, one, change) }
	attributes := func(a Attributes) []byte { return changed(func(b *kmsg.RecordBatch) { b.Attributes = int16(a) }) }
	records := func(of ...byte) []byte {
		return changed(func(b *kmsg.RecordBatch) {
			b.Records, b.Length = of, int32(HeadBytes-offLeaderEpoch+len(of))
		})
	}
	body := func(fields ...byte) []byte { return records(append([]byte{byte(2 * len(fields))}, fields...)...) }
	good := changed(func(*kmsg.RecordBatch) {})
	flipped := bytes.Clone(good)
	flipped[len(flipped)-2]++
	for _, tt := range []struct {
		what string
		raw  []byte
		want error
	}{
		{"a good one", good, nil},
		{"no bytes", nil, ErrCorrupt},
		{"less than a head", good[:HeadBytes-1], ErrCorrupt},
		{"less than it says", good[:len(good)-1], ErrCorrupt},
		{"more than it says", append(bytes.Clone(good), 0), ErrCorrupt},
		{"a flipped bit", flipped, ErrCorrupt},
		{"an old format", changed(func(b *kmsg.RecordBatch) { b.Magic = 1 }), ErrInvalid},
		{"a control batch", attributes(Control), ErrInvalid},
		{"a transaction of nobody", attributes(Transactional), ErrInvalid},
		{"a time of storing", attributes(AppendTime), ErrInvalid},
		{"another attribute", attributes(1 << 6), ErrInvalid},
		{"the sign as an attribute", attributes(math.MinInt16), ErrInvalid},
		{"an unknown codec", attributes(5), ErrCompression},
		{"the last codec that there can be", attributes(7), ErrCompression},
		{"no records", changed(func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 0, -1 }), ErrInvalid},
		{"fewer than no records", changed(func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = -1, -2 }), ErrInvalid},
		{"a gap behind the last", changed(func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 5 }), ErrInvalid},
		{"two billion records", changed(func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = math.MaxInt32, math.MaxInt32-1 }), ErrInvalid},
		{"one record too few", changed(func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 2, 1 }), ErrInvalid},
		{"a producer without an epoch", changed(func(b *kmsg.RecordBatch) { b.ProducerID, b.FirstSequence = 1, 0 }), ErrInvalid},
		{"a producer without a number", changed(func(b *kmsg.RecordBatch) { b.ProducerID, b.ProducerEpoch = 1, 0 }), ErrInvalid},
		{"bytes behind the last record", records(append(recordOf(0, one[0]), 0)...), ErrInvalid},
		{"deltas that begin at 1", records(recordOf(1, one[0])...), ErrInvalid},
		{"a length below zero", records(1, 0, 0, 0, 1, 1, 0), ErrInvalid},
		{"a length beyond the batch", records(14, 0, 0, 0, 1, 1, 0), ErrInvalid},
		{"a length of six bytes", records(0x8c, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 1, 1, 0), ErrInvalid},
		{"the shortest record", body(0, 0, 0, 1, 1, 0), nil},
		{"a field too few", records(10, 0, 0, 0, 1, 1, 0), ErrInvalid},
		{"a byte too many in a record", body(0, 0, 0, 1, 1, 0, 0), ErrInvalid},
		{"a key of -2", body(0, 0, 0, 3, 1, 0), ErrInvalid},
		{"a key beyond the record", body(0, 0, 0, 20, 1, 0), ErrInvalid},
		{"a value beyond the record", body(0, 0, 0, 1, 20, 0), ErrInvalid},
		{"a header", body(0, 0, 0, 1, 1, 2, 0, 1), nil},
		{"a header without a name", body(0, 0, 0, 1, 1, 2, 1, 1), ErrInvalid},
		{"a header without a value", body(0, 0, 0, 1, 1, 2, 0), ErrInvalid},
		{"fewer than no headers", body(0, 0, 0, 1, 1, 1), ErrInvalid},
		{"a billion headers", body(0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f), ErrInvalid},
		{"as many headers as there may be", batchOf(t, plain, []Record{{Headers: make([]Header, maxHeaders)}}), nil},
		{"a header too many", batchOf(t, plain, []Record{{Headers: make([]Header, maxHeaders+1)}}), ErrInvalid},
		{"a batch too large", batchOf(t, plain, []Record{{Value: make([]byte, MaxBatchBytes)}}), ErrTooLarge},
		{"the largest record", batchOf(t, packings[1], []Record{{Value: make([]byte, MaxBatchBytes-20)}}), nil},
		{"a record too large", batchOf(t, packings[1], []Record{{Value: make([]byte, MaxBatchBytes)}}), ErrTooLarge},
	} {
		t.Run(tt.what, func(t *testing.T) { testkit.ErrorIs(t, testkit.Err(Check(tt.raw)), tt.want) })
	}
}

// K6: what packed records claim, or really hold, does not cost more than it may.
func TestPackedRecordsAreBounded(t *testing.T) {
	one := []Record{{Value: []byte("v")}}
	forEachPacking(t, func(t *testing.T, p packing) {
		if p.codec == codecNone {
			return
		}
		garbage := p
		garbage.pack = func(testkit.T, []byte) []byte { return []byte("\x82SNAPPY\x00 is no such thing, nor anything else") }
		testkit.ErrorIs(t, testkit.Err(Check(batchOf(t, garbage, one))), ErrInvalid, "garbage")
		empty := p
		empty.pack = func(testkit.T, []byte) []byte { return nil }
		testkit.ErrorIs(t, testkit.Err(Check(batchOf(t, empty, one))), ErrInvalid, "nothing")
		cut := p
		cut.pack = func(t testkit.T, b []byte) []byte { b = p.pack(t, b); return b[:len(b)-1] }
		testkit.ErrorIs(t, testkit.Err(Check(batchOf(t, cut, one))), ErrInvalid, "cut off")
	})
	zeros, parts := make([]byte, 1<<20), MaxUnpackedBytes>>20+1
	blocks := xerial.Encode(nil, zeros)
	for what, tt := range map[string]struct {
		codec  codec
		packed []byte
	}{
		"gzip":             {codecGzip, bytes.Repeat(packGzip(t, zeros), parts)},
		"lz4":              {codecLZ4, bytes.Repeat(packLZ4()(t, zeros), parts)},
		"zstd":             {codecZstd, bytes.Repeat(packZstd(t, zeros), parts)},
		"zstd, as it says": {codecZstd, []byte(zstdMark + "\xa0\x01\x00\x00\x02")},
		"snappy of Java":   {codecSnappy, append(blocks, bytes.Repeat(blocks[xerialHeadBytes:], parts-1)...)},
		"snappy":           {codecSnappy, append(binary.AppendUvarint(nil, MaxUnpackedBytes+1), zeros...)},
	} {
		t.Run("too much "+what, func(t *testing.T) {
			w := takeWorkspace()
			defer w.give()
			testkit.ErrorIs(t, testkit.Err(w.unpack(tt.codec, tt.packed)), ErrTooLarge)
		})
	}
	t.Run("a block that claims more than it can hold", func(t *testing.T) {
		claim := packing{codec: codecSnappy, pack: func(testkit.T, []byte) []byte { return binary.AppendUvarint(nil, MaxUnpackedBytes) }}
		testkit.ErrorIs(t, testkit.Err(Check(batchOf(t, claim, one))), ErrInvalid)
	})
	t.Run("a dialect of snappy", func(t *testing.T) {
		// A copy from offset 0 means the last offset once more to s2, and nothing to snappy.
		block := []byte{12, 0, 'x', 0x05, 1, 0x09, 0}
		testkit.Equal(t, string(testkit.Value(s2.Decode(nil, block))(t)), "xxxxxxxxxxxx")
		testkit.That(t, testkit.Err(unpackSnappy(nil, block)) != nil, "it is taken for snappy")
	})
}

// K6: nothing of one batch is in another's.
func TestWorkspacesForget(t *testing.T) {
	secret := []Record{{Value: bytes.Repeat([]byte("secret"), 1000), Headers: []Header{{[]byte("secret"), nil}}}}
	forEachPacking(t, func(t *testing.T, p packing) {
		for range cap(workspaces) {
			testkit.Must(t, testkit.Err(Check(batchOf(t, p, secret))))
		}
		w := takeWorkspace()
		defer w.give()
		testkit.Equal(t, len(w.record.Headers), 0)
		for _, h := range w.record.Headers[:cap(w.record.Headers)] {
			testkit.That(t, h.Name == nil, "a header is left")
		}
		testkit.That(t, cap(w.unpacked) <= keptBytes, "it keeps %d bytes", cap(w.unpacked))
	})
}
