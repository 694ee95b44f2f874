package forward

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/placement"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// member is a whole node: definitions, delivery, dead letters, its share of the shards, and the
// forwarder.
type member struct {
	*Forwarder
	name      string
	topics    *topics.Registry
	placement *placement.Placement
	cut       atomic.Bool // it does not reach the store
	stop      func()
}

// receiver counts what comes to endpoints.
type receiver struct {
	mu  sync.Mutex
	got map[string]int // by subscription and number of the event
}

func (r *receiver) Prepare(s *topics.Subscription, _ string) (*webhook.Order, error) {
	return &webhook.Order{Subscription: s, Identity: s.Webhook.URL, MaxEvents: 1}, nil
}

func (r *receiver) Deliver(ctx context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return webhook.Result{Outcome: retry.Canceled}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range batch {
		r.got[fmt.Sprint(o.Subscription.Name, "/", d.Sequence)]++
	}
	return webhook.Result{Status: 200, Outcome: retry.Delivered}
}

// join starts a node.
func join(t *testing.T, y *hubstest.Yard, wires *network, endpoints *receiver, name string) *member {
	t.Helper()
	m := &member{name: name}
	store := metatest.NewFaulty(y.Memory)
	store.Inject(func(metatest.Op) error {
		if m.cut.Load() {
			return meta.ErrUnavailable
		}
		return nil
	})
	var err error
	m.topics, err = topics.Open(t.Context(), topics.Config{Engine: y.Engine, Meta: store, Broker: y.Broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	dead, err := deadletter.Open(t.Context(), deadletter.Config{Engine: y.Engine, Meta: store, Topics: m.topics, Broker: y.Broker, Sharded: true, Log: testkit.Quiet()})
	testkit.Must(t, err)
	delivers, err := delivery.Open(t.Context(), delivery.Config{
		Meta: store, Topics: m.topics, Broker: y.Broker, Sender: endpoints, Dead: dead, Log: testkit.Quiet(),
		OpenLogs: func(ctx context.Context, held shards.Held) (*retrylog.Logs, error) {
			return retrylog.Open(ctx, retrylog.Config{Engine: y.Engine, Meta: store, Ladder: retry.Ladder(), Held: &held, Log: testkit.Quiet()})
		},
	})
	testkit.Must(t, err)
	dead.RedriveTo(delivers.Redeliver)
	m.placement, err = placement.New(placement.Config{Meta: store, Node: name, Parts: []placement.Part{dead.Serve, delivers.Serve}, Log: testkit.Quiet()})
	testkit.Must(t, err)
	m.Forwarder = New(Config{Delivery: delivers, Dead: dead, Nodes: port{wires, name}, Placement: m.placement,
		Grant: func(context.Context) []byte { return nil }, Allow: func(context.Context, []byte, string, string) error { return nil }})
	stops := []func(){testkit.Run(t, m.topics.Run), testkit.Run(t, delivers.Run), testkit.Run(t, m.placement.Run)}
	m.stop = func() {
		for i := range stops {
			stops[len(stops)-1-i]() // shards are released first
		}
	}
	return m
}

// C2, G7, G12: three nodes deliver and answer together. One that stops in good order causes no
// repeat; one that is cut off loses its shards to the others, and nothing is lost.
func TestThreeNodesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := hubstest.Open(t, storagetest.Config{SegmentBytes: 4 << 20})
		wires := &network{handlers: map[string]map[string]func(context.Context, []byte) ([]byte, error){}}
		endpoints := &receiver{got: map[string]int{}}
		var nodes []*member
		for _, name := range []string{"a", "b", "c"} {
			nodes = append(nodes, join(t, y, wires, endpoints, name))
		}
		a, b, c := nodes[0], nodes[1], nodes[2]
		testkit.Must(t, testkit.Err(a.topics.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: "orders"}})))
		synctest.Wait()
		var names []string
		for i := range 30 {
			name := fmt.Sprintf("hook-%02d", i)
			names = append(names, name)
			testkit.Must(t, testkit.Err(b.topics.Create(t.Context(), topics.Source{Topic: "orders"}, name, topics.Settings{
				Webhook: &egress.Endpoint{URL: "https://" + name + ".example"}, DeadLetter: topics.Target{Kind: topics.TargetYard},
			})))
		}
		puller, err := b.topics.Create(t.Context(), topics.Source{Topic: "orders"}, "puller", topics.Settings{Pull: &topics.Pull{}})
		testkit.Must(t, err)
		time.Sleep(2 * time.Minute) // the shards are spread
		published := 0
		publish := func(through *member, n int) {
			for range n {
				event := fmt.Appendf(nil, `{"id":"e%d","subject":"s","eventType":"t","eventTime":"2024-01-01T00:00:00Z","data":{}}`, published)
				testkit.Must(t, through.topics.Publish(t.Context(), "orders", [][]byte{event}, nil))
				published++
				time.Sleep(30 * time.Millisecond)
			}
		}
		// pull receives and acknowledges all that was published, through a node.
		pulled := 0
		pull := func(through *member) {
			for pulled < published {
				got, err := through.Receive(t.Context(), puller.ID, 10, 5*time.Second)
				testkit.Must(t, err, "receive through %s", through.name)
				testkit.MustEqual(t, len(got) > 0, true, "there is something to receive through %s", through.name)
				for _, r := range got {
					settled, err := through.Settle(t.Context(), puller.ID, delivery.Acknowledge, 0, []string{r.Token})
					testkit.Must(t, err)
					testkit.Check(t, settled[0].Err)
				}
				pulled += len(got)
			}
		}
		want := func(when string, repeats bool) {
			t.Helper()
			endpoints.mu.Lock()
			defer endpoints.mu.Unlock()
			for _, name := range names {
				for n := range published {
					if times := endpoints.got[fmt.Sprint(name, "/", n)]; times == 0 || times > 1 && !repeats {
						t.Errorf("%s: event %d came %d times to %s", when, n, times, name)
					}
				}
			}
		}
		publish(a, 20)
		for _, n := range nodes {
			pull(n)
			publish(n, 5)
		}
		pull(c)
		time.Sleep(time.Minute)
		want("all three", false)

		var stopping sync.WaitGroup
		stopping.Go(c.stop)
		publish(a, 40)
		stopping.Wait()
		time.Sleep(time.Minute)
		want("one has stopped", false)
		pull(b)

		b.cut.Store(true)
		publish(a, 40)
		time.Sleep(2 * time.Minute)
		want("one was cut off", true)
		testkit.Equal(t, len(a.placement.Held()), shards.Count, "shards of the last node")
		pull(a)
		b.cut.Store(false)
		a.stop()
		b.stop()
	})
}
