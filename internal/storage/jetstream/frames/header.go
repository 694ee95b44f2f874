package frames

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// HeaderBytes is the size of a frame's header in version 1.
const HeaderBytes = 76

// Version is the one version that is written and read.
const Version = 1

const magic = "EYF"

// Offsets in a header. Those up to offHeaderBytes are the same in every version to come, so that a
// newer frame can be told from a damaged one.
const (
	offMagic       = 0
	offVersion     = 3
	offSum         = 4
	offHeaderBytes = 8
	offKind        = 10
	offFlags       = 11
	offBatches     = 12
	offWriter      = 16
	offEpoch       = 24
	offQ           = 32
	offTime        = 40
	offBaseSeq     = 48
	offBaseNext    = 56
	offEvents      = 64
	offPayload     = 68
	offPayloadSum  = 72

	prefixBytes = offKind // what all versions have in common
)

// flagProducer says that the writer is an idempotent producer.
const flagProducer = 1

// maxTime is the last millisecond of the year 9999. A later time is malformed; so sums of times do
// not overflow.
const maxTime = 253402300799999

// maxNumber bounds event numbers and sums of bytes, for the same reason.
const maxNumber = 1 << 62

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Kind says what a frame is for. Values that are not listed, and control frames, which are reserved
// for the ends of transactions, are refused with ErrVersion: who cannot fold a frame must not guess.
type Kind uint8

// The kinds of frames.
const (
	KindData  Kind = 1
	KindFence Kind = 2
	KindMark  Kind = 3

	kindControl Kind = 4 // reserved: it takes one number, which readers of events skip
)

func (k Kind) String() string {
	switch k {
	case KindData:
		return "data"
	case KindFence:
		return "fence"
	case KindMark:
		return "mark"
	case kindControl:
		return "control"
	default:
		return "unknown"
	}
}

// StreamSeq is where a frame lies in its stream: it rises with each frame, over all partitions of
// the stream. The first is 1; 0 is before all of them.
type StreamSeq uint64

// WriterID names a writer: a process, by a random number that it chose at its start, or an
// idempotent producer, by its id.
type WriterID struct {
	ID       uint64
	Producer bool
}

// Epoch rises with each fence of a writer. Its high half counts them; its low half is the salt of
// who fenced. A process has the salt 0, since nobody else writes for it. For an idempotent producer
// any node may; each claim has a random salt, so that no two ever write in the same epoch.
type Epoch uint64

// After is the lowest epoch with this salt whose count is higher.
func (e Epoch) After(salt uint32) Epoch { return (e>>32+1)<<32 | Epoch(salt) }

// Salt is that of who fenced.
func (e Epoch) Salt() uint32 { return uint32(e) }

// Base is a checksum of the fold: having folded the stream up to Seq, the writer expected the
// partition's next event to get the number Next.
type Base struct {
	Seq  StreamSeq
	Next eventlog.Sequence
}

// Header is everything that the rule needs to know of a frame.
type Header struct {
	Kind   Kind
	Writer WriterID
	Epoch  Epoch
	// Q numbers the data frames of a writer's epoch from 0. It is 0 in other frames.
	Q uint64
	// Time is the writer's, in milliseconds since 1970. The fold gives the frame a later one where
	// the partition has seen one.
	Time int64
	// Base is of the partition. In a mark its Seq is what the mark is as of, and Next 0.
	Base Base
	// Events and Batches are how many a data frame has, over all; in a mark, Batches is the
	// number of its partitions.
	Events, Batches int
	// PayloadBytes is the length of what follows the header.
	PayloadBytes int

	payloadSum uint32
}

// Bytes is the size of the whole frame.
func (h Header) Bytes() int { return HeaderBytes + h.PayloadBytes }

// reserve appends room for a header.
func reserve(dst []byte) []byte {
	var zero [HeaderBytes]byte
	return append(dst, zero[:]...)
}

// finish writes the header of the frame that begins at start and ends with buf.
func finish(buf []byte, start int, h Header) []byte {
	b, payload := buf[start:start+HeaderBytes], buf[start+HeaderBytes:]
	copy(b[offMagic:], magic)
	b[offVersion] = Version
	binary.LittleEndian.PutUint16(b[offHeaderBytes:], HeaderBytes)
	b[offKind] = byte(h.Kind)
	if h.Writer.Producer {
		b[offFlags] = flagProducer
	}
	binary.LittleEndian.PutUint64(b[offEpoch:], uint64(h.Epoch))
	binary.LittleEndian.PutUint64(b[offWriter:], h.Writer.ID)
	binary.LittleEndian.PutUint64(b[offQ:], h.Q)
	binary.LittleEndian.PutUint64(b[offTime:], uint64(h.Time))
	binary.LittleEndian.PutUint64(b[offBaseSeq:], uint64(h.Base.Seq))
	binary.LittleEndian.PutUint64(b[offBaseNext:], uint64(h.Base.Next))
	binary.LittleEndian.PutUint32(b[offEvents:], uint32(h.Events))
	binary.LittleEndian.PutUint32(b[offBatches:], uint32(h.Batches))
	binary.LittleEndian.PutUint32(b[offPayload:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[offPayloadSum:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(b[offSum:], headerSum(b))
	return buf
}

// headerSum leaves out the bytes that it is kept in.
func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:offSum], castagnoli), castagnoli, b[offHeaderBytes:])
}

// DecodeHeader reads the header at the beginning of b, which may end with it: nodes send each other
// the headers of what they wrote. The payload's checksum is in the header, and so under the
// header's own.
func DecodeHeader(b []byte) (Header, error) {
	if err := checkPrefix(b); err != nil {
		return Header{}, err
	}
	flags, time, next := b[offFlags], binary.LittleEndian.Uint64(b[offTime:]), binary.LittleEndian.Uint64(b[offBaseNext:])
	events, batches := binary.LittleEndian.Uint32(b[offEvents:]), binary.LittleEndian.Uint32(b[offBatches:])
	payload := binary.LittleEndian.Uint32(b[offPayload:])
	if flags&^flagProducer != 0 || time > maxTime || next > maxNumber || max(events, batches, payload) > 1<<31-1 {
		return Header{}, ErrMalformed
	}
	h := Header{
		Kind:         Kind(b[offKind]),
		Writer:       WriterID{ID: binary.LittleEndian.Uint64(b[offWriter:]), Producer: flags&flagProducer != 0},
		Epoch:        Epoch(binary.LittleEndian.Uint64(b[offEpoch:])),
		Q:            binary.LittleEndian.Uint64(b[offQ:]),
		Time:         int64(time),
		Base:         Base{Seq: StreamSeq(binary.LittleEndian.Uint64(b[offBaseSeq:])), Next: eventlog.Sequence(next)},
		Events:       int(events),
		Batches:      int(batches),
		PayloadBytes: int(payload),
		payloadSum:   binary.LittleEndian.Uint32(b[offPayloadSum:]),
	}
	return h, h.check()
}

// checkPrefix finds out whether b begins with an intact header of version 1.
func checkPrefix(b []byte) error {
	if len(b) < prefixBytes {
		return ErrShort
	}
	if string(b[offMagic:offVersion]) != magic {
		return ErrNotFrame
	}
	size := int(binary.LittleEndian.Uint16(b[offHeaderBytes:]))
	switch {
	case size < prefixBytes:
		return ErrMalformed
	case len(b) < size:
		return ErrShort
	case headerSum(b[:size]) != binary.LittleEndian.Uint32(b[offSum:]):
		return ErrChecksum
	case b[offVersion] != Version:
		return ErrVersion
	case size != HeaderBytes:
		return ErrMalformed
	}
	return nil
}

// check finds what contradicts the frame's kind.
func (h Header) check() error {
	ok := false
	switch h.Kind {
	case KindData:
		ok = h.Batches > 0 && h.Events >= h.Batches && h.Batches <= h.PayloadBytes/BatchHeaderBytes
	case KindFence:
		ok = h.Q == 0 && h.Events == 0 && h.Batches == 0 && h.PayloadBytes == 0
	case KindMark:
		ok = h.Epoch == 0 && h.Q == 0 && h.Events == 0 && h.Base.Next == 0
	default:
		return ErrVersion
	}
	if !ok {
		return ErrMalformed
	}
	return nil
}
