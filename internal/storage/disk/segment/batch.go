package segment

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Offsets in a batch header. The sum at offSum covers the bytes behind it, and so,
// through offBodySum, the body.
const (
	offMagic         = 0
	offSum           = 4
	offSalt          = 8
	offFirst         = 16
	offTime          = 24
	offCount         = 32
	offBodyBytes     = 36
	offBodySum       = 40
	offProducerFirst = 44
	offProducerID    = 48
	offProducerEpoch = 56
	offFlags         = 58
	offInDoubt       = 60
)

const flagProducer = 1

// MaxBodyBytes bounds a batch's body; a larger length field is taken for damage.
const MaxBodyBytes = 64 << 20

var (
	// ErrShort: the bytes end before the batch does.
	ErrShort = errors.New("batch is cut short")
	// ErrInvalid: the bytes are no batch of this segment.
	ErrInvalid = errors.New("checksum does not match")
)

// Info is what a batch's header says of it.
type Info struct {
	// First is the number of the first event, Count how many there are.
	First int64
	Count int
	// Time is the enqueued time in milliseconds.
	Time int64
	// The idempotent producer's id, epoch and first number, if HasProducer.
	HasProducer   bool
	ProducerID    int64
	ProducerEpoch int16
	ProducerFirst int32
}

// Batch is one batch as read from a file. Body is a part of the bytes parsed.
type Batch struct {
	Info
	inDoubt int64 // see DurableTo
	Body    []byte
	// Bytes is the room it takes in the file.
	Bytes int
}

// DurableTo is the file offset below which all was known to be durable when the
// batch, which stands at the given offset, was written.
func (b Batch) DurableTo(offset int64) int64 { return offset - b.inDoubt }

// Reserve appends room for a batch header; the body follows it, then Finish.
func Reserve(dst []byte) []byte {
	return append(dst, make([]byte, BatchHeaderBytes)...)
}

// Finish completes the batch that begins at start in buf: everything of the header
// that does not depend on the place in a file, the body's checksum, and padding.
func Finish(buf []byte, start int, info Info) []byte {
	h := buf[start : start+BatchHeaderBytes]
	body := buf[start+BatchHeaderBytes:]
	binary.LittleEndian.PutUint32(h[offMagic:], batchMagic)
	binary.LittleEndian.PutUint64(h[offFirst:], uint64(info.First))
	binary.LittleEndian.PutUint64(h[offTime:], uint64(info.Time))
	binary.LittleEndian.PutUint32(h[offCount:], uint32(info.Count))
	binary.LittleEndian.PutUint32(h[offBodyBytes:], uint32(len(body)))
	binary.LittleEndian.PutUint32(h[offBodySum:], crc32.Checksum(body, castagnoli))
	if info.HasProducer {
		binary.LittleEndian.PutUint16(h[offFlags:], flagProducer)
		binary.LittleEndian.PutUint64(h[offProducerID:], uint64(info.ProducerID))
		binary.LittleEndian.PutUint16(h[offProducerEpoch:], uint16(info.ProducerEpoch))
		binary.LittleEndian.PutUint32(h[offProducerFirst:], uint32(info.ProducerFirst))
	}
	for range padding(len(body)) {
		buf = append(buf, 0)
	}
	return buf
}

// Seal makes the finished batches in buf, which are about to be written at offset,
// part of a segment; durable is the offset below which the file is known to be durable.
func Seal(buf []byte, salt uint64, offset, durable int64) {
	for at := 0; at < len(buf); {
		h := buf[at : at+BatchHeaderBytes]
		binary.LittleEndian.PutUint64(h[offSalt:], salt)
		binary.LittleEndian.PutUint32(h[offInDoubt:], uint32(offset+int64(at)-durable))
		binary.LittleEndian.PutUint32(h[offSum:], crc32.Checksum(h[offSalt:], castagnoli))
		at += batchBytes(h)
	}
}

// Parse decodes the batch at the beginning of b and checks its sums. With ErrShort it
// also says how many bytes the batch needs.
func Parse(b []byte, salt uint64) (batch Batch, need int, err error) {
	if len(b) < BatchHeaderBytes {
		return Batch{}, BatchHeaderBytes, ErrShort
	}
	h := b[:BatchHeaderBytes]
	if saltOf(h) != salt || !isHeader(h) || binary.LittleEndian.Uint32(h[offBodyBytes:]) > MaxBodyBytes {
		return Batch{}, 0, ErrInvalid
	}
	need = batchBytes(h)
	if len(b) < need {
		return Batch{}, need, ErrShort
	}
	body := b[BatchHeaderBytes : BatchHeaderBytes+int(binary.LittleEndian.Uint32(h[offBodyBytes:]))]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(h[offBodySum:]) {
		return Batch{}, 0, ErrInvalid
	}
	return Batch{
		Info:    parseInfo(h),
		inDoubt: int64(binary.LittleEndian.Uint32(h[offInDoubt:])),
		Body:    body,
		Bytes:   need,
	}, need, nil
}

func parseInfo(h []byte) Info {
	info := Info{
		First: int64(binary.LittleEndian.Uint64(h[offFirst:])),
		Count: int(binary.LittleEndian.Uint32(h[offCount:])),
		Time:  int64(binary.LittleEndian.Uint64(h[offTime:])),
	}
	if binary.LittleEndian.Uint16(h[offFlags:])&flagProducer != 0 {
		info.HasProducer = true
		info.ProducerID = int64(binary.LittleEndian.Uint64(h[offProducerID:]))
		info.ProducerEpoch = int16(binary.LittleEndian.Uint16(h[offProducerEpoch:]))
		info.ProducerFirst = int32(binary.LittleEndian.Uint32(h[offProducerFirst:]))
	}
	return info
}

// isHeader reports whether the bytes are a batch's header, of whatever segment.
func isHeader(h []byte) bool {
	return binary.LittleEndian.Uint32(h[offMagic:]) == batchMagic &&
		binary.LittleEndian.Uint32(h[offSum:]) == crc32.Checksum(h[offSalt:], castagnoli)
}

// saltOf is the salt a batch header claims, to be checked by Parse.
func saltOf(h []byte) uint64 { return binary.LittleEndian.Uint64(h[offSalt:]) }

// batchBytes is the room a batch takes, by its header.
func batchBytes(h []byte) int {
	body := int(binary.LittleEndian.Uint32(h[offBodyBytes:]))
	return BatchHeaderBytes + body + padding(body)
}

func padding(body int) int { return -body & (Align - 1) }
