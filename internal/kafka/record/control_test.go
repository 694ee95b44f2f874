package record

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3: what is sent in a transaction is kept apart by its form, and is otherwise as any other batch.
func TestATransactionsBatch(t *testing.T) {
	one := []Record{{Timestamp: baseTimestamp, Key: []byte("k"), Value: []byte("v")}}
	raw := batchOf(t, packings[0], one, func(b *kmsg.RecordBatch) {
		b.Attributes = int16(Transactional)
		b.ProducerID, b.ProducerEpoch, b.FirstSequence = 9, 2, 5
	})
	frame := testkit.Value(Check(raw))(t)
	testkit.Equal(t, frame.Form, eventlog.FormTransaction)
	testkit.Equal(t, frame.Producer, eventlog.Producer{ID: 9, Epoch: 2, First: 5, Set: true})
	sameRecords(t, read(t, raw), one, "read")
}

// K3: markers are what Kafka's clients expect: worked out by hand from its description of control batches.
func TestMarkers(t *testing.T) {
	now := time.UnixMilli(baseTimestamp)
	for commit, want := range map[bool]string{false: "0000", true: "0001"} {
		b := Marker(1<<40, 7, commit, now)
		testkit.Equal(t, b.Form, eventlog.FormControl)
		testkit.Must(t, testkit.Err(b.Check()))
		testkit.Equal(t, b.Producer.First == eventlog.Commit, commit)
		head := testkit.Value(ReadHead(b.Raw))(t)
		testkit.Equal(t, head.Attributes, Transactional|Control)
		testkit.Equal(t, head.ProducerID, 1<<40)
		testkit.Equal(t, head.ProducerEpoch, 7)
		testkit.Equal(t, head.BaseSequence, -1)
		var key kmsg.ControlRecordKey
		records := read(t, b.Raw)
		testkit.Equal(t, len(records), 1)
		testkit.Must(t, key.ReadFrom(records[0].Key))
		testkit.Equal(t, hex.EncodeToString(records[0].Key), "0000"+want)
		testkit.Equal(t, key.Type == kmsg.ControlRecordKeyTypeCommit, commit)
		var end kmsg.EndTxnMarker
		testkit.Must(t, end.ReadFrom(records[0].Value))
		testkit.ErrorIs(t, testkit.Err(Check(b.Raw)), ErrInvalid, "from a client")
	}
}
