package segment

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Offsets in a batch header. The sum at offSum covers the header's bytes behind it, and so,
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
	offForm          = 59
	offInDoubt       = 60
	offMaxTime       = 64 // of a batch in a form of its own
)

const (
	flagProducer = 1
	flagForm     = 2
)

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
	// Form says what the body is: 0 single events, else a form of its own. MaxTime is the greatest
	// create time of such a body's events, in milliseconds.
	Form    uint8
	MaxTime int64
}

// Created is the greatest create time of the batch's events; single events are created when they
// are enqueued.
func (i Info) Created() int64 {
	if i.Form == 0 {
		return i.Time
	}
	return i.MaxTime
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

// Reserve appends room for the header of a batch of that form; the body follows it, then Finish.
func Reserve(dst []byte, form uint8) []byte {
	if form != 0 {
		return append(dst, make([]byte, FormHeaderBytes)...)
	}
	return append(dst, make([]byte, BatchHeaderBytes)...)
}

// Finish completes the batch that begins at start in buf: everything of the header
// that does not depend on the place in a file, the body's checksum, and padding.
func Finish(buf []byte, start int, info Info) []byte {
	magic, size := uint32(batchMagic), BatchHeaderBytes
	if info.Form != 0 {
		magic, size = formMagic, FormHeaderBytes
	}
	h, body := buf[start:start+size], buf[start+size:]
	binary.LittleEndian.PutUint32(h[offMagic:], magic)
	binary.LittleEndian.PutUint64(h[offFirst:], uint64(info.First))
	binary.LittleEndian.PutUint64(h[offTime:], uint64(info.Time))
	binary.LittleEndian.PutUint32(h[offCount:], uint32(info.Count))
	binary.LittleEndian.PutUint32(h[offBodyBytes:], uint32(len(body)))
	binary.LittleEndian.PutUint32(h[offBodySum:], crc32.Checksum(body, castagnoli))
	if info.HasProducer {
		h[offFlags] |= flagProducer
		binary.LittleEndian.PutUint64(h[offProducerID:], uint64(info.ProducerID))
		binary.LittleEndian.PutUint16(h[offProducerEpoch:], uint16(info.ProducerEpoch))
		binary.LittleEndian.PutUint32(h[offProducerFirst:], uint32(info.ProducerFirst))
	}
	if info.Form != 0 {
		h[offFlags] |= flagForm
		h[offForm] = info.Form
		binary.LittleEndian.PutUint64(h[offMaxTime:], uint64(info.MaxTime))
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
		h := buf[at : at+headerBytes(buf[at:])]
		binary.LittleEndian.PutUint64(h[offSalt:], salt)
		binary.LittleEndian.PutUint32(h[offInDoubt:], uint32(offset+int64(at)-durable))
		binary.LittleEndian.PutUint32(h[offSum:], crc32.Checksum(h[offSalt:], castagnoli))
		at += batchBytes(h)
	}
}

// Parse decodes the batch at the beginning of b and checks its sums. With ErrShort it
// also says how many bytes the batch needs.
func Parse(b []byte, salt uint64) (batch Batch, need int, err error) {
	h, need, err := header(b, salt)
	if err != nil {
		return Batch{}, need, err
	}
	need = batchBytes(h)
	if len(b) < need {
		return Batch{}, need, ErrShort
	}
	body := b[len(h) : len(h)+int(binary.LittleEndian.Uint32(h[offBodyBytes:]))]
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

// header gives the header at the beginning of b, checked.
func header(b []byte, salt uint64) (h []byte, need int, err error) {
	if len(b) < BatchHeaderBytes {
		return nil, BatchHeaderBytes, ErrShort
	}
	size := headerBytes(b)
	if size == 0 || saltOf(b) != salt {
		return nil, 0, ErrInvalid
	}
	if len(b) < size {
		return nil, size, ErrShort
	}
	h = b[:size]
	if !isHeader(h) || binary.LittleEndian.Uint32(h[offBodyBytes:]) > MaxBodyBytes {
		return nil, 0, ErrInvalid
	}
	return h, size, nil
}

func parseInfo(h []byte) Info {
	info := Info{
		First: int64(binary.LittleEndian.Uint64(h[offFirst:])),
		Count: int(binary.LittleEndian.Uint32(h[offCount:])),
		Time:  int64(binary.LittleEndian.Uint64(h[offTime:])),
	}
	if h[offFlags]&flagProducer != 0 {
		info.HasProducer = true
		info.ProducerID = int64(binary.LittleEndian.Uint64(h[offProducerID:]))
		info.ProducerEpoch = int16(binary.LittleEndian.Uint16(h[offProducerEpoch:]))
		info.ProducerFirst = int32(binary.LittleEndian.Uint32(h[offProducerFirst:]))
	}
	if len(h) == FormHeaderBytes {
		info.Form = h[offForm]
		info.MaxTime = int64(binary.LittleEndian.Uint64(h[offMaxTime:]))
	}
	return info
}

// headerBytes is the size of the header that b begins with, 0 if there is none.
func headerBytes(b []byte) int {
	switch binary.LittleEndian.Uint32(b[offMagic:]) {
	case batchMagic:
		return BatchHeaderBytes
	case formMagic:
		return FormHeaderBytes
	}
	return 0
}

// isHeader reports whether b begins with a batch's header, of whatever segment.
func isHeader(b []byte) bool {
	size := headerBytes(b)
	return size > 0 && size <= len(b) && binary.LittleEndian.Uint32(b[offSum:]) == crc32.Checksum(b[offSalt:size], castagnoli)
}

// saltOf is the salt a batch header claims, to be checked by Parse.
func saltOf(h []byte) uint64 { return binary.LittleEndian.Uint64(h[offSalt:]) }

// batchBytes is the room a batch takes, by its header.
func batchBytes(h []byte) int {
	body := int(binary.LittleEndian.Uint32(h[offBodyBytes:]))
	return headerBytes(h) + body + padding(body)
}

func padding(body int) int { return -body & (Align - 1) }
