package console

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1, K2: a Kafka group has a page, with how far it has come.
func TestAKafkaGroupHasAPage(t *testing.T) {
	y := newEmptyYard(t)
	testkit.Must(t, testkit.Err(y.client.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(1)})))
	testkit.Must(t, testkit.Err(y.client.CreateGroup(t.Context(), "orders", "billing")))
	y.send(t, "one")
	y.send(t, "two")
	first := int64(0)
	testkit.Must(t, testkit.Err(y.client.MoveCheckpoint(t.Context(), "orders", "billing", "0", admin.Target{Sequence: &first}, admin.MoveOptions{})))
	testkit.Must(t, testkit.Err(y.client.CopyKafkaOffsets(t.Context(), "orders", "readers", admin.KafkaCopy{Group: "billing", To: "kafka"})))
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/hubs/orders/kafka-groups/readers")
	p.await("the group", contains("readers"))
	checkPages(t, y, "hubs/orders/kafka-groups/readers")
}
