package eventhubs

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: clients that ask for events and take none are cut off when others need the memory that they
// hold, and nobody else is. All others get everything.
func TestReceiversThatTakeNothingMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, partitions = 4, 6
		memory := admission.NewMemory(2*eventlog.MaxHeldBytes, 3*eventlog.MaxHeldBytes, 5*time.Second)
		y := newYard(t, func(s *setup) { s.handler.Memory = memory })
		y.hub("orders", partitions)
		y.policy("orders", "slow", auth.Listen)
		for i := range events {
			for p := range partitions {
				y.store("orders", fmt.Sprint(p), fmt.Sprint(i)+strings.Repeat(" ", 900_000))
			}
		}
		var deaf []*deafConn
		for p := range partitions {
			nc := &deafConn{Conn: testkit.Value(y.listener.Dial(t.Context()))(t), hears: make(chan struct{})}
			conn := testkit.Value(goamqp.NewConn(t.Context(), nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("slow", keyOf("slow")), HostName: "localhost"}))(t)
			defer conn.Close()
			defer close(nc.hears)
			newReceiver(t, newSession(t, conn), partitionAddress(p), listening{from: fromStart})
			nc.deaf.Store(true)
			deaf = append(deaf, nc)
		}
		synctest.Wait()
		for _, policy := range []string{"slow", auth.RootPolicy} {
			r := newReceiver(t, y.sessionAs(policy), partitionAddress(0), listening{from: fromStart})
			for i, m := range receive(t, r, events) {
				testkit.Equal(t, strings.TrimSpace(string(m.GetData())), fmt.Sprint(i), "event for %s", policy)
			}
		}
		cut := 0
		for _, nc := range deaf {
			if _, err := nc.Write(nil); err != nil {
				cut++
			}
		}
		testkit.That(t, cut > 0 && cut < len(deaf), "%d of %d were cut off", cut, len(deaf))
	})
}

const fromStart = "amqp.annotation.x-opt-offset > '-1'"

func partitionAddress(partition int) string {
	return fmt.Sprintf("orders/ConsumerGroups/$Default/Partitions/%d", partition)
}

// deafConn reads nothing while it is deaf.
type deafConn struct {
	net.Conn
	deaf  atomic.Bool
	hears chan struct{} // closed at the end
}

func (c *deafConn) Read(p []byte) (int, error) {
	if c.deaf.Load() {
		<-c.hears
	}
	return c.Conn.Read(p)
}

// R2: a client that wants no more for now holds no memory that others need, stays connected, and
// gets the rest when it wants it.
func TestReceiversThatWantNothingLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(eventlog.MaxHeldBytes, eventlog.MaxHeldBytes, time.Second)
		y := newYard(t, func(s *setup) { s.handler.Memory = memory })
		y.hub("orders", 1)
		var batch []eventlog.Event // of which a client wants one event at a time
		for i := range 6 {
			batch = append(batch, eventlog.Event{Message: plain(t, fmt.Sprint(i))})
		}
		testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, batch)))
		var receivers []*goamqp.Receiver
		for range 3 {
			receivers = append(receivers, newReceiver(t, y.session(), partitionAddress(0), listening{from: fromStart, credit: -1}))
		}
		for i := range 6 {
			for _, r := range receivers {
				testkit.Must(t, r.IssueCredit(1))
				testkit.Equal(t, texts(receive(t, r, 1)), fmt.Sprint(i))
			}
		}
	})
}
