package eventhubs

import (
	"strconv"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// withKey gives a message a partition key.
func withKey(m *goamqp.Message, key string) *goamqp.Message {
	m.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: key}
	return m
}

// R1: who may send as one publisher only sends with its name for the key, as over HTTP.
func TestPublishersAreHeldToTheirKey(t *testing.T) {
	const partitions = 8
	y := newOrders(t, partitions)
	y.policy("orders", "sends", auth.Send)
	conn := y.dial(nil)
	authorizeAs(t, conn, "sends", "sb://localhost/orders/publishers/device-7", time.Hour)
	s := newSession(t, conn)
	for _, elsewhere := range []string{"orders", "orders/Partitions/0", "orders/Publishers/device-8", "orders/Publishers/device-77", "orders/Publishers/DEVICE-7"} {
		_, err := s.NewSender(t.Context(), elsewhere, nil)
		wantError(t, err, condUnauthorized, "Unauthorized access. 'Send' claim(s) are required")
	}
	_, err := s.NewSender(t.Context(), "orders/Publishers/device-7/Partitions/0", nil)
	wantError(t, err, condArgument, "A publisher sends to the partition of its name: ")

	sender := newSender(t, s, "orders/Publishers/device-7", nil)
	for _, good := range []*goamqp.Message{
		text("plain"), withKey(text("own key"), "device-7"), withKey(text("no key"), ""),
		batchOf(t, nil, text("in a batch"), withKey(text("in a batch, with its key"), "device-7")),
		batchOf(t, "device-7", text("in a batch with its key")),
	} {
		testkit.Must(t, sender.Send(t.Context(), good, nil))
	}
	for _, bad := range []*goamqp.Message{
		withKey(text("x"), "device-8"), withKey(text("x"), "DEVICE-7"),
		batchOf(t, nil, text("x"), withKey(text("x"), "device-8")), batchOf(t, "device-8", text("x")),
	} {
		wantError(t, sender.Send(t.Context(), bad, nil), condArgument, "A publisher's events have its name for their partition key: ")
	}
	home := strconv.Itoa(broker.PartitionForKey("device-7", partitions))
	c := testkit.Value(y.broker.Cursor(t.Context(), "orders", broker.DefaultGroup, home, eventlog.Earliest()))(t)
	defer c.Close()
	for got := 0; got < 6; {
		run := testkit.Value(c.Next(t.Context()))(t)
		for _, e := range run.Events {
			testkit.Equal(t, string(e.Key), "device-7", "event %d has the key", got)
			got++
		}
	}
	for p := range partitions {
		if id := strconv.Itoa(p); id != home {
			testkit.Equal(t, len(y.stored("orders", id)), 0, "events in partition %s", id)
		}
	}
}

// R1: a publisher has a name that means the same everywhere.
func TestPublishersHavePlainNames(t *testing.T) {
	y := newOrders(t, 1)
	for _, bad := range []string{"..", "a..b", "abc."} {
		_, err := y.session().NewSender(t.Context(), "orders/publishers/"+bad, nil)
		wantError(t, err, condArgument, "Publisher \""+bad+"\": name is not allowed: ")
	}
}

// Without such a token a publisher's address means the same.
func TestPublishersOfTheWholeHub(t *testing.T) {
	y := newOrders(t, 2)
	sender := newSender(t, y.session(), "orders/publishers/device-7", nil)
	testkit.Must(t, sender.Send(t.Context(), text("x"), nil))
	wantError(t, sender.Send(t.Context(), withKey(text("x"), "other"), nil), condArgument, "A publisher's events have its name")
	_, err := y.session().NewSender(t.Context(), "orders/Publishers/device-7", &goamqp.SenderOptions{DesiredCapabilities: []string{string(capabilityIdempotent)}})
	wantError(t, err, condArgument, "An idempotent producer sends to a partition")
}
