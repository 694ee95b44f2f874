package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Check says whether a producer's batch may be stored, and gives the frame that is appended then. It looks at
// the checksum and at every record, also inside packed ones: what is stored can be read, by anybody. The frame
// shares raw; it is of eventlog.FormTransaction where the batch says that it is part of one. Errors: ErrCorrupt,
// ErrTooLarge, ErrCompression, ErrInvalid.
func Check(raw []byte) (eventlog.Batch, error) {
	if len(raw) > MaxBatchBytes {
		return eventlog.Batch{}, errLarge
	}
	h, err := ReadHead(raw)
	if err != nil {
		return eventlog.Batch{}, err
	}
	if binary.BigEndian.Uint32(raw[offChecksum:]) != checksum(raw) {
		return eventlog.Batch{}, fmt.Errorf("%w: its checksum is another", ErrCorrupt)
	}
	if err := h.admit(); err != nil {
		return eventlog.Batch{}, err
	}
	greatest := int64(math.MinInt64)
	err = h.Each(raw, func(_ int, r *Record) bool {
		greatest = max(greatest, r.Timestamp)
		return true
	})
	if err != nil {
		return eventlog.Batch{}, err
	}
	b := eventlog.Batch{Form: eventlog.FormKafka, Raw: raw, Count: int(h.Count), MaxTime: time.UnixMilli(greatest), Place: Place}
	if h.ProducerID >= 0 {
		b.Producer = eventlog.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch, First: h.BaseSequence, Set: true}
	}
	if h.Attributes&Transactional != 0 {
		b.Form = eventlog.FormTransaction
	}
	return b, nil
}

// admit refuses what a producer may not say of a batch.
func (h Head) admit() error {
	why := ""
	switch a := h.Attributes; {
	case a&Control != 0:
		why = "control batches are not for clients"
	case a&Transactional != 0 && h.ProducerID < 0:
		why = "it is of a transaction, but not of a producer"
	case a&AppendTime != 0:
		why = "only the server says that its timestamps are those of storing it"
	case a&^(codecBits|Transactional) != 0:
		why = "it has attributes that are not known"
	case h.ProducerID >= 0 && (h.ProducerEpoch < 0 || h.BaseSequence < 0):
		why = "it has a producer, but not its epoch or its sequence number"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, why)
}
