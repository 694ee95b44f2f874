package record

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A batch without records stands for offsets that cannot be had.
func TestGap(t *testing.T) {
	raw := AppendGap([]byte("before"), 7, 12)[len("before"):]
	testkit.Equal(t, len(raw), HeadBytes, "its length")
	var b kmsg.RecordBatch
	testkit.Must(t, b.ReadFrom(raw))
	testkit.Equal(t, b.FirstOffset, int64(7), "first offset")
	testkit.Equal(t, b.LastOffsetDelta, int32(4), "the last offset, from the first")
	testkit.Equal(t, b.NumRecords, int32(0), "records")
	testkit.Equal(t, uint32(b.CRC), checksum(raw), "checksum")
}

// What is cut off says that it is longer than it is, wherever it is cut: so clients pass over it.
func TestCut(t *testing.T) {
	for n := range 200 {
		raw := AppendCut(nil, n)
		testkit.MustEqual(t, len(raw), n, "its length")
		if n >= offLeaderEpoch {
			length := int(binary.BigEndian.Uint32(raw[offLength:]))
			testkit.That(t, length+offLeaderEpoch > n, "%d bytes say that they are %d", n, length+offLeaderEpoch)
			testkit.That(t, length >= 14, "%d bytes say that %d follow, which no batch has", n, length)
		}
		if n > offMagic {
			testkit.Equal(t, raw[offMagic], magic, "format of %d bytes", n)
		}
	}
}

// Only zstd is kept from older clients.
func TestZstd(t *testing.T) {
	for _, p := range packings {
		raw := batchOf(t, p, []Record{{Value: []byte("x")}})
		testkit.Equal(t, Zstd(raw), p.codec == codecZstd, p.name)
	}
	testkit.Equal(t, Zstd([]byte("short")), false)
}
