package forward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is the nodes of a test, and who holds the one shard that matters.
type network struct {
	mu       sync.Mutex
	handlers map[string]map[string]func(ctx context.Context, body []byte) ([]byte, error) // by node and subject
	owner    string
	asked    int
	largest  int // answer
}

// port is the network as one node has it.
type port struct {
	*network
	node string
}

func (p port) Handle(subject string, handler func(ctx context.Context, body []byte) ([]byte, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handlers[p.node] == nil {
		p.handlers[p.node] = map[string]func(ctx context.Context, body []byte) ([]byte, error){}
	}
	p.handlers[p.node][subject] = handler
}

func (p port) Ask(ctx context.Context, node, subject string, body []byte) ([]byte, error) {
	p.mu.Lock()
	handler := p.handlers[node][subject]
	p.asked++
	p.mu.Unlock()
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("a request without a deadline")
	}
	if handler == nil {
		return nil, ErrNoNode
	}
	answer, err := handler(ctx, body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = max(p.largest, len(answer))
	return answer, err
}

func (p port) Owner(context.Context, int) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == "" {
		return "", errors.New("nobody")
	}
	return p.owner, nil
}

// yard is two nodes, and the subscriptions of a topic.
type yard struct {
	*hubstest.Yard
	t       *testing.T
	topics  *topics.Registry
	network *network
	nodes   map[string]*node
	epoch   shards.Epoch
	grant   []byte // what callers have
}

type node struct {
	*Forwarder
	delivery *delivery.Service
	dead     *deadletter.Service
}

// idle sends nothing.
type idle struct{}

func (idle) Prepare(*topics.Subscription, string) (*webhook.Order, error) {
	return nil, errors.New("no")
}
func (idle) Deliver(context.Context, *webhook.Order, []*pending.Delivery) webhook.Result {
	return webhook.Result{}
}

func newYard(t *testing.T) *yard {
	y := &yard{Yard: hubstest.Open(t, storagetest.Config{SegmentBytes: 4 << 20}), t: t, nodes: map[string]*node{},
		network: &network{handlers: map[string]map[string]func(context.Context, []byte) ([]byte, error){}}}
	var err error
	y.topics, err = topics.Open(t.Context(), topics.Config{Engine: y.Engine, Meta: y.Memory, Broker: y.Broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Run(t, y.topics.Run)
	testkit.Must(t, testkit.Err(y.topics.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: "orders"}})))
	for _, name := range []string{"a", "b"} {
		y.open(name)
	}
	return y
}

func (y *yard) open(name string) {
	t, n := y.t, &node{}
	var err error
	n.dead, err = deadletter.Open(t.Context(), deadletter.Config{Engine: y.Engine, Meta: y.Memory, Topics: y.topics, Broker: y.Broker, Sharded: true, Log: testkit.Quiet()})
	testkit.Must(t, err)
	n.delivery, err = delivery.Open(t.Context(), delivery.Config{
		Meta: y.Memory, Topics: y.topics, Broker: y.Broker, Sender: idle{}, Dead: n.dead, Log: testkit.Quiet(),
		OpenLogs: func(ctx context.Context, held shards.Held) (*retrylog.Logs, error) {
			return retrylog.Open(ctx, retrylog.Config{Engine: y.Engine, Meta: y.Memory, Ladder: retry.Ladder(), Held: &held, Log: testkit.Quiet()})
		},
	})
	testkit.Must(t, err)
	n.dead.RedriveTo(n.delivery.Redeliver)
	testkit.Run(t, n.delivery.Run)
	wire := port{y.network, name}
	n.Forwarder = New(Config{Delivery: n.delivery, Dead: n.dead, Nodes: wire, Placement: wire,
		Grant: func(context.Context) []byte { return y.grant },
		Allow: func(_ context.Context, grant []byte, subject, subscription string) error {
			if string(grant) != `"good"` {
				return fmt.Errorf("%w: no right to %s of %s", topics.ErrInvalid, subject, subscription)
			}
			return nil
		}})
	y.nodes[name], y.grant = n, []byte(`"good"`)
}

// hold lets a node hold the shard of a subscription until what it gives is called.
func (y *yard) hold(name, id string) (leave func()) {
	y.epoch++
	held, n := shards.Held{Shard: shards.Of(id), Epoch: y.epoch}, y.nodes[name]
	dead := testkit.Run(y.t, func(ctx context.Context) error { return n.dead.Serve(ctx, held) })
	delivers := testkit.Run(y.t, func(ctx context.Context) error { return n.delivery.Serve(ctx, held) })
	y.own(name)
	synctest.Wait()
	return func() { delivers(); dead() }
}

func (y *yard) own(name string) {
	y.network.mu.Lock()
	defer y.network.mu.Unlock()
	y.network.owner = name
}

func (y *yard) puller() string {
	sub, err := y.topics.Create(y.t.Context(), topics.Source{Topic: "orders"}, "puller", topics.Settings{Pull: &topics.Pull{}, DeadLetter: topics.Target{Kind: topics.TargetYard}})
	testkit.Must(y.t, err)
	synctest.Wait()
	return sub.ID
}

// publish stores events, one by one, and waits until they are where they belong.
func (y *yard) publish(bytes int, ids ...string) {
	for _, id := range ids {
		event := fmt.Appendf(nil, `{"id":%q,"subject":"s","eventType":"t","eventTime":"2024-01-01T00:00:00Z","data":%q}`, id, strings.Repeat("x", bytes))
		testkit.Must(y.t, y.topics.Publish(y.t.Context(), "orders", [][]byte{event}, nil))
	}
	synctest.Wait()
}

func bubble(t *testing.T, test func(t *testing.T, y *yard)) {
	synctest.Test(t, func(t *testing.T) { test(t, newYard(t)) })
}

// C2, G12: what one node has handed out is received, renewed, rejected and settled through any.
func TestPullingThroughAnotherNode(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx, id := t.Context(), y.puller()
		defer y.hold("a", id)()
		for _, through := range []string{"a", "b"} {
			n := y.nodes[through]
			y.publish(10, "one", "two", "three")
			got := testkit.Value(n.Receive(ctx, id, 3, time.Minute))(t)
			testkit.MustEqual(t, len(got), 3, "events through %s", through)
			if !strings.Contains(string(got[0].Event), `"one"`) || got[0].Delivery != 1 {
				t.Errorf("through %s: %+v", through, got[0])
			}
			for i, how := range []delivery.Settlement{delivery.Acknowledge, delivery.Renew, delivery.Reject} {
				settled := testkit.Value(n.Settle(ctx, id, how, 0, []string{got[i].Token, "nonsense"}))(t)
				testkit.Check(t, settled[0].Err)
				testkit.ErrorIs(t, settled[1].Err, delivery.ErrToken, "through %s", through)
			}
			settled := testkit.Value(n.Settle(ctx, id, delivery.Acknowledge, 0, []string{got[0].Token, got[1].Token}))(t)
			testkit.ErrorIs(t, settled[0].Err, delivery.ErrLockLost, "through %s", through)
			testkit.Check(t, settled[1].Err)
			testkit.Equal(t, len(testkit.Value(n.Receive(ctx, id, 3, time.Second))(t)), 0, "more events through %s", through)
			y.publish(10, "four")
			got = testkit.Value(n.Receive(ctx, id, 3, time.Minute))(t)
			testkit.Must(t, n.GiveBack(ctx, id, []string{got[0].Token}))
			got = testkit.Value(n.Receive(ctx, id, 3, time.Second))(t)
			testkit.MustEqual(t, len(got), 1, "events that were given back through %s", through)
			testkit.Must(t, testkit.Err(n.Settle(ctx, id, delivery.Acknowledge, 0, []string{got[0].Token})))
		}
		stats := testkit.Value(y.nodes["b"].Stats(ctx, id))(t)
		testkit.Equal(t, stats.Delivered, 6)
		testkit.Check(t, y.nodes["b"].Probe(ctx, id))
		testkit.Equal(t, len(testkit.Value(y.nodes["b"].Attempts(ctx, id))(t)), 0)
		for number, want := range []delivery.TraceState{delivery.TraceSettled, 99: delivery.TraceBehind} { // V2
			if want != "" {
				testkit.Equal(t, testkit.Value(y.nodes["b"].Trace(ctx, id, 0, int64(number)))(t).State, want, "event %d", number)
			}
		}
	})
}

// C2, G8: dead letters are listed, redriven and purged through any node.
func TestDeadLettersThroughAnotherNode(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx, id, n := t.Context(), y.puller(), y.nodes["b"]
		defer y.hold("a", id)()
		y.publish(10, "one", "two")
		for _, r := range testkit.Value(n.Receive(ctx, id, 2, time.Minute))(t) {
			testkit.Must(t, testkit.Err(n.Settle(ctx, id, delivery.Reject, 0, []string{r.Token})))
		}
		time.Sleep(time.Second)
		page := testkit.Value(n.List(ctx, id, deadletter.Query{}))(t)
		here := testkit.Value(y.nodes["a"].List(ctx, id, deadletter.Query{}))(t)
		testkit.Equal(t, fmt.Sprintf("%+v", page), fmt.Sprintf("%+v", here), "a page")
		testkit.Equal(t, testkit.Value(n.Counts(ctx, id))(t).Kept, 2)
		testkit.Equal(t, string(testkit.Value(n.Get(ctx, id, 1))(t).Event), string(page.Letters[1].Event))
		testkit.ErrorIs(t, testkit.Err(n.Get(ctx, id, 7)), deadletter.ErrNotFound)
		testkit.Equal(t, testkit.Value(n.Redrive(ctx, id, deadletter.Query{Numbers: []int64{0}}, deadletter.RedriveOptions{}))(t).Count, 1)
		testkit.Equal(t, len(testkit.Value(n.Receive(ctx, id, 2, time.Minute))(t)), 1, "redriven events")
		testkit.Equal(t, testkit.Value(n.Purge(ctx, id, deadletter.Query{Redriven: true}))(t), 2)
	})
}

// C2: who asks while a shard moves waits, and is told to ask again where that takes long.
func TestAskingWhileAShardMoves(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx, id := t.Context(), y.puller()
		for name, owner := range map[string]string{"nobody": "", "a node that is gone": "z", "one that does not have it yet": "a"} {
			y.own(owner)
			began := time.Now()
			testkit.ErrorIs(t, testkit.Err(y.nodes["b"].Stats(ctx, id)), shards.ErrElsewhere, "%s", name)
			if took := time.Since(began); took < Patience || took > Patience+time.Second {
				t.Errorf("%s: after %v", name, took)
			}
		}
		answered := make(chan error, 1)
		go func() { answered <- testkit.Err(y.nodes["b"].Stats(ctx, id)) }()
		time.Sleep(time.Second)
		leave := y.hold("a", id)
		testkit.Check(t, <-answered, "it was held soon after")
		leave()
		leave = y.hold("b", id)
		y.network.asked = 0
		testkit.Check(t, testkit.Err(y.nodes["b"].Stats(ctx, id)))
		testkit.Equal(t, y.network.asked, 0, "requests for what is here")
		leave()
	})
}

// C4: another node does nothing that the caller's grant does not allow.
func TestTheHolderChecksTheGrant(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx, id, n := t.Context(), y.puller(), y.nodes["b"]
		defer y.hold("a", id)()
		y.publish(10, "one")
		for name, grant := range map[string][]byte{"none": nil, "another": []byte(`"bad"`)} {
			y.grant = grant
			for _, err := range []error{
				testkit.Err(n.Stats(ctx, id)), testkit.Err(n.Attempts(ctx, id)), testkit.Err(n.Trace(ctx, id, 0, 0)), n.Probe(ctx, id), testkit.Err(n.Receive(ctx, id, 1, time.Second)),
				testkit.Err(n.Settle(ctx, id, delivery.Acknowledge, 0, nil)), testkit.Err(n.List(ctx, id, deadletter.Query{})),
				testkit.Err(n.Get(ctx, id, 0)), testkit.Err(n.Redrive(ctx, id, deadletter.Query{}, deadletter.RedriveOptions{})),
				testkit.Err(n.Purge(ctx, id, deadletter.Query{})), testkit.Err(n.Counts(ctx, id)), n.GiveBack(ctx, id, nil),
			} {
				testkit.ErrorIs(t, err, topics.ErrInvalid, "with grant %s", name)
			}
		}
		y.grant = []byte(`"good"`)
		testkit.Equal(t, len(testkit.Value(n.Receive(ctx, id, 1, time.Second))(t)), 1, "events left")
	})
}

// C2: however large events and letters are, an answer fits between nodes.
func TestAnswersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx, id, n := t.Context(), y.puller(), y.nodes["b"]
		defer y.hold("a", id)()
		for i, size := range []int{1_000_000, 300_000, 300_000, 1_000_000, 200_000, 1_000_000} {
			y.publish(size, fmt.Sprint("e", i))
		}
		count := 0
		for count < 6 {
			got := testkit.Value(n.Receive(ctx, id, 100, time.Minute))(t)
			testkit.MustEqual(t, len(got) > 0, true, "there are some left")
			for _, r := range got {
				testkit.Must(t, testkit.Err(n.Settle(ctx, id, delivery.Reject, 0, []string{r.Token})))
			}
			count += len(got)
		}
		from, letters := int64(0), 0
		for {
			page := testkit.Value(n.List(ctx, id, deadletter.Query{From: from}))(t)
			if letters, from = letters+len(page.Letters), page.Next; from == 0 {
				break
			}
		}
		testkit.Equal(t, letters, 6)
		if y.network.largest >= 2<<20 {
			t.Errorf("an answer has %d bytes", y.network.largest)
		}
	})
}

// Errors that callers branch on are the same after the way between nodes.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	for name, err := range names {
		sent := failureOf(fmt.Errorf("in doing something: %w", err))
		testkit.Equal(t, sent.Name, name)
		testkit.ErrorIs(t, sent.err(), err)
		testkit.Equal(t, sent.err().Error(), "in doing something: "+err.Error())
	}
	if other := failureOf(errors.New("something else")).err(); other == nil || other.Error() != "something else" || errors.Unwrap(other) != nil {
		t.Errorf("another error became %v", other)
	}
	testkit.Check(t, failureOf(nil).err())
}
