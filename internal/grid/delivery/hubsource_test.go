package delivery

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// publishHub stores an event with a body in a hub's partition.
func (y *yard) publishHub(hub string, partition int, body string) {
	y.t.Helper()
	stored, err := message.Append(nil, event.Event{Body: []byte(body), ContentType: "application/json"})
	testkit.Must(y.t, err)
	_, err = y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: strconv.Itoa(partition)}, []eventlog.Event{{Message: stored}})
	testkit.Must(y.t, err)
}

// G1: a hub is a source like a topic, with all its partitions.
func TestAHubFeedsSubscriptions(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hub("readings", 4)
		y.publishHub("readings", 0, `{"early":true}`)
		source := topics.Source{Hub: "readings"}
		y.subscribeTo(source, "all-of-them")
		id := y.subscribeTo(source, "hot-ones", func(s *topics.Settings) {
			s.Filter = filter.Config{Advanced: []filter.Condition{{Operator: "NumberGreaterThan", Key: "data.t", Value: []byte("50")}}}
		})
		wait()
		want := []string{}
		for i := range 40 {
			y.publishHub("readings", i%4, fmt.Sprintf(`{"t":%d}`, i*2))
			n := i / 4
			if i%4 == 0 {
				n++
			}
			want = append(want, fmt.Sprintf("yard/readings/%d/%d", i%4, n))
		}
		wait()
		wantIDs(t, "all", y.sender.delivered("all-of-them"), want)
		wantIDs(t, "hot", y.sender.delivered("hot-ones"), want[26:])
		after(2 * time.Second)
		y.restart()
		after(time.Minute)
		testkit.Equal(t, len(y.sender.delivered("hot-ones")), 14, "deliveries of 14 events")
		if st := y.stats(id); st.Behind != 0 || !st.Oldest.IsZero() {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestADeletedHubEndsQuietly(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hub("readings", 2)
		id := y.subscribeTo(topics.Source{Hub: "readings"}, "receiver")
		y.sender.always(status(500))
		wait()
		y.publishHub("readings", 1, `{}`)
		wait()
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "readings"))
		y.sender.always(ok())
		after(10 * time.Second)
		wantIDs(t, "what was taken before", y.sender.delivered(""), []string{"yard/readings/1/0"})
		y.stats(id)
		y.hub("readings", 2) // another one
		y.publishHub("readings", 1, `{}`)
		after(time.Minute)
		y.restart()
		after(time.Minute)
		if n := len(y.sender.delivered("")); n != 1 {
			t.Errorf("%d deliveries: another hub of the same name is another source", n)
		}
	})
}

// G4, G5: a hub as the endpoint.
func TestAHubIsAResourceEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hub("target", 1)
		id := y.orders("to-hub", resource)
		y.sender.always(outcome(retry.Full))
		y.publish("orders", ids("e", 12)...)
		wait()
		if st := y.stats(id).Endpoint; st.State != retry.Waiting || st.Last != retry.Full {
			t.Errorf("endpoint %+v", st)
		}
		y.sender.always(ok())
		after(6 * time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 12))
	})
}
