package v1

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// partitionOf finds where a hub's first partition is stored, by an event.
func (y *yard) partitionOf(hub string) eventlog.Partition {
	y.t.Helper()
	var id eventlog.PartitionID
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpSubmit && strings.HasPrefix(op.ID.Log, hub) {
			id = op.ID
		}
		return nil
	})
	y.send(hub, "0", "single")
	y.Engine.Inject(nil)
	return testkit.Value(y.Engine.Partition(id))(y.t)
}

// K4: what Kafka's producers send is read over HTTP.
func TestReadWhatKafkaSent(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	p := y.partitionOf("orders")
	b := record.Begin(nil, 0, 1_700_000_000_000)
	b.Add(&record.Record{Timestamp: 1_700_000_000_000, Key: []byte("k"), Value: []byte("first"), Headers: []record.Header{
		{Name: []byte("content-type"), Value: []byte("text/plain")}, {Name: []byte("ce_specversion"), Value: []byte("1.0")},
	}})
	b.Add(&record.Record{Timestamp: 1_700_000_000_001, Value: []byte("second")})
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, testkit.Value(record.Check(b.End()))(t))))

	page := y.page("orders", "0", "from=earliest")
	testkit.Equal(t, texts(page.Events), "single first second")
	testkit.Equal(t, page.Next, 3)
	first := page.Events[1]
	testkit.Equal(t, first.ContentType, "text/plain")
	testkit.Equal(t, first.Key, "", "the partition key")
	testkit.Equal(t, first.Properties["cloudEvents:specversion"], any("1.0"))
	testkit.That(t, first.System["x-opt-kafka-key"] != nil, "the key is missing: %v", first.System)
	testkit.Equal(t, texts(y.page("orders", "0", "from=2").Events), "second", "from the middle")
}
