package eventhubs

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

const benchBatch = 500

// How fast events of 100 bytes come in through the listener and the server, on one connection
// in memory: in batches, and one by one.
func BenchmarkPublish(b *testing.B) {
	body := plain(b, strings.Repeat("x", 100))
	events := make([][]byte, benchBatch)
	for i := range events {
		events[i] = body
	}
	b.Run("batches", func(b *testing.B) { benchPublish(b, formatBatch, envelope(b, nil, events...), benchBatch) })
	b.Run("single", func(b *testing.B) { benchPublish(b, formatMessage, body, 1) })
}

func benchPublish(b *testing.B, format uint32, msg []byte, events float64) {
	y := newYard(b)
	y.hub("orders", 1)
	c := y.rawAs(auth.RootPolicy)
	c.accepted(0, wire.Attach{Name: "s", Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some("orders")}})
	const ahead = 256
	waiting := 0
	settle := func() {
		d := c.disposition()
		waiting -= int(d.Last.Or(d.First)-d.First) + 1
	}
	b.ReportAllocs()
	for b.Loop() {
		c.write(0, c.transfer(format), msg)
		for waiting++; waiting > ahead; {
			settle()
		}
	}
	for waiting > 0 {
		settle()
	}
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
}

// How fast they go out.
func BenchmarkReceive(b *testing.B) {
	y := newYard(b)
	y.hub("orders", 1)
	stored := plain(b, strings.Repeat("x", 100))
	for range 200 {
		events := make([]eventlog.Event, benchBatch)
		for i := range events {
			events[i].Message = stored
		}
		_, err := y.broker.Publish(b.Context(), "orders", broker.Target{Partition: "0"}, events)
		testkit.Must(b, err)
	}
	for b.Loop() {
		c := y.rawAs(auth.RootPolicy)
		c.accepted(0, wire.Attach{Name: "r", Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(firstPartition)}, Target: &wire.Target{}})
		for n := uint32(0); n < 200*benchBatch; n++ {
			if n%1000 == 0 {
				c.write(0, wire.AppendFlow(nil, &wire.Flow{
					NextIncomingID: wire.Some(1 + n), IncomingWindow: 5000, OutgoingWindow: 5000,
					Handle: wire.Some(uint32(0)), DeliveryCount: wire.Some(n), LinkCredit: wire.Some(uint32(2000)),
				}), nil)
			}
			c.expect(wire.DescriptorTransfer)
		}
		c.conn.Close()
	}
	b.ReportMetric(float64(b.N)*200*benchBatch/b.Elapsed().Seconds(), "events/s")
}
