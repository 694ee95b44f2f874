package eventgrid

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// realYard is a listener over the real definitions, on a real engine.
type realYard struct {
	*yard
	topicRegistry *topics.Registry
	asker         *asker
	engine        eventlog.Engine
	store         meta.Store
	hubs          *broker.Broker
}

func newRealYard(t *testing.T, change ...func(*Config)) *realYard {
	t.Helper()
	log := testkit.Quiet()
	s := storagetest.Open(t, storagetest.Config{SegmentBytes: 1 << 20})
	engine, store := s.Engine, s.Memory
	hubs, err := broker.Open(t.Context(), broker.Config{Engine: engine, Meta: store, Log: log})
	testkit.Must(t, err)
	_, err = hubs.CreateHub(t.Context(), broker.HubConfig{Name: "a/b", Partitions: 1})
	testkit.Must(t, err)
	y := &realYard{asker: &asker{agreement: topics.Agreement{Agreed: true}}, engine: engine, store: store, hubs: hubs}
	y.topicRegistry, err = topics.Open(t.Context(), topics.Config{
		Engine: engine, Meta: store, Broker: hubs, Validate: y.asker, Log: log,
		ValidationURL: func(s topics.Subscription, token string) string { return ValidationPath(s.Source.Topic, s.ID, token) },
	})
	testkit.Must(t, err)
	y.yard = newYard(t, append(change, func(c *Config) { c.Topics = y.topicRegistry })...)
	return y
}

// asker is the handshake. Fields are guarded by mu.
type asker struct {
	mu        sync.Mutex
	agreement topics.Agreement
	link      string
}

func (a *asker) Validate(_ context.Context, _ topics.Subscription, _, _, url string) topics.Agreement {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.link = url
	return a.agreement
}

// say has the next endpoint answer that.
func (a *asker) say(agreement topics.Agreement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agreement = agreement
}

func (y *realYard) topic(name string, kind schema.Kind) topics.Topic {
	y.t.Helper()
	t, err := y.topicRegistry.CreateTopic(y.t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: name, Schema: kind, Key1: key1, Key2: key2}})
	testkit.Must(y.t, err)
	return t
}

// log gives what a topic's log has.
func (y *realYard) log(t topics.Topic) (events []string) {
	y.t.Helper()
	partition, err := y.topicRegistry.Log(&t)
	testkit.Must(y.t, err)
	cursor, err := partition.Cursor(y.t.Context(), eventlog.Earliest())
	testkit.Must(y.t, err)
	defer cursor.Close()
	for {
		run, err := cursor.TryNext(y.t.Context())
		testkit.Must(y.t, err)
		if len(run.Events) == 0 {
			return events
		}
		for _, e := range run.Events {
			body, ok := message.Body(e.Message)
			if !ok {
				y.t.Fatalf("stored %q", e.Message)
			}
			events = append(events, string(body))
		}
	}
}

// G1, G12: what was answered 200 is in the topic's log, all of it and in the order of each
// publisher.
func TestWhatIsPublishedIsStored(t *testing.T) {
	y := newRealYard(t)
	orders := y.topic("orders", schema.EventGrid)
	const publishers, requests = 4, 5
	var all sync.WaitGroup
	for p := range publishers {
		all.Go(func() {
			for i := range requests {
				body := fmt.Sprintf("[%s,%s]", event(fmt.Sprintf("%d-%d", p, 2*i)), event(fmt.Sprintf("%d-%d", p, 2*i+1)))
				if got := y.ask("POST", "/topics/Orders/api/events", body, withKey); got.StatusCode != 200 {
					t.Errorf("answered %d %s", got.StatusCode, got.text)
				}
			}
		})
	}
	all.Wait()
	next := map[string]int{}
	for id := range strings.FieldsSeq(ids(t, schema.EventGridForm, y.log(orders))) {
		p, n, _ := strings.Cut(id, "-")
		testkit.Equal(t, n, fmt.Sprint(next[p]), "%s comes after %d others", id, next[p])
		next[p]++
	}
	for p := range publishers {
		testkit.Equal(t, next[fmt.Sprint(p)], 2*requests, "publisher %d has stored", p)
	}
}

// Many small events may take more room than they came in: then the answer says so, and how to go
// on.
func TestEventsThatGrow(t *testing.T) { // G12
	y := newRealYard(t)
	mapped, err := y.topicRegistry.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{
		Name: "mapped", Schema: schema.Custom, Key1: key1, Key2: key2,
		Mapping: schema.Mapping{EventType: schema.Field{Default: strings.Repeat("t", 1024)}},
	}})
	testkit.Must(t, err)
	many := func(n int) string { return "[" + strings.Repeat(`{"n":"`+strings.Repeat("x", 195)+`"},`, n-1) + "{}]" }
	text := y.ask("POST", "/topics/mapped/api/events", many(5000), withKey).refused(413, "PayloadTooLarge")
	if !strings.Contains(text, "5000 events") || !strings.Contains(text, "as they are stored") || !strings.Contains(text, "several smaller requests") {
		t.Errorf("told %s", text)
	}
	testkit.Equal(t, len(y.log(mapped)), 0, "are stored")
	y.ask("POST", "/topics/mapped/api/events", many(1000), withKey).want(200)
}

// Short paths show the keys, too, to who may manage.
func TestKeysByShortPaths(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	var shown keys
	y.ask("POST", "/topics/orders/listKeys", "", asRoot).want(200).json(&shown)
	testkit.Equal(t, shown, (keys{key1, key2}), "the keys")
	y.ask("POST", "/topics/orders/listKeys", "", withKey).refused(401, "Unauthorized")
	text := y.ask("POST", "/topics/orders/api/events", "[]", header("aeg-sas-key", "wrong")).refused(401, "Unauthorized")
	if !strings.Contains(text, "eventyard topic show NAME") || !strings.Contains(text, "POST /topics/NAME/listKeys") {
		t.Errorf("told %s", text)
	}
}

// A key that was made anew ends the old one at once, and a deleted topic takes nothing.
func TestKeysAndTopicsThatEnd(t *testing.T) { // G12
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	const path = "/topics/orders/api/events"
	y.ask("POST", path, "[]", withKey).want(200)
	renewed, err := y.topicRegistry.RegenerateKey(t.Context(), "orders", topics.Key1)
	testkit.Must(t, err)
	y.ask("POST", path, "[]", withKey).refused(401, "Unauthorized")
	y.ask("POST", path, "[]", header("aeg-sas-key", renewed.Key1)).want(200)
	y.ask("POST", path, "[]", header("aeg-sas-key", key2)).want(200)
	testkit.Must(t, y.topicRegistry.DeleteTopic(t.Context(), "orders"))
	y.ask("POST", path, "["+event("a")+"]", header("aeg-sas-key", key2)).refused(401, "Unauthorized")
	y.ask("POST", path, "["+event("a")+"]", asPolicy("sender")).refused(404, "ResourceNotFound")
}

// G11: a link that an endpoint was sent confirms it once, while it is good.
func TestTheLinkOfAnEndpoint(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	y.asker.say(topics.Agreement{Awaiting: true})
	source := topics.Source{Topic: "orders"}
	s, err := y.topicRegistry.Create(t.Context(), source, "mailer", topics.Settings{Webhook: &egress.Endpoint{URL: "https://mail.example/hook"}})
	testkit.Must(t, err)
	testkit.MustEqual(t, s.State, topics.Pending, "it")
	link := y.asker.link
	y.ask("GET", link+"x", "").refused(403, "InvalidValidationLink")
	y.ask("POST", link, "", header("WebHook-Allowed-Rate", "60")).want(200)
	s, err = y.topicRegistry.Find(source, "mailer")
	testkit.Must(t, err)
	testkit.Equal(t, s.State, topics.Active, "it is %s, at %d a minute", s.State, s.Validation.Rate)
	testkit.Equal(t, s.Validation.Rate, 60, "it is %s, at %d a minute", s.State, s.Validation.Rate)
	if text := y.ask("GET", link, "").refused(403, "InvalidValidationLink"); strings.Count(text, "update the subscription") != 1 {
		t.Errorf("a link that is used up is told %s", text)
	}
}
