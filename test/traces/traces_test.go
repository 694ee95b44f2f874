package traces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/otlp"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/tracing"
)

// The publishers' spans.
var (
	placed  = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "shop=1")
	reading = tracing.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
)

// world is a yard that makes spans, and who gets them.
type world struct {
	*servertest.Yard
	receiver *receiver
	exporter *otlp.Exporter
	client   *admin.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{receiver: newReceiver(t)}
	cfg := otlp.Config{Endpoint: w.receiver.url, Version: "test", Node: "here", Log: testkit.Quiet()}
	testkit.That(t, cfg.Wanted(), "with an endpoint spans are wanted")
	w.exporter = testkit.Value(otlp.Open(t.Context(), cfg))(t)
	t.Cleanup(w.exporter.Close)
	w.Yard = servertest.Start(t, func(c *server.Config) {
		c.HTTP, c.Kafka, c.Tracer, c.TraceURL = "127.0.0.1:0", "127.0.0.1:0", w.exporter, "https://traces.example/{trace}"
	})
	w.client = testkit.Value(admin.New(admin.Config{Server: w.address()}))(t)
	return w
}

func (w *world) address() string { return w.Addresses()["http"] }

// stop ends the yard and then the exporter, after which all spans have come.
func (w *world) stop(t *testing.T) {
	w.Stop(t)
	w.exporter.Close()
}

// hooks keeps what requests said of their traces.
type hooks struct {
	mu   sync.Mutex
	said []tracing.Context // guarded by mu
}

func (h *hooks) note(header http.Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, tracing.OfHeader(header))
}

func (h *hooks) all() []tracing.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]tracing.Context(nil), h.said...)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// publish posts an event to a topic, with the trace of the request.
func (w *world) publish(t *testing.T, topic, event string, trace tracing.Context) {
	t.Helper()
	key := testkit.Value(w.client.Topic(t.Context(), topic))(t).Keys.Key1
	r := testkit.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, w.address()+"/topics/"+topic+"/api/events", strings.NewReader(event)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("aeg-sas-key", key)
	trace.SetHeader(r.Header)
	answer := testkit.Value(http.DefaultClient.Do(r))(t)
	testkit.Must(t, answer.Body.Close())
	testkit.MustEqual(t, answer.StatusCode, http.StatusOK)
}

// V6: publish, filter, two attempts at a webhook and the dead letter of one event are one trace, and the
// webhook hears of it. The journey of the event says which trace, and where to look at it.
func TestTheTraceOfAnEventThatIsNotDelivered(t *testing.T) {
	w := newWorld(t)
	var heard hooks
	handler := testkit.Value(grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
		heard.note(batch[0].Header)
		return errors.New("not today")
	}, grid.HandlerConfig{OnError: func(error) {}}))(t)
	endpoint := serve(t, handler)
	testkit.Must(t, testkit.Err(w.client.CreateTopic(t.Context(), admin.TopicRequest{Name: "orders"})))
	for name, kind := range map[string]string{"billing": "order.placed", "others": "order.cancelled"} {
		testkit.Must(t, testkit.Err(w.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{
			Name: name, Topic: "orders", Endpoint: &endpoint, Types: []string{kind},
			Attempts: new(2), RetrySchedule: new("100ms"), DeadLetter: new("yard"),
		})))
	}
	w.publish(t, "orders", `[{"id":"1","subject":"s","eventType":"order.placed","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1","data":{}}]`, placed)
	var journey admin.Journey
	testkit.Eventually(t, "the event is a dead letter", func() bool {
		found, err := w.client.EventJourney(t.Context(), "orders", "1", 0)
		if err != nil || len(found.Events) != 1 {
			return false
		}
		journey = found.Events[0]
		return len(journey.Subscriptions) == 2 && journey.Subscriptions[0].State == "dead-lettered"
	})
	testkit.Equal(t, journey.TraceID, placed.Trace())
	testkit.Equal(t, journey.TraceURL, "https://traces.example/"+placed.Trace())
	w.stop(t)

	spans := w.receiver.of(placed.Trace())
	publish, match, dead := one(t, spans, "publish orders"), one(t, spans, "match"), one(t, spans, "dead-letter billing")
	testkit.Equal(t, id(publish.ParentSpanId), fmt.Sprintf("%x", placed.SpanID), "the publisher's span is the parent")
	testkit.Equal(t, publish.TraceState, "shop=1", "and its state is kept")
	testkit.Equal(t, number(match, tracing.KeyMatched), 1, "one of two subscriptions matches")
	deliveries := named(spans, "deliver billing")
	testkit.MustEqual(t, len(deliveries), 2, "attempts, of %v", names(spans))
	for i, d := range deliveries {
		testkit.Equal(t, number(d, tracing.KeyAttempt), int64(i+1))
		testkit.Equal(t, number(d, tracing.KeyStatus), 500)
		testkit.Equal(t, d.Status.GetCode(), otlptrace.Status_STATUS_CODE_ERROR)
		testkit.Equal(t, fmt.Sprintf("%x", heard.all()[i].SpanID), id(d.SpanId), "the webhook hears of the attempt")
	}
	testkit.Equal(t, text(dead, tracing.KeyReason), "MaxDeliveryAttemptsExceeded")
	for _, s := range append(deliveries, match, dead) {
		testkit.Equal(t, id(s.ParentSpanId), id(publish.SpanId), "%s is of the publication", s.Name)
	}
	testkit.Equal(t, len(named(spans, "deliver others")), 0, "what does not match is not delivered")
	testkit.Equal(t, w.receiver.service, "eventyard")
}

// V6: what an event's publisher says of its trace comes to the hub, to a processor and to a function.
func TestTheTraceOfAnEventThroughAHub(t *testing.T) {
	w := newWorld(t)
	var heard hooks
	program := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard.note(r.Header) }))
	w.Hub(t, "readings", 1, "adders")
	testkit.Must(t, testkit.Err(w.client.CreateFunction(t.Context(), admin.FunctionRequest{Name: "scorer", Hub: "readings", Endpoint: &program})))
	client := w.Dial(t)
	sent := event.Text(`{"celsius":21}`)
	sent.SetTrace(reading)
	testkit.Must(t, client.Hub("readings").Send(t.Context(), sent))

	ctx, stop := context.WithCancel(t.Context())
	handled := tracing.Context{}
	p := processor.New(client.Hub("readings"), processor.Config{Group: "adders", Tracer: w.exporter, Log: testkit.Quiet()})
	testkit.Must(t, p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		handled = tracing.Of(ctx)
		testkit.Equal(t, b.Events[0].Trace(), reading, "the event says it itself")
		stop()
		return nil
	}))
	testkit.Eventually(t, "the function is called", func() bool { return len(heard.all()) > 0 })
	w.stop(t)

	spans := w.receiver.of(reading.Trace())
	send, process, call := one(t, spans, "send readings"), one(t, spans, "process readings"), one(t, spans, "call scorer")
	for _, s := range []*otlptrace.Span{send, process, call} {
		testkit.Equal(t, id(s.ParentSpanId), fmt.Sprintf("%x", reading.SpanID), "%s is of the publisher's span", s.Name)
		testkit.Equal(t, s.Status.GetCode(), otlptrace.Status_STATUS_CODE_UNSET, "%s: %s", s.Name, s.Status.GetMessage())
	}
	testkit.Equal(t, fmt.Sprintf("%x", handled.SpanID), id(process.SpanId), "the handler is called within the span")
	testkit.Equal(t, fmt.Sprintf("%x", heard.all()[0].SpanID), id(call.SpanId), "and so is the function's program")
	testkit.Equal(t, text(call, tracing.KeyFunction), "scorer")
}

// V6: a function in Go is called within a span of its event's trace; what functions and subscriptions give up has
// a span that says why, and a poison event the trace that it always had.
func TestTheTraceOfAnEventThatIsGivenUp(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms: the test waits for spans
	w := newWorld(t)
	bad := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadRequest) }))
	w.Hub(t, "readings", 1, "scorer", "adder")
	w.Hub(t, "scorer-poison", 1)
	testkit.Must(t, testkit.Err(w.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{
		Name: "loser", SourceHub: "readings", Endpoint: &bad, SkipValidation: new(true),
	})))
	testkit.Must(t, testkit.Err(w.client.CreateFunction(t.Context(), admin.FunctionRequest{
		Name: "adder", Hub: "readings", Group: "adder", Endpoint: &bad, Retries: new(admin.Retries(0)), Poison: new(functions.NoPoison),
	})))
	client := w.Dial(t)
	sent := event.Text(`{"celsius":21}`)
	sent.SetTrace(reading)
	testkit.Must(t, client.Hub("readings").Send(t.Context(), sent))

	var called []tracing.Context
	host := functions.NewHost(client, functions.Config{Tracer: w.exporter, Log: testkit.Quiet(), OnError: func(error) {}})
	host.Handle("scorer", func(ctx context.Context, b *functions.Batch) error {
		called = append(called, tracing.Of(ctx), b.Events[0].Trace())
		return functions.Poison(errors.New("no score"))
	}, functions.Binding{Hub: "readings", Group: "scorer"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	for ev, err := range client.Hub("scorer-poison").Read(t.Context(), hub.ReadConfig{Partition: "0", From: hub.Earliest}) {
		testkit.Must(t, err)
		testkit.Equal(t, ev.Trace(), reading, "the poison event has the event's trace")
		break
	}
	testkit.Eventually(t, "all three have given it up", func() bool {
		spans := w.receiver.of(reading.Trace())
		return len(named(spans, "put-away scorer")) > 0 && len(named(spans, "drop adder")) > 0 && len(named(spans, "drop loser")) > 0
	})
	stop()
	testkit.Must(t, <-ended)
	w.stop(t)

	spans := w.receiver.of(reading.Trace())
	call := one(t, spans, "call scorer")
	testkit.Equal(t, fmt.Sprintf("%x", called[0].SpanID), id(call.SpanId), "the handler is called within the span")
	testkit.Equal(t, called[1], reading, "and the event says what its publisher said")
	testkit.Equal(t, call.Status.GetCode(), otlptrace.Status_STATUS_CODE_ERROR)
	for name, reason := range map[string]string{"put-away scorer": "no score", "drop adder": "400", "drop loser": ""} {
		s := one(t, spans, name)
		testkit.Equal(t, id(s.ParentSpanId), fmt.Sprintf("%x", reading.SpanID), "%s is of the publisher's span", name)
		testkit.That(t, strings.Contains(text(s, tracing.KeyReason), reason), "%s says %q", name, text(s, tracing.KeyReason))
	}
}

// V6: a Kafka producer's header comes to readers over AMQP and to the spans of its publication; what others
// say of their traces comes to Kafka consumers as the plain text that they read.
func TestTheTraceOfAnEventThroughKafka(t *testing.T) {
	w := newWorld(t)
	w.Hub(t, "readings", 1)
	kafka := testkit.Value(kgo.NewClient(kgo.SeedBrokers(strings.TrimPrefix(w.Addresses()["kafka"], "kafka://")), kgo.DefaultProduceTopic("readings"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"readings": {0: kgo.NewOffset().AtStart()}})))(t)
	defer kafka.Close()
	testkit.Must(t, kafka.ProduceSync(t.Context(),
		&kgo.Record{Value: []byte("21"), Headers: []kgo.RecordHeader{{Key: tracing.Parent, Value: []byte(placed.TraceParent())}, {Key: tracing.State, Value: []byte(placed.State)}}},
		&kgo.Record{Value: []byte("22")}).FirstErr())
	client := w.Dial(t)
	for ev, err := range client.Hub("readings").Read(t.Context(), hub.ReadConfig{Partition: "0", From: hub.Earliest}) {
		testkit.Must(t, err)
		testkit.Equal(t, ev.Trace(), placed, "to a reader over AMQP")
		break
	}
	sent := event.Text("23")
	sent.SetTrace(reading)
	testkit.Must(t, client.Hub("readings").Send(t.Context(), sent))

	said := map[string]tracing.Context{} // by value; of headers with one name the last counts
	for len(said) < 3 {
		fetched := kafka.PollFetches(t.Context())
		testkit.Must(t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) {
			last := map[string]string{}
			for _, h := range r.Headers {
				last[h.Key] = string(h.Value)
			}
			said[string(r.Value)] = tracing.Parse(last[tracing.Parent], last[tracing.State])
		})
	}
	testkit.Diff(t, map[string]tracing.Context{"21": placed, "22": {}, "23": reading}, said)
	w.stop(t)

	send := one(t, w.receiver.of(placed.Trace()), "send readings")
	testkit.Equal(t, id(send.ParentSpanId), fmt.Sprintf("%x", placed.SpanID), "the producer's span is the parent")
	testkit.Equal(t, number(send, tracing.KeyEvents), 2)
	testkit.Equal(t, text(send, tracing.KeyPartition), "0")
	testkit.Equal(t, send.Status.GetCode(), otlptrace.Status_STATUS_CODE_UNSET)
}

// V6: a request without a trace begins one, which its events carry.
func TestATraceBeginsInTheYard(t *testing.T) {
	w := newWorld(t)
	w.Hub(t, "readings", 1)
	hello := testkit.Value(admin.Event{Body: []byte("hello")}.Encode())(t)
	testkit.Must(t, testkit.Err(w.client.Send(t.Context(), "readings", admin.Batch{Events: []json.RawMessage{hello}})))
	var carried tracing.Context
	for ev, err := range w.Dial(t).Hub("readings").Read(t.Context(), hub.ReadConfig{Partition: "0", From: hub.Earliest}) {
		testkit.Must(t, err)
		carried = ev.Trace()
		break
	}
	testkit.That(t, carried.Valid() && carried.Sampled(), "it carries %+v", carried)
	w.stop(t)
	send := one(t, w.receiver.of(carried.Trace()), "send readings")
	testkit.Equal(t, id(send.SpanId), fmt.Sprintf("%x", carried.SpanID))
	testkit.Equal(t, len(send.ParentSpanId), 0, "it is the first of its trace")
}
