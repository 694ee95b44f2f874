package record

import (
	"encoding/binary"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Marker makes the control frame that ends the transaction of a producer in a partition. It has one record, whose
// key says what becomes of the transaction. Clients read it, and give it to nobody.
func Marker(producer int64, epoch int16, commit bool, now time.Time) eventlog.Batch {
	word := eventlog.Abort
	if commit {
		word = eventlog.Commit
	}
	ms := now.UnixMilli()
	b := Begin(nil, 0, ms)
	b.head.Attributes = Transactional | Control
	b.head.ProducerID, b.head.ProducerEpoch = producer, epoch
	key := binary.BigEndian.AppendUint16(make([]byte, 2, 4), uint16(word)) // behind a version, 0
	value := make([]byte, 6)                                               // a version, and the epoch of a coordinator, which nobody looks at
	b.Add(&Record{Timestamp: ms, Key: key, Value: value})
	return eventlog.Batch{
		Form: eventlog.FormControl, Raw: b.End(), Count: 1, MaxTime: now, Place: Place,
		Producer: eventlog.Producer{ID: producer, Epoch: epoch, First: word, Set: true},
	}
}

// Fillers fill in the place of batches, by the forms that these are stored in; see eventlog.Batch.
func Fillers() map[eventlog.Form]func(raw []byte, first eventlog.Sequence, ms int64) {
	return map[eventlog.Form]func([]byte, eventlog.Sequence, int64){
		eventlog.FormKafka: Place, eventlog.FormTransaction: Place, eventlog.FormControl: Place,
	}
}
