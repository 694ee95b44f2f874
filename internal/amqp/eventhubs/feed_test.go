package eventhubs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Giving an event to a client allocates nothing, with metrics and without.
func TestDeliveringAllocatesNothing(t *testing.T) {
	stored := encode(t,
		wire.DescriptorMessageAnnotations, wire.Map{{Key: wire.Symbol("x"), Value: "y"}},
		wire.DescriptorProperties, []any{"id"}, wire.DescriptorData, []byte("body"))
	f := &feed{events: []eventlog.Event{{Key: []byte("key"), Message: stored}, {Message: stored}}}
	f.reported.EnqueuedTime = time.Now().UnixMilli()
	buf := make([]byte, 0, 1024)
	for _, metrics := range []*wire.DeliveryMetrics{nil, &f.newest} {
		f.reported.Metrics = metrics
		if n := testing.AllocsPerRun(100, func() {
			for i := range f.events {
				buf = f.append(buf[:0], i)
			}
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// A receiver that was robbed before its link was accepted finds out before it sends, and
// one whose link has ended does not begin.
func TestAReceiverThatIsTooLate(t *testing.T) {
	robbed := &receiver{}
	robbed.evict(&broker.EvictedError{NewEpoch: 1})
	if ok, err := robbed.begin(); ok || err == nil {
		t.Errorf("it begins: %v, %v", ok, err)
	}
	gone := &receiver{closed: true}
	if ok, err := gone.begin(); ok || err != nil {
		t.Errorf("it begins: %v, %v", ok, err)
	}
}

// A client that wants its credit used up or given back gets what there is and the rest of
// its credit, without a pause: also when all has been sent long ago (H4).
func TestDrainingIsAnsweredAtOnce(t *testing.T) {
	tests := map[string]func(c *raw){
		"credit and drain in one": func(c *raw) {
			c.drain(0, 10)
			c.receive()
			c.receive()
		},
		"drain when all is sent": func(c *raw) {
			c.credit(0, 0, 0, 10)
			c.receive()
			c.receive()
			synctest.Wait()
			c.drain(2, 8)
		},
	}
	for name, ask := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newOrders(t, 1)
				y.store("orders", "0", "a", "b")
				c := y.rawAs(auth.RootPolicy)
				c.accepted(0, wire.Attach{
					Name: "r", Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(firstPartition)}, Target: &wire.Target{},
				})
				start := time.Now()
				ask(c)
				r := wire.NewReader(c.expect(wire.DescriptorFlow).body)
				fl := testkit.Value(r.ReadFlow())(t)
				if !fl.Drain || fl.DeliveryCount != wire.Some(uint32(10)) || fl.LinkCredit != wire.Some(uint32(0)) {
					t.Errorf("the answer is %+v", fl)
				}
				if took := time.Since(start); took > 5*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// drain lets the server send on handle 0, and wants the rest of the credit back.
func (c *raw) drain(deliveryCount, credit uint32) {
	c.t.Helper()
	c.write(0, wire.AppendFlow(nil, &wire.Flow{
		NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 5000, OutgoingWindow: 5000, Handle: wire.Some(uint32(0)),
		DeliveryCount: wire.Some(deliveryCount), LinkCredit: wire.Some(credit), Drain: true,
	}), nil)
}
