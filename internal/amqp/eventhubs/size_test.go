package eventhubs

import (
	"slices"
	"strings"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: what fits the link fits the log, also as many small events; except that a key
// which only the envelope has is stored with each of them. What does not fit by that is
// refused with the numbers that matter, and the link goes on.
func TestWhatFitsTheLinkFitsTheLog(t *testing.T) {
	y := newOrders(t, 1)
	sender := newSender(t, y.session(), "orders", nil)
	one := text("x")
	encoded := testkit.Value(one.MarshalBinary())(t)
	fit := int(sender.MaxMessageSize()-100) / (len(encoded) + 5)
	batch := batchOf(t, nil, slices.Repeat([]*goamqp.Message{one}, fit)...)
	testkit.Must(t, sender.Send(t.Context(), batch, nil))

	batch.Annotations = goamqp.Annotations{wire.AnnotationPartitionKey: strings.Repeat("k", 64)}
	wantError(t, sender.Send(t.Context(), batch, nil), condMessageSize, "Publish to orders/0: batch is too large: ")

	testkit.Must(t, sender.Send(t.Context(), text("x"), nil))
	testkit.Equal(t, len(y.stored("orders", "0")), fit+1, "events are stored")
}
