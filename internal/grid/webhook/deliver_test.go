package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G2, G9, G12: the requests that receivers get, to the letter (testdata).
func TestRequestsAsReceiversGetThem(t *testing.T) {
	batched := func(s *topics.Settings) { s.MaxEvents = 10 }
	binary := func(s *topics.Settings) { s.Binary = true }
	tried := func(p *pending.Delivery, attempts int) *pending.Delivery { p.Attempts = attempts; return p }
	bytesEvent := packed(7, schema.CloudEventForm, `{"specversion":"1.0","id":"b7","source":"/shop","type":"photo","datacontenttype":"image/png","data_base64":"AQID"}`)
	bare := packed(8, schema.CloudEventForm, `{"specversion":"1.0","id":"b8","source":"/shop","type":"ping"}`)
	for name, x := range map[string]struct {
		output schema.Kind
		change func(*topics.Settings)
		batch  []*pending.Delivery
	}{
		"eventgrid":                   {schema.EventGrid, nil, []*pending.Delivery{eventGrid(1)}},
		"eventgrid-batched":           {schema.EventGrid, batched, []*pending.Delivery{eventGrid(1), tried(eventGrid(2), 3), eventGrid(3)}},
		"eventgrid-batched-one":       {schema.EventGrid, batched, []*pending.Delivery{eventGrid(1)}},
		"eventgrid-of-custom":         {schema.EventGrid, nil, []*pending.Delivery{custom(1)}},
		"custom":                      {schema.Custom, nil, []*pending.Delivery{tried(custom(1), 29)}},
		"custom-batched":              {schema.Custom, batched, []*pending.Delivery{custom(1), custom(2)}},
		"cloudevents":                 {schema.CloudEvents, nil, []*pending.Delivery{cloudEvent(1)}},
		"cloudevents-batched":         {schema.CloudEvents, batched, []*pending.Delivery{cloudEvent(1), cloudEvent(2)}},
		"cloudevents-batched-one":     {schema.CloudEvents, batched, []*pending.Delivery{cloudEvent(1)}},
		"cloudevents-of-eventgrid":    {schema.CloudEvents, nil, []*pending.Delivery{eventGrid(1)}},
		"cloudevents-binary":          {schema.CloudEvents, binary, []*pending.Delivery{tried(cloudEvent(1), 1)}},
		"cloudevents-binary-bytes":    {schema.CloudEvents, binary, []*pending.Delivery{bytesEvent}},
		"cloudevents-binary-nothing":  {schema.CloudEvents, binary, []*pending.Delivery{bare}},
		"cloudevents-binary-batching": {schema.CloudEvents, func(s *topics.Settings) { s.Binary = true; s.MaxEvents = 5 }, []*pending.Delivery{cloudEvent(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, nil)
			c := newSender(t)
			result := c.Deliver(t.Context(), prepare(t, c, subscription(r.url+"/hook?code=a%2Fb", x.output, x.change)), x.batch)
			if result.Outcome != retry.Delivered || result.Status != 200 || result.Err != "" || result.Late != nil {
				t.Fatalf("%+v", result)
			}
			golden(t, name, r.dump(t))
		})
	}
}

// function is a receiver that does as Azure Functions' trigger does: the header says what came,
// and the body is an array, or one object.
func function(t *testing.T, r *receiver) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		_, body := r.last(t)
		var events []map[string]any
		if json.Unmarshal(body, &events) != nil {
			var one map[string]any
			if err := json.Unmarshal(body, &one); err != nil {
				t.Errorf("body is neither an array nor an object: %s", body)
			}
			events = append(events, one)
		}
		if q.Method != "POST" || q.Header.Get("aeg-event-type") != "Notification" || q.Header.Get("aeg-subscription-name") != "BILLING-1" || len(events) != 1 || len(events[0]) == 0 {
			w.WriteHeader(400)
			return
		}
		w.WriteHeader(202)
	}
}

// G12: a receiver made for Event Grid takes what we send, whatever its schema.
func TestAFunctionTakesWhatIsDelivered(t *testing.T) {
	for output, p := range map[schema.Kind]*pending.Delivery{schema.EventGrid: eventGrid(1), schema.CloudEvents: cloudEvent(1), schema.Custom: custom(1)} {
		for _, most := range []int{1, 10} {
			r := newReceiver(t, nil)
			r.answer = function(t, r)
			c := newSender(t)
			o := prepare(t, c, subscription(r.url, output, func(s *topics.Settings) { s.MaxEvents = most }))
			if got := c.Deliver(t.Context(), o, []*pending.Delivery{p}); got.Outcome != retry.Delivered || got.Status != 202 {
				t.Errorf("%s: %+v", output, got)
			}
		}
	}
}

// G9: CloudEvents' own library reads what we write: structured, batched, binary.
func TestCloudEventsAreReadByTheirLibrary(t *testing.T) {
	for name, change := range map[string]func(*topics.Settings){
		"structured": nil,
		"batched":    func(s *topics.Settings) { s.MaxEvents = 10 },
		"binary":     func(s *topics.Settings) { s.Binary = true },
	} {
		t.Run(name, func(t *testing.T) {
			var got []event.Event
			var failed error
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if name == "batched" {
					got, failed = cehttp.NewEventsFromHTTPRequest(q)
					return
				}
				e, err := cehttp.NewEventFromHTTPRequest(q)
				if failed = err; err == nil {
					got = append(got, *e)
				}
			}))
			defer server.Close()
			c := newSender(t)
			testkit.MustEqual(t, c.Deliver(t.Context(), prepare(t, c, subscription(server.URL, schema.CloudEvents, change)), []*pending.Delivery{cloudEvent(1)}).Outcome, retry.Delivered)
			if failed != nil || len(got) != 1 {
				t.Fatalf("%d events: %v", len(got), failed)
			}
			e := got[0]
			if e.Validate() != nil || e.ID() != "c1" || e.Source() != "/shop" || e.Type() != "order.placed" || string(e.Data()) != `{"total":1,"region":"eu"}` || e.Extensions()["tracestate"] != "a=b" {
				t.Errorf("read as %v", e)
			}
			if e.Subject() != "grüße" && name != "binary" { // the library does not undo percent-encoding
				t.Errorf("subject is %q", e.Subject())
			}
		})
	}
}

// Whoever checks signatures by the standard's own library finds ours good.
func TestSignaturesAreStandardWebhooks(t *testing.T) {
	old, _ := signature.New(signature.HMAC)
	fresh, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	r := newReceiver(t, nil)
	c := newSender(t)
	o := prepare(t, c, subscription(r.url, schema.EventGrid, func(s *topics.Settings) { s.MaxEvents = 5; s.Keys = []signature.Key{fresh, old} }))
	id := func(batch ...*pending.Delivery) string {
		t.Helper()
		testkit.MustEqual(t, c.Deliver(t.Context(), o, batch).Outcome, retry.Delivered)
		q, body := r.last(t)
		for _, key := range []signature.Key{old, fresh} {
			hook, err := standardwebhooks.NewWebhook(key.Text)
			testkit.Must(t, err)
			testkit.Check(t, hook.Verify(body, q.Header))
			if err := hook.Verify(append(body, ' '), q.Header); err == nil {
				t.Error("another body has the same signature")
			}
		}
		return q.Header.Get("webhook-id")
	}
	first := id(eventGrid(1))
	again := eventGrid(1)
	again.Attempts = 4
	if got := id(again); got != first || got == "" {
		t.Errorf("the same event has the ids %s and %s", first, got)
	}
	elsewhere := eventGrid(1)
	elsewhere.Subscription = "another"
	seen := map[string]bool{first: true}
	for name, batch := range map[string][]*pending.Delivery{
		"another event": {eventGrid(2)}, "another subscription": {elsewhere}, "a batch": {eventGrid(1), eventGrid(2)}, "another batch": {eventGrid(1), eventGrid(3)},
	} {
		t.Run(name, func(t *testing.T) {
			got := id(batch...)
			if seen[got] {
				t.Errorf("%s has an id that was there before", name)
			}
			seen[got] = true
		})
	}
	if once, again := id(eventGrid(1), eventGrid(2)), id(eventGrid(1), eventGrid(2)); once != again {
		t.Error("the same batch has two ids")
	}
}

func TestWhatReceiversAskFor(t *testing.T) {
	for name, x := range map[string]struct {
		status         int
		wish           string
		gone           bool // DisableOnGone
		disable, abort bool
	}{
		"nothing":                             {200, "", true, false, false},
		"gone":                                {410, "", false, false, false},
		"gone, and the subscription heeds it": {410, "", true, true, false},
		"not found is not gone":               {404, "", true, false, false},
		"no more events":                      {500, "disable", false, true, false},
		"no more events, after taking this":   {200, " Disable ", false, true, false},
		"no more of this one":                 {500, "abort-message", false, false, true},
		"no more of one that it has taken":    {200, "abort-message", false, false, false},
		"something that nobody has heard of":  {500, "dance", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
				if x.wish != "" {
					w.Header().Set("webhook-delivery", x.wish)
				}
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(x.status)
				io.WriteString(w, "because")
			})
			c := newSender(t)
			o := prepare(t, c, subscription(r.url, schema.EventGrid, func(s *topics.Settings) { s.DisableOnGone = x.gone }))
			got := c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1)})
			if got.Disable != x.disable || got.Abort != x.abort || got.Status != x.status || got.Outcome != retry.Classify(x.status) {
				t.Errorf("%+v", got)
			}
			if string(got.Head) != "because" || got.RetryAfter != 7*time.Second || got.Began.IsZero() {
				t.Errorf("%+v", got)
			}
		})
	}
}

// slow is a transport that answers 200 after a while.
type slow time.Duration

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	select {
	case <-time.After(time.Duration(s)):
		return httptest.NewRecorder().Result(), nil
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// G5: 30 s, and a late success within 3 min; both settable (G13).
func TestTimesOfDeliveries(t *testing.T) {
	for name, x := range map[string]struct {
		cfg     Config
		setting time.Duration // the subscription's own
		answer  time.Duration
		outcome retry.Outcome
		took    time.Duration
		late    retry.Outcome // empty: it does not go on
		after   time.Duration
	}{
		"in time":                         {Config{}, 0, 29 * time.Second, retry.Delivered, 29 * time.Second, "", 0},
		"late":                            {Config{}, 0, 2 * time.Minute, retry.TimedOut, 30 * time.Second, retry.Delivered, 2 * time.Minute},
		"too late":                        {Config{}, 0, time.Hour, retry.TimedOut, 30 * time.Second, retry.TimedOut, 3 * time.Minute},
		"the yard's time is shorter":      {Config{Timeout: time.Second, Late: 2 * time.Second}, 0, time.Hour, retry.TimedOut, time.Second, retry.TimedOut, 2 * time.Second},
		"the subscription's time is":      {Config{}, 2 * time.Second, time.Hour, retry.TimedOut, 2 * time.Second, retry.TimedOut, 3 * time.Minute},
		"the subscription waits for long": {Config{}, 10 * time.Minute, 9 * time.Minute, retry.Delivered, 9 * time.Minute, "", 0},
		"nothing goes on":                 {Config{Late: -1}, 0, time.Minute, retry.TimedOut, 30 * time.Second, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x.cfg.Client = newClient(t, egress.Config{Transport: slow(x.answer)})
				c := New(x.cfg)
				o := prepare(t, c, subscription("http://receiver.example/", schema.EventGrid, func(s *topics.Settings) { s.Timeout = x.setting }))
				began := time.Now()
				got := c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1)})
				if got.Outcome != x.outcome || got.Took != x.took || time.Since(began) != x.took || (got.Late != nil) != (x.late != "") {
					t.Fatalf("after %v: %+v", time.Since(began), got)
				}
				if got.Late == nil {
					return
				}
				late := <-got.Late
				if late.Outcome != x.late || time.Since(began) != x.after || late.Late != nil {
					t.Errorf("after %v: %+v", time.Since(began), late)
				}
				if _, more := <-got.Late; more {
					t.Error("there is a second one")
				}
			})
		})
	}
}

func TestADeliveryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Client: newClient(t, egress.Config{Transport: slow(time.Hour)})})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := c.Deliver(ctx, prepare(t, c, subscription("http://receiver.example/", schema.EventGrid, nil)), []*pending.Delivery{eventGrid(1)})
		if got.Outcome != retry.Canceled || got.Late != nil {
			t.Errorf("%+v", got)
		}
	})
}

// What cannot be written is not sent, and never will be. In a batch it is halved, so that no
// other event goes down with it.
func TestEventsThatCannotBeWritten(t *testing.T) {
	r := newReceiver(t, nil)
	c := newSender(t)
	broken := packed(9, schema.EventGridForm, `{"id":`)
	timeless := packed(9, schema.CloudEventForm, `{"specversion":"1.0","id":"1","source":"/","type":"t"}`)
	for what, p := range map[string]*pending.Delivery{"broken": broken, "timeless": timeless} {
		o := prepare(t, c, subscription(r.url, schema.EventGrid, func(s *topics.Settings) { s.MaxEvents = 9 }))
		for _, x := range []struct {
			where string
			batch []*pending.Delivery
			want  retry.Outcome
		}{
			{"alone", []*pending.Delivery{p}, retry.BadRequest},
			{"last", []*pending.Delivery{eventGrid(1), p}, retry.PayloadTooLarge},
			{"first", []*pending.Delivery{p, eventGrid(1)}, retry.PayloadTooLarge},
		} {
			t.Run(what+", "+x.where, func(t *testing.T) {
				got := c.Deliver(t.Context(), o, x.batch)
				if got.Outcome != x.want || got.Status != 0 || got.Err == "" || got.Began.IsZero() {
					t.Errorf("%+v", got)
				}
			})
		}
	}
	if len(r.got) > 0 {
		t.Error("something was sent")
	}
}

// A yard whose settings have changed says so at each delivery; events wait, and none is lost.
func TestAnAddressThatIsNotAllowedAnyMore(t *testing.T) {
	c := New(Config{Client: newClient(t, egress.Config{})})
	s := subscription("http://10.0.0.7/hook", schema.EventGrid, nil)
	if err := c.Check(*s); err == nil || !strings.Contains(err.Error(), "grid.allow") {
		t.Errorf("check gives %v", err)
	}
	got := c.Deliver(t.Context(), prepare(t, c, s), []*pending.Delivery{eventGrid(1)})
	if got.Outcome != retry.SocketError || !strings.Contains(got.Err, "grid.allow") {
		t.Errorf("%+v", got)
	}
}

// Large bodies are lent to the client. What the next delivery writes must not end up in them.
func TestBuffersAreNotSharedByDeliveries(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, q *http.Request) {})
	c := newSender(t)
	o := prepare(t, c, subscription(r.url, schema.CloudEvents, nil))
	for i := range 30 {
		fill := strings.Repeat(string(rune('a'+i%26)), 1<<uint(i%20))
		p := packed(i, schema.CloudEventForm, `{"specversion":"1.0","id":"1","source":"/","type":"t","data":"`+fill+`"}`)
		testkit.MustEqual(t, c.Deliver(t.Context(), o, []*pending.Delivery{p}).Outcome, retry.Delivered)
		if _, body := r.last(t); string(body) != string(p.Event) {
			t.Fatalf("event %d arrived changed", i)
		}
	}
}

// R4: an event that was passed on too often is not sent, and takes no other of its batch with it.
func TestAnEventThatWentRoundIsNotSent(t *testing.T) {
	r := newReceiver(t, nil)
	c := newSender(t)
	o := prepare(t, c, subscription(r.url, schema.EventGrid, func(s *topics.Settings) { s.MaxEvents = 9 }))
	round, last := eventGrid(1), eventGrid(2)
	round.Hops, last.Hops = hops.Max, hops.Max-1
	got := c.Deliver(t.Context(), o, []*pending.Delivery{round})
	testkit.Equal(t, got.Outcome, retry.LoopDetected, "the outcome: %s", got.Err)
	testkit.Equal(t, c.Deliver(t.Context(), o, []*pending.Delivery{round, last}).Outcome, retry.PayloadTooLarge, "the batch's outcome")
	testkit.Equal(t, c.Deliver(t.Context(), o, []*pending.Delivery{last}).Outcome, retry.Delivered, "the other's outcome")
	header, _ := r.last(t)
	testkit.Equal(t, header.Header.Get(hops.Name), "8", "hops that were sent")
}
