package record

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K4: what another codec writes is read as it was meant, however it is packed.
func TestReadsWhatOthersWrite(t *testing.T) {
	forEachPacking(t, func(t *testing.T, p packing) {
		raw := batchOf(t, p, everything(), func(b *kmsg.RecordBatch) {
			b.ProducerID, b.ProducerEpoch, b.FirstSequence = 1<<40, 7, 1000
		})
		frame := testkit.Value(Check(raw))(t)
		testkit.Equal(t, frame.Form, eventlog.FormKafka)
		testkit.Equal(t, frame.Count, 5)
		testkit.Equal(t, frame.MaxTime, time.UnixMilli(baseTimestamp+1<<40))
		testkit.Equal(t, frame.Producer, eventlog.Producer{ID: 1 << 40, Epoch: 7, First: 1000, Set: true})
		testkit.Equal(t, testkit.Value(frame.Check())(t), len(raw), "what it measures")
		sameRecords(t, read(t, raw), everything(), p.name)
		head := testkit.Value(ReadHead(raw))(t)
		testkit.Equal(t, head.BaseOffset, offsetInLog)
		testkit.Equal(t, head.MaxTimestamp, baseTimestamp+1<<40)
	})
}

// K4: what we write is, byte for byte, what another codec writes.
func TestWritesAsOthersDo(t *testing.T) {
	testkit.Equal(t, string(build(everything())), string(batchOf(t, packings[0], everything())))
	testkit.Equal(t, len(build(nil)), 0, "bytes of no records")
}

// The example is worked out by hand from Kafka's description of its format.
func TestTheFormatIsAsDescribed(t *testing.T) {
	const golden = "0000000000000029" + "00000049" + "00000000" + "02" + "CHECKSUM" + "0000" + "00000001" +
		"0000018bcfe56800" + "0000018bcfe56801" + "ffffffffffffffff" + "ffff" + "ffffffff" + "00000002" +
		"18" + "00" + "00" + "00" + "026b" + "0476" + "76" + "02" + "0268" + "01" + // 12 bytes: k, vv, header h of null
		"14" + "00" + "02" + "02" + "01" + "00" + "02" + "0278" + "0279" // 10: a millisecond later, null, empty, header x of y
	records := []Record{
		{Timestamp: baseTimestamp, Key: []byte("k"), Value: []byte("vv"), Headers: []Header{{[]byte("h"), nil}}},
		{Timestamp: baseTimestamp + 1, Value: []byte{}, Headers: []Header{{[]byte("x"), []byte("y")}}},
	}
	raw := build(records)
	sum := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, checksum(raw)))
	testkit.Equal(t, hex.EncodeToString(raw), strings.Replace(golden, "CHECKSUM", sum, 1))
	sameRecords(t, read(t, raw), records, "read")
	// Castagnoli's polynomial, by its usual test vector.
	testkit.Equal(t, checksum(append(make([]byte, offAttributes), "123456789"...)), 0xe3069283)
}

// anyRecords draws records with all that can be null or empty.
func anyRecords() *rapid.Generator[[]Record] {
	field := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 300))
	header := rapid.Custom(func(t *rapid.T) Header {
		return Header{rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "name"), field.Draw(t, "value")}
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record {
		return Record{
			Timestamp: rapid.Int64().Draw(t, "timestamp"), Key: field.Draw(t, "key"), Value: field.Draw(t, "value"),
			Headers: rapid.SliceOfN(header, 0, 4).Draw(t, "headers"),
		}
	}), 1, 8)
}

// K4
func TestEveryBatchComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRecords().Draw(t, "records")
		p := rapid.SampledFrom(packings[:len(packings)-1]).Draw(t, "packing")
		raw := batchOf(t, p, want)
		testkit.Must(t, testkit.Err(Check(raw)), p.name)
		sameRecords(t, read(t, raw), want, p.name)
		sameRecords(t, read(t, build(want)), want, "our own")
		cut := raw[:rapid.IntRange(0, len(raw)-1).Draw(t, "cut")]
		testkit.MustThat(t, testkit.Err(Check(cut)) != nil, "the first %d of %d bytes are a batch", len(cut), len(raw))
	})
}

// K4: a batch that was stored knows where, and with the attribute for it, when; its checksum is right still.
func TestABatchKnowsWhereItIsStored(t *testing.T) {
	raw := batchOf(t, packings[0], everything())
	Place(raw, 77, 5)
	testkit.Equal(t, testkit.Value(ReadHead(raw))(t).BaseOffset, 77)
	sameRecords(t, read(t, raw), everything(), "create times")
	testkit.Must(t, testkit.Err(Check(raw)))

	raw = batchOf(t, packings[0], everything(), func(b *kmsg.RecordBatch) { b.Attributes |= int16(AppendTime) })
	Place(raw, 78, 5)
	testkit.Equal(t, binary.BigEndian.Uint32(raw[offChecksum:]), checksum(raw), "the checksum")
	for _, r := range read(t, raw) {
		testkit.Equal(t, r.Timestamp, 5)
	}
	Place(raw[:HeadBytes-1], 79, 5) // is left alone
	testkit.Equal(t, testkit.Value(ReadHead(raw))(t).BaseOffset, 78)
}
