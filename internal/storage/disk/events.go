package disk

import (
	"encoding/binary"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// An event in a batch's body: message length (4 bytes), key length (4), key,
// message. Numbers are little-endian.
const eventHeaderBytes = eventlog.EventOverheadBytes

// headroom is what a batch takes at most beyond what it measures.
const headroom = segment.FormHeaderBytes + segment.Align

var errBody = errors.New("batch body is malformed")

// infoOf is what a batch's header says that gets this number and time.
func infoOf(b eventlog.Batch, first eventlog.Sequence, timeMS int64) segment.Info {
	info := segment.Info{
		First: int64(first), Count: b.Len(), Time: timeMS,
		HasProducer: b.Producer.Set, ProducerID: b.Producer.ID,
		ProducerEpoch: b.Producer.Epoch, ProducerFirst: b.Producer.First,
		Form: uint8(b.Form), MaxTime: timeMS,
	}
	if !b.MaxTime.IsZero() {
		info.MaxTime = b.MaxTime.UnixMilli()
	}
	return info
}

// appendBatch encodes a batch, all but what depends on its place in a file.
func appendBatch(dst []byte, b eventlog.Batch, info segment.Info) []byte {
	start := len(dst)
	dst = segment.Reserve(dst, info.Form)
	if b.Form != eventlog.FormEvents {
		dst = append(dst, b.Raw...)
		if raw := dst[len(dst)-len(b.Raw):]; b.Place != nil {
			b.Place(raw[:len(raw):len(raw)], eventlog.Sequence(info.First), info.Time)
		}
		return segment.Finish(dst, start, info)
	}
	for i := range b.Events {
		e := &b.Events[i]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Message)))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Key)))
		dst = append(dst, e.Key...)
		dst = append(dst, e.Message...)
	}
	return segment.Finish(dst, start, info)
}

// decodeEvents lists the events of a body in dst, as parts of the body.
func decodeEvents(dst []eventlog.Event, body []byte, count int) ([]eventlog.Event, error) {
	for range count {
		if len(body) < eventHeaderBytes {
			return dst, errBody
		}
		message := int(binary.LittleEndian.Uint32(body))
		key := int(binary.LittleEndian.Uint32(body[4:]))
		body = body[eventHeaderBytes:]
		if key > eventlog.MaxKeyBytes || message > len(body) || key > len(body)-message {
			return dst, errBody
		}
		end := key + message
		dst = append(dst, eventlog.Event{Key: body[:key:key], Message: body[key:end:end]})
		body = body[end:]
	}
	if len(body) != 0 {
		return dst, errBody
	}
	return dst, nil
}
