package eventhubs

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/broker"
	"github.com/eventyard/eventyard/internal/eventlog"
)

// Giving an event to a client allocates nothing, with metrics and without.
func TestDeliveringAllocatesNothing(t *testing.T) {
	stored := encode(t,
		wire.DescriptorMessageAnnotations, wire.Map{{Key: wire.Symbol("x"), Value: "y"}},
		wire.DescriptorProperties, []any{"id"}, wire.DescriptorData, []byte("body"))
	f := &feed{events: []eventlog.Event{{Key: []byte("key"), Message: stored}, {Message: stored}}}
	f.told.EnqueuedTime = time.Now().UnixMilli()
	buf := make([]byte, 0, 1024)
	for _, metrics := range []*wire.DeliveryMetrics{nil, &f.newest} {
		f.told.Metrics = metrics
		if n := testing.AllocsPerRun(100, func() {
			for i := range f.events {
				buf = f.appendEvent(buf[:0], i)
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
