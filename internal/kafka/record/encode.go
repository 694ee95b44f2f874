package record

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Builder writes an uncompressed batch: Begin, Add for each record, End.
type Builder struct {
	head  Head
	dst   []byte
	start int
}

// Begin begins a batch behind dst. No producer is named in it.
func Begin(dst []byte, baseOffset, baseTimestamp int64) Builder {
	b := Builder{start: len(dst), head: Head{
		BaseOffset: baseOffset, BaseTimestamp: baseTimestamp, MaxTimestamp: baseTimestamp, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}}
	b.dst = b.head.append(dst)
	return b
}

// Add writes a record.
func (b *Builder) Add(r *Record) {
	timestamp, delta := r.Timestamp-b.head.BaseTimestamp, int64(b.head.Count)
	b.head.MaxTimestamp = max(b.head.MaxTimestamp, r.Timestamp)
	dst := binary.AppendVarint(b.dst, int64(r.size(timestamp, delta)))
	dst = append(dst, 0) // attributes
	dst = binary.AppendVarint(dst, timestamp)
	dst = binary.AppendVarint(dst, delta)
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for i := range r.Headers {
		dst = append(binary.AppendVarint(dst, int64(len(r.Headers[i].Name))), r.Headers[i].Name...)
		dst = appendBytes(dst, r.Headers[i].Value)
	}
	b.dst = dst
	b.head.Count++
}

// End gives dst with the batch. One without records is none, and dst is as it was.
func (b *Builder) End() []byte {
	if b.head.Count == 0 {
		return b.dst[:b.start]
	}
	b.head.LastOffsetDelta = b.head.Count - 1
	b.head.append(b.dst[:b.start])
	seal(b.dst[b.start:])
	return b.dst
}

// size is the length of a record behind its length.
func (r *Record) size(timestamp, delta int64) int {
	n := 1 + varintBytes(timestamp) + varintBytes(delta) + sizeOf(r.Key) + sizeOf(r.Value) + varintBytes(int64(len(r.Headers)))
	for i := range r.Headers {
		n += varintBytes(int64(len(r.Headers[i].Name))) + len(r.Headers[i].Name) + sizeOf(r.Headers[i].Value)
	}
	return n
}

// appendBytes writes a length and so many bytes; -1 for nil.
func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

func sizeOf(b []byte) int {
	if b == nil {
		return 1
	}
	return varintBytes(int64(len(b))) + len(b)
}

// varintBytes is the length of a number as binary.AppendVarint writes it.
func varintBytes(v int64) int {
	return (bits.Len64(uint64(v)<<1^uint64(v>>63)|1) + 6) / 7
}

// AppendGap appends a batch without records that stands for all offsets from first to before next, as
// compaction leaves them behind: who reads it goes on at next.
func AppendGap(dst []byte, first, next eventlog.Sequence) []byte {
	at := len(dst)
	dst = Head{
		BaseOffset: int64(first), LastOffsetDelta: int32(min(next-first, math.MaxInt32) - 1),
		BaseTimestamp: -1, MaxTimestamp: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}.append(dst)
	seal(dst[at:])
	return dst
}

// AppendCut appends n bytes that look like the beginning of a longer batch, which every client passes
// over at the end of an answer: for who has promised more bytes than there turned out to be.
func AppendCut(dst []byte, n int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	if cut := dst[at:]; n > offMagic {
		binary.BigEndian.PutUint32(cut[offLength:], uint32(n)) // with what is before the length: more than n
		cut[offMagic] = magic
	} else if n >= offLeaderEpoch {
		binary.BigEndian.PutUint32(cut[offLength:], uint32(HeadBytes))
	}
	return dst
}
