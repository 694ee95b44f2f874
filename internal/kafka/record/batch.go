package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// HeadBytes is the length of a batch's head. Its records follow.
const HeadBytes = 61

// Where the fields of the head are. The checksum covers all from the attributes on, so that the base offset
// and the leader epoch can be filled in where a batch is stored.
const (
	offBaseOffset      = 0
	offLength          = 8
	offLeaderEpoch     = 12
	offMagic           = 16
	offChecksum        = 17
	offAttributes      = 21
	offLastOffsetDelta = 23
	offBaseTimestamp   = 27
	offMaxTimestamp    = 35
	offProducerID      = 43
	offProducerEpoch   = 51
	offBaseSequence    = 53
	offCount           = 57
)

// magic is the number of the format. Kafka has written no other since 0.11.
const magic = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Head is what stands before the records. Timestamps are in milliseconds since 1970.
type Head struct {
	BaseOffset                  int64
	Attributes                  Attributes
	LastOffsetDelta             int32
	BaseTimestamp, MaxTimestamp int64
	// ProducerID is negative where the producer is not idempotent.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Count         int32
}

// Attributes are the flags of a batch. The lowest three bits are its codec.
type Attributes int16

const (
	codecBits Attributes = 1<<3 - 1
	// AppendTime: all records have the max timestamp, which is when the batch was stored.
	AppendTime Attributes = 1 << 3
	// Transactional: whether the records count is still to be said.
	Transactional Attributes = 1 << 4
	// Control: the batch is the broker's own word on a transaction.
	Control Attributes = 1 << 5
)

func (a Attributes) codec() codec { return codec(a & codecBits) }

// ReadHead reads the head of a batch, of which raw is the whole. The checksum is not looked at.
func ReadHead(raw []byte) (Head, error) {
	if len(raw) > offMagic && raw[offMagic] != magic {
		return Head{}, fmt.Errorf("%w: its format is %d, and only %d can be stored", ErrInvalid, raw[offMagic], magic)
	}
	if len(raw) < HeadBytes {
		return Head{}, fmt.Errorf("%w: it has %d bytes, and its head alone %d", ErrCorrupt, len(raw), HeadBytes)
	}
	if n := uint64(binary.BigEndian.Uint32(raw[offLength:])) + offLeaderEpoch; n != uint64(len(raw)) {
		return Head{}, fmt.Errorf("%w: it has %d bytes, and says %d", ErrCorrupt, len(raw), n)
	}
	h := Head{
		BaseOffset:      int64(binary.BigEndian.Uint64(raw[offBaseOffset:])),
		Attributes:      Attributes(binary.BigEndian.Uint16(raw[offAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(raw[offLastOffsetDelta:])),
		BaseTimestamp:   int64(binary.BigEndian.Uint64(raw[offBaseTimestamp:])),
		MaxTimestamp:    int64(binary.BigEndian.Uint64(raw[offMaxTimestamp:])),
		ProducerID:      int64(binary.BigEndian.Uint64(raw[offProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(raw[offProducerEpoch:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(raw[offBaseSequence:])),
		Count:           int32(binary.BigEndian.Uint32(raw[offCount:])),
	}
	if h.Count <= 0 || h.LastOffsetDelta != h.Count-1 {
		return Head{}, fmt.Errorf("%w: %d records, the last one with offset delta %d", ErrInvalid, h.Count, h.LastOffsetDelta)
	}
	return h, nil
}

// append writes the head. Length and checksum are filled in by seal.
func (h Head) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.BaseOffset))
	dst = append(dst, 0, 0, 0, 0 /* length */, 0, 0, 0, 0 /* leader epoch */, magic, 0, 0, 0, 0 /* checksum */)
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Attributes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.LastOffsetDelta))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.BaseTimestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.MaxTimestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.ProducerEpoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.BaseSequence))
	return binary.BigEndian.AppendUint32(dst, uint32(h.Count))
}

// seal fills in the length and the checksum of a batch that is whole.
func seal(batch []byte) {
	binary.BigEndian.PutUint32(batch[offLength:], uint32(len(batch)-offLeaderEpoch))
	binary.BigEndian.PutUint32(batch[offChecksum:], checksum(batch))
}

func checksum(batch []byte) uint32 { return crc32.Checksum(batch[offAttributes:], castagnoli) }

// Place fills in where and when a batch was stored; see eventlog.Batch. Where its attributes say so, that
// is the time of all its records.
func Place(batch []byte, first eventlog.Sequence, ms int64) {
	if len(batch) < HeadBytes {
		return
	}
	binary.BigEndian.PutUint64(batch[offBaseOffset:], uint64(first))
	binary.BigEndian.PutUint32(batch[offLeaderEpoch:], 0)
	if Attributes(binary.BigEndian.Uint16(batch[offAttributes:]))&AppendTime != 0 {
		binary.BigEndian.PutUint64(batch[offMaxTimestamp:], uint64(ms))
		binary.BigEndian.PutUint32(batch[offChecksum:], checksum(batch))
	}
}

// Timed has all records of a frame that may be stored get the time at which that is done. It writes to the
// frame's bytes, whose checksum is right again when Place has filled in that time.
func Timed(b eventlog.Batch) eventlog.Batch {
	attributes := Attributes(binary.BigEndian.Uint16(b.Raw[offAttributes:])) | AppendTime
	binary.BigEndian.PutUint16(b.Raw[offAttributes:], uint16(attributes))
	b.MaxTime = time.Time{} // it is that at which it is stored
	return b
}

// Zstd tells whether a batch is packed in the one way that older clients cannot be given.
func Zstd(batch []byte) bool {
	return len(batch) >= HeadBytes && Attributes(binary.BigEndian.Uint16(batch[offAttributes:])).codec() == codecZstd
}
