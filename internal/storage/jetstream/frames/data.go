package frames

import (
	"encoding/binary"
	"hash/crc32"
	"iter"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// BatchHeaderBytes is what a batch takes in a frame beside its body.
const BatchHeaderBytes = 24

// Offsets in a batch's header.
const (
	offBatchBody     = 0
	offBatchEvents   = 4
	offBatchForm     = 8
	offBatchFlags    = 9
	offProducerEpoch = 10
	offProducerFirst = 12
	offProducerID    = 16
)

// flagMark says that a batch has the mark of an idempotent producer.
const flagMark = 1

// Batch is one appended batch in a frame: whole or not there, numbered as one run.
type Batch struct {
	// Events is how many events the body has, at least one.
	Events int
	// Producer is the mark of an idempotent producer, if it is set.
	Producer eventlog.Producer
	// Form says how the body is encoded; this package does not look into it.
	Form uint8
	Body []byte
}

// Bytes is the room that the batch takes in a frame.
func (b Batch) Bytes() int { return BatchHeaderBytes + len(b.Body) }

// AppendData appends a data frame with these batches, of which there is at least one, each with at
// least one event. Of h it takes writer, epoch, q, time and base. It allocates only to make dst
// grow.
func AppendData(dst []byte, h Header, batches []Batch) []byte {
	start := len(dst)
	dst = reserve(dst)
	h.Kind, h.Events, h.Batches = KindData, 0, len(batches)
	for i := range batches {
		dst = appendBatch(dst, &batches[i])
		h.Events += batches[i].Events
	}
	return finish(dst, start, h)
}

func appendBatch(dst []byte, b *Batch) []byte {
	var head [BatchHeaderBytes]byte
	binary.LittleEndian.PutUint32(head[offBatchBody:], uint32(len(b.Body)))
	binary.LittleEndian.PutUint32(head[offBatchEvents:], uint32(b.Events))
	head[offBatchForm] = b.Form
	if b.Producer.Set {
		head[offBatchFlags] = flagMark
		binary.LittleEndian.PutUint16(head[offProducerEpoch:], uint16(b.Producer.Epoch))
		binary.LittleEndian.PutUint32(head[offProducerFirst:], uint32(b.Producer.First))
		binary.LittleEndian.PutUint64(head[offProducerID:], uint64(b.Producer.ID))
	}
	return append(append(dst, head[:]...), b.Body...)
}

// AppendFence appends a fence: of h it takes writer, epoch, time and base.
func AppendFence(dst []byte, h Header) []byte {
	start := len(dst)
	h.Kind, h.Q, h.Events, h.Batches = KindFence, 0, 0, 0
	return finish(reserve(dst), start, h)
}

// Frame is a frame as it was read. Its payload is a part of the message.
type Frame struct {
	Header
	payload []byte
}

// Decode checks a message and gives its frame, without copying: the frame is valid as long as the
// message's bytes. Everything that is wrong is found here; mark frames are read on by DecodeMark.
// Errors: those of this package, as they are.
func Decode(message []byte) (Frame, error) {
	h, err := DecodeHeader(message)
	if err != nil {
		return Frame{}, err
	}
	payload := message[HeaderBytes:]
	if len(payload) != h.PayloadBytes {
		return Frame{}, ErrShort
	}
	if crc32.Checksum(payload, castagnoli) != h.payloadSum {
		return Frame{}, ErrChecksum
	}
	f := Frame{Header: h, payload: payload}
	if h.Kind == KindData && !f.wellFormed() {
		return Frame{}, ErrMalformed
	}
	return f, nil
}

// wellFormed reports whether the batches fill the payload and add up to what the header says.
func (f Frame) wellFormed() bool {
	events, rest := 0, f.payload
	for range f.Header.Batches {
		b, size := parseBatch(rest)
		if size == 0 || b.Events < 1 {
			return false
		}
		events, rest = events+b.Events, rest[size:]
	}
	return len(rest) == 0 && events == f.Events
}

// All gives the batches of a data frame, each with the number of events before it in the frame.
// Bodies are parts of the message.
func (f Frame) All() iter.Seq2[int, Batch] {
	return func(yield func(int, Batch) bool) {
		if f.Kind != KindData {
			return
		}
		before := 0
		for rest := f.payload; len(rest) > 0; {
			b, size := parseBatch(rest)
			if !yield(before, b) {
				return
			}
			before, rest = before+b.Events, rest[size:]
		}
	}
}

// parseBatch reads the batch at the beginning of p. The size is 0 if there is none.
func parseBatch(p []byte) (b Batch, size int) {
	if len(p) < BatchHeaderBytes {
		return Batch{}, 0
	}
	body, events := binary.LittleEndian.Uint32(p[offBatchBody:]), binary.LittleEndian.Uint32(p[offBatchEvents:])
	if uint64(body) > uint64(len(p)-BatchHeaderBytes) || events > 1<<31-1 || p[offBatchFlags]&^flagMark != 0 {
		return Batch{}, 0
	}
	size = BatchHeaderBytes + int(body)
	b = Batch{Events: int(events), Form: p[offBatchForm], Body: p[BatchHeaderBytes:size:size]}
	if p[offBatchFlags]&flagMark != 0 {
		b.Producer = eventlog.Producer{
			ID:    int64(binary.LittleEndian.Uint64(p[offProducerID:])),
			Epoch: int16(binary.LittleEndian.Uint16(p[offProducerEpoch:])),
			First: int32(binary.LittleEndian.Uint32(p[offProducerFirst:])),
			Set:   true,
		}
	}
	return b, size
}
