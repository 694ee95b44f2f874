package record

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// packing is a way in which clients pack the records of a batch.
type packing struct {
	name  string
	codec codec
	pack  func(t testkit.T, records []byte) []byte
}

var packings = []packing{
	{"none", codecNone, func(_ testkit.T, b []byte) []byte { return b }},
	{"gzip", codecGzip, packGzip},
	{"snappy in one block", codecSnappy, func(_ testkit.T, b []byte) []byte { return s2.EncodeSnappy(nil, b) }},
	{"snappy of Java", codecSnappy, func(_ testkit.T, b []byte) []byte { return xerial.Encode(nil, b) }},
	{"lz4", codecLZ4, packLZ4()},
	{"lz4 of Java", codecLZ4, packLZ4(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false))},
	{"zstd", codecZstd, packZstd},
	{"zstd with a large window", codecZstd, packZstdLevel22},
}

func packGzip(t testkit.T, b []byte) []byte {
	var out bytes.Buffer
	w := stdgzip.NewWriter(&out)
	_, err := w.Write(b)
	testkit.Must(t, err)
	testkit.Must(t, w.Close())
	return out.Bytes()
}

func packLZ4(options ...lz4.Option) func(testkit.T, []byte) []byte {
	return func(t testkit.T, b []byte) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		testkit.Must(t, w.Apply(options...))
		_, err := w.Write(b)
		testkit.Must(t, err)
		testkit.Must(t, w.Close())
		return out.Bytes()
	}
}

// packZstd writes a stream, as clients do, that does not say how long it will be.
func packZstd(t testkit.T, b []byte) []byte {
	var out bytes.Buffer
	w := testkit.Value(zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)))(t)
	for part := range slices.Chunk(b, 1<<20) {
		_, err := w.Write(part)
		testkit.Must(t, err)
		testkit.Must(t, w.Flush())
	}
	testkit.Must(t, w.Close())
	return out.Bytes()
}

// packZstdLevel22 says, as the highest level does, that matches may be 128 MiB away.
func packZstdLevel22(t testkit.T, b []byte) []byte {
	b = packZstd(t, b)
	testkit.MustThat(t, hasWindow(b), "the stream says how long it is")
	b[zstdWindowAt] = (27 - 10) << 3
	return b
}

// baseTimestamp is that of all batches here, offsetInLog their base offset.
const (
	baseTimestamp = 1_700_000_000_000
	offsetInLog   = 41
)

// batchOf is a batch as franz-go's codec writes it, of its own and with its own checksum.
func batchOf(t testkit.T, p packing, records []Record, change ...func(*kmsg.RecordBatch)) []byte {
	b := kmsg.RecordBatch{
		FirstOffset: offsetInLog, Magic: 2, Attributes: int16(p.codec), LastOffsetDelta: int32(len(records) - 1), FirstTimestamp: baseTimestamp,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(records)), MaxTimestamp: baseTimestamp,
	}
	var encoded []byte
	for i, r := range records {
		b.MaxTimestamp = max(b.MaxTimestamp, r.Timestamp)
		encoded = append(encoded, recordOf(i, r)...)
	}
	b.Records = p.pack(t, encoded)
	b.Length = int32(HeadBytes - offLeaderEpoch + len(b.Records))
	for _, c := range change {
		c(&b)
	}
	b.CRC = int32(checksum(b.AppendTo(nil)))
	return b.AppendTo(nil)
}

func recordOf(i int, r Record) []byte {
	k := kmsg.Record{TimestampDelta64: r.Timestamp - baseTimestamp, OffsetDelta: int32(i), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		k.Headers = append(k.Headers, kmsg.Header{Key: string(h.Name), Value: h.Value})
	}
	k.Length = int32(len(k.AppendTo(nil)) - 1)
	return k.AppendTo(nil)
}

func header(name, value string) Header { return Header{[]byte(name), []byte(value)} }

// everything has all that can be null, empty, repeated or large.
func everything() []Record {
	return []Record{
		{Timestamp: baseTimestamp, Key: []byte("key"), Value: []byte("value")},
		{Timestamp: baseTimestamp + 1<<40, Key: nil, Value: nil},
		{Timestamp: -1, Key: []byte{}, Value: []byte{}},
		{Timestamp: baseTimestamp - 5, Value: bytes.Repeat([]byte("abcdefgh"), 9_000), Headers: []Header{
			{[]byte("a"), []byte("1")}, {[]byte(""), []byte{}}, {[]byte("a"), nil}, {[]byte("a"), []byte("2")},
		}},
		{Timestamp: baseTimestamp, Value: []byte("last"), Headers: make([]Header, 0)},
	}
}

// read gives copies of all records of a batch.
func read(t testkit.T, raw []byte) (records []Record) {
	h := testkit.Value(ReadHead(raw))(t)
	testkit.Must(t, h.Each(raw, func(_ int, r *Record) bool {
		c := *r
		c.Key, c.Value, c.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), nil
		for _, h := range r.Headers {
			c.Headers = append(c.Headers, Header{bytes.Clone(h.Name), bytes.Clone(h.Value)})
		}
		records = append(records, c)
		return true
	}))
	return records
}

// sameRecords compares records, in which nil and empty differ.
func sameRecords(t testkit.T, got, want []Record, what string) {
	testkit.MustEqual(t, len(got), len(want), what)
	for i := range want {
		g, w := got[i], want[i]
		testkit.MustEqual(t, len(g.Headers), len(w.Headers), "%s: headers of record %d", what, i)
		same := g.Timestamp == w.Timestamp && sameBytes(g.Key, w.Key) && sameBytes(g.Value, w.Value)
		for j := range w.Headers {
			same = same && bytes.Equal(g.Headers[j].Name, w.Headers[j].Name) && sameBytes(g.Headers[j].Value, w.Headers[j].Value)
		}
		if !same {
			t.Fatal(fmt.Sprintf("%s: record %d is %.300s, want %.300s", what, i, fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w)))
		}
	}
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// build writes records by this package's own encoder.
func build(records []Record) []byte {
	b := Begin(nil, offsetInLog, baseTimestamp)
	for i := range records {
		b.Add(&records[i])
	}
	return b.End()
}

func forEachPacking(t *testing.T, f func(*testing.T, packing)) {
	for _, p := range packings {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}
