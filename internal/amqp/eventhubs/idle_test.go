package eventhubs

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: a receiver that has nothing to give, or that nobody wants anything from, costs no goroutine:
// they follow connections, not links. When there is something for it, it gives it.
func TestReceiversThatDoNothing(t *testing.T) {
	const conns, links, each = 50, 200, 5                  // receivers of a partition and group
	y := newYard(t, func(s *setup) { s.idle = time.Hour }) // the first are silent while the others come
	var groups []string
	for i := range conns / each {
		groups = append(groups, fmt.Sprint("g", i))
	}
	y.hub("orders", links, groups...)
	y.store("orders", "1", "stored") // there is no credit for it
	before := runtime.NumGoroutine()
	few := func() bool { return runtime.NumGoroutine() <= before+conns*6 }
	clients := make([]*raw, conns)
	for i := range clients {
		clients[i] = y.rawAs(auth.RootPolicy)
		for handle := range uint32(links) {
			from := fmt.Sprintf("orders/ConsumerGroups/%s/Partitions/%d", groups[i/each], handle)
			clients[i].accepted(0, wire.Attach{
				Name: from, Handle: handle, Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(from)}, Target: &wire.Target{},
			})
			if handle%2 == 0 {
				clients[i].credit(0, handle, 0, 10)
			}
		}
	}
	testkit.Eventually(t, "links without goroutines", few)
	y.store("orders", "0", "new")
	for _, c := range clients {
		testkit.Equal(t, bodyOf(t, c.receive()), "new")
		c.credit(0, 1, 0, 1)
		testkit.Equal(t, bodyOf(t, c.receive()), "stored")
		c.credit(0, 1, 1, 1)
	}
	y.store("orders", "1", "more")
	for _, c := range clients {
		testkit.Equal(t, bodyOf(t, c.receive()), "more")
	}
	testkit.Eventually(t, "links without goroutines", few)
}

// R2: a receiver that waits is closed as soon as its link is ended, also for a client that does not
// answer that.
func TestAWaitingReceiverIsClosedWithItsLink(t *testing.T) {
	y := newYard(t, func(s *setup) { s.handler.Receivers = admission.NewQuota("receivers", 2, 2) })
	y.hub("orders", 2)
	old := y.rawAs(auth.RootPolicy)
	old.accepted(0, wire.Attach{
		Name: "r", Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(firstPartition)}, Target: &wire.Target{},
	})
	old.credit(0, 0, 0, 10)
	s := y.session()
	newReceiver(t, s, firstPartition, listening{epoch: int64(1)})
	testkit.Equal(t, old.detached().Condition, condStolen)
	testkit.Eventually(t, "the quota of the old one", func() bool {
		_, err := s.NewReceiver(t.Context(), "orders/ConsumerGroups/$Default/Partitions/1", nil)
		return err == nil
	})
}
