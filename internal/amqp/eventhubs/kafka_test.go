package eventhubs

import (
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K4: a receiver gets what Kafka's producers send, with what is only Kafka's beside it.
func TestReceiveWhatKafkaSent(t *testing.T) {
	y := newOrders(t, 1)
	var id eventlog.PartitionID
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpSubmit {
			id = op.ID
		}
		return nil
	})
	y.store("orders", "0", "single")
	y.storage.Engine.Inject(nil)
	b := record.Begin(nil, 0, 1_700_000_000_000)
	b.Add(&record.Record{Timestamp: 1_700_000_000_000, Key: []byte("k\xff"), Value: []byte("value"), Headers: []record.Header{{Name: []byte("h"), Value: []byte{1, 2}}}})
	b.Add(&record.Record{Timestamp: 1_700_000_000_001})
	p := testkit.Value(y.storage.Engine.Partition(id))(t)
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, testkit.Value(record.Check(b.End()))(t))))

	got := receive(t, newReceiver(t, y.session(), firstPartition, listening{}), 3)
	testkit.Equal(t, texts(got), "single value ")
	value, null := got[1], got[2]
	testkit.Diff(t, []byte("k\xff"), value.Annotations["x-opt-kafka-key"])
	testkit.Diff(t, map[string]any{"h": []byte{1, 2}}, value.ApplicationProperties)
	testkit.Equal(t, value.Properties.CreationTime.UnixMilli(), 1_700_000_000_000)
	testkit.Equal(t, value.Annotations["x-opt-sequence-number"], any(int64(1)))
	testkit.That(t, value.Annotations["x-opt-partition-key"] == nil, "it has a partition key")
	testkit.Equal(t, null.Annotations["x-opt-kafka-null"], any(true))
	testkit.Equal(t, null.Annotations["x-opt-sequence-number"], any(int64(2)))
}
