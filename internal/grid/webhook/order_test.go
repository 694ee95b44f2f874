package webhook

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G2: off unless asked for.
func TestBoundsOfBatches(t *testing.T) {
	c := newSender(t)
	for name, x := range map[string]struct {
		max, kib      int
		binary        bool
		batched       bool
		events, bytes int
	}{
		"nothing is said":                     {0, 0, false, false, 1, 64 << 10},
		"one event":                           {1, 0, false, false, 1, 64 << 10},
		"Event Grid's own way of saying none": {1, 64, false, false, 1, 64 << 10},
		"several events":                      {10, 0, false, true, 10, 64 << 10},
		"a size":                              {0, 16, false, true, 5000, 16 << 10},
		"both":                                {5000, 1024, false, true, 5000, 1 << 20},
		"too many":                            {9999, 0, false, true, 5000, 64 << 10},
		"in binary mode never":                {10, 16, true, false, 1, 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			o := prepare(t, c, subscription("http://127.0.0.1/", schema.CloudEvents, func(s *topics.Settings) { s.MaxEvents, s.PreferredKiB, s.Binary = x.max, x.kib, x.binary }))
			if o.Batched != x.batched || o.MaxEvents != x.events || o.PreferredBytes != x.bytes {
				t.Errorf("batched %v, %d events, %d bytes", o.Batched, o.MaxEvents, o.PreferredBytes)
			}
		})
	}
}

func TestDefinitionsThatCannotBeUsed(t *testing.T) {
	c := newSender(t)
	for name, change := range map[string]func(*topics.Settings){
		"no endpoint":                   func(s *topics.Settings) { s.Webhook = nil },
		"a URL that is none":            func(s *topics.Settings) { s.Webhook.URL = "nonsense" },
		"an authority that is none":     func(s *topics.Settings) { s.Webhook.CA = "nonsense" },
		"a key that is none":            func(s *topics.Settings) { s.Keys = []signature.Key{{Text: "nonsense"}} },
		"a header of the yard's own":    func(s *topics.Settings) { s.Headers = []topics.Header{{Name: "AEG-event-type", Value: "x"}} },
		"a header with a line break":    func(s *topics.Settings) { s.Headers = []topics.Header{{Name: "X-A", Value: "x\r\nX-B: y"}} },
		"a header whose name is none":   func(s *topics.Settings) { s.Headers = []topics.Header{{Name: "X A", Value: "x"}} },
		"a header that frames messages": func(s *topics.Settings) { s.Headers = []topics.Header{{Name: "Content-Length", Value: "0"}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := subscription("http://127.0.0.1/", schema.EventGrid, change)
			if _, err := c.Prepare(s, topic); err == nil || !strings.Contains(err.Error(), "Billing-1") {
				t.Errorf("%s: %v", name, err)
			}
			if err := c.Check(*s); err == nil && s.Webhook != nil {
				t.Errorf("%s: it passes the check", name)
			}
		})
	}
	testkit.Check(t, c.Check(*subscription("http://127.0.0.1/", schema.EventGrid, nil)))
}

func TestWhoseHealthItIs(t *testing.T) {
	c := newSender(t)
	a := prepare(t, c, subscription("http://127.0.0.1/a", schema.EventGrid, nil))
	other := prepare(t, c, subscription("http://127.0.0.1/a", schema.CloudEvents, func(s *topics.Settings) { s.MaxEvents = 7 }))
	b := prepare(t, c, subscription("http://127.0.0.1/b", schema.EventGrid, nil))
	if a.Identity != other.Identity || a.Identity == b.Identity || a.Identity == "" {
		t.Errorf("identities %q, %q, %q", a.Identity, other.Identity, b.Identity)
	}
	// Credentials are also those that stand in headers: one who is refused must not put others on
	// probation.
	with := func(headers ...topics.Header) string {
		return prepare(t, c, subscription("http://127.0.0.1/a", schema.EventGrid, func(s *topics.Settings) { s.Headers = headers })).Identity
	}
	right := with(topics.Header{Name: "Authorization", Value: "Bearer right"})
	if right == a.Identity || right != with(topics.Header{Name: "authorization", Value: "Bearer right"}) || right == with(topics.Header{Name: "Authorization", Value: "Bearer wrong"}) {
		t.Error("credentials in the header Authorization do not count as such")
	}
	if secret := with(topics.Header{Name: "X-Key", Value: "a", Secret: true}); secret == a.Identity || secret == with(topics.Header{Name: "X-Key", Value: "b", Secret: true}) {
		t.Error("secret headers do not count as credentials")
	}
	testkit.Equal(t, with(topics.Header{Name: "X-Env", Value: "a"}, topics.Header{Name: "X-Secret", Field: "data.x", Secret: true}), a.Identity, "headers that are no credentials count as such")
	for _, hub := range []string{"Orders", "orders"} {
		if o := prepare(t, c, subscription("", schema.EventGrid, func(s *topics.Settings) { s.Webhook, s.Hub = nil, hub })); o.Identity != "hub/orders" {
			t.Errorf("%s is %q", hub, o.Identity)
		}
	}
}

// G12: delivery properties, as far as their values can stand in a header.
func TestDeliveryProperties(t *testing.T) {
	r := newReceiver(t, nil)
	c := newSender(t)
	o := prepare(t, c, subscription(r.url, schema.CloudEvents, func(s *topics.Settings) {
		s.Headers = []topics.Header{
			{Name: "X-Static", Value: "always"}, {Name: "authorization", Value: "Basic x"}, {Name: "User-Agent", Value: "mine"}, {Name: "Accept", Value: "application/json"},
			{Name: "x-string", Field: "data.string"}, {Name: "X-Number", Field: "data.number"}, {Name: "X-Bool", Field: "data.bool"}, {Name: "X-Id", Field: "id"},
			{Name: "X-Null", Field: "data.null"}, {Name: "X-Object", Field: "data.object"}, {Name: "X-Array", Field: "data.array"}, {Name: "X-Missing", Field: "data.none"},
			{Name: "X-Injected", Field: "data.injected"}, {Name: "X-Long", Field: "data.long"}, {Name: "X-Escaped", Field: "data.escaped"}, {Name: "X-Extension", Field: "tenant"},
		}
	}))
	p := packed(1, schema.CloudEventForm, `{"specversion":"1.0","id":"i-1","source":"/","type":"t","tenant":"acme","data":{"string":"text","number":-1.50e3,"bool":true,"null":null,"object":{},"array":[1],"injected":"a\r\nX-Evil: 1","long":"`+strings.Repeat("x", 4097)+`","escaped":"a\u0020\"b\""}}`)
	testkit.MustEqual(t, c.Deliver(t.Context(), o, []*pending.Delivery{p}).Outcome, retry.Delivered)
	q, _ := r.last(t)
	for name, want := range map[string]string{
		"X-Static": "always", "Authorization": "Basic x", "User-Agent": "mine", "Accept": "application/json",
		"X-String": "text", "X-Number": "-1.50e3", "X-Bool": "true", "X-Id": "i-1", "X-Escaped": `a "b"`, "X-Extension": "acme",
	} {
		t.Run(name, func(t *testing.T) {
			if got := q.Header[http.CanonicalHeaderKey(name)]; len(got) != 1 || got[0] != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		})
	}
	for _, name := range []string{"X-Null", "X-Object", "X-Array", "X-Missing", "X-Injected", "X-Long", "X-Evil"} {
		if got, there := q.Header[name]; there {
			t.Errorf("%s is there: %q", name, got)
		}
	}
}

// What an event says of itself in headers must not break out of them either.
func TestEventsCannotInjectHeaders(t *testing.T) {
	r := newReceiver(t, nil)
	c := newSender(t)
	for output, event := range map[schema.Kind]*pending.Delivery{
		schema.EventGrid:   packed(1, schema.EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1\r\nX-Evil: 1","data":1}`),
		schema.CloudEvents: packed(1, schema.CloudEventForm, `{"specversion":"1.0","id":"1","source":"/","type":"t","traceparent":"x\r\nX-Evil: 1","tracestate":["a"],"data":1}`),
	} {
		if got := c.Deliver(t.Context(), prepare(t, c, subscription(r.url, output, nil)), []*pending.Delivery{event}); got.Outcome != retry.Delivered {
			t.Errorf("%s: %+v", output, got)
		}
		q, _ := r.last(t)
		for _, name := range []string{"X-Evil", "Traceparent", "Tracestate", "Aeg-Data-Version"} {
			testkit.Equal(t, q.Header.Get(name), "", "%s: %s", output, name)
		}
	}
}

// Events share a batch only if their headers are the same.
func TestGroups(t *testing.T) {
	c := newSender(t)
	event := func(data string) *pending.Delivery {
		return packed(1, schema.EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","data":`+data+`}`)
	}
	plain := prepare(t, c, subscription("http://127.0.0.1/", schema.EventGrid, func(s *topics.Settings) { s.Headers = []topics.Header{{Name: "X-A", Value: "1"}} }))
	testkit.Equal(t, plain.Group(event(`{}`)), "", "without dynamic headers it")
	o := prepare(t, c, subscription("http://127.0.0.1/", schema.EventGrid, func(s *topics.Settings) {
		s.Headers = []topics.Header{{Name: "X-A", Field: "data.a"}, {Name: "X-B", Field: "data.b"}}
	}))
	seen := map[string]string{}
	for _, data := range []string{`{"a":"x","b":"y"}`, `{"a":"xy","b":""}`, `{"a":"x"}`, `{"b":"x"}`, `{}`, `{"a":"","b":""}`, `{"a":"1","b":"-"}`, `{"a":"-","b":"1"}`} {
		g := o.Group(event(data))
		if other, there := seen[g]; there || g == "" {
			t.Errorf("%s and %s are both in %q", data, other, g)
		}
		seen[g] = data
	}
	for _, same := range [][2]string{{`{"a":"5","c":1}`, `{"a":5,"c":2}`}, {`{"a":null}`, `{}`}, {`{"a":"x\u0061"}`, `{"a":"xa"}`}} {
		testkit.Equal(t, o.Group(event(same[0])), o.Group(event(same[1])),
			"%s and %s have the same headers, and may not share", same[0], same[1])
	}
	testkit.Equal(t, seen[o.Group(packed(1, schema.EventGridForm, "nonsense"))], "",
		"what cannot be read is with others")
	passed := event(`{}`)
	passed.Hops = 7
	for _, o := range []*Order{plain, o} {
		testkit.That(t, o.Group(passed) != o.Group(event(`{}`)), "an event counts the hops of another")
	}
}

// A definition that says nothing about its schema is older than its topic's.
func TestTheSchemaOfOldDefinitions(t *testing.T) {
	for source, want := range map[topics.Source]schema.Kind{{Topic: "orders"}: schema.EventGrid, {Hub: "sensors"}: schema.CloudEvents} {
		s := subscription("http://127.0.0.1/", "", nil)
		s.Source = source
		testkit.Equal(t, prepare(t, newSender(t), s).output, want, "%s", source)
	}
}

func TestOrderKeys(t *testing.T) {
	c := newSender(t)
	for path, want := range map[string]string{"subject": `"orders/4"`, "data.total": "4", "data.none": "", "data": `{"total":4,"region":"eu"}`} {
		t.Run(path, func(t *testing.T) {
			o := prepare(t, c, subscription("http://127.0.0.1/", schema.EventGrid, func(s *topics.Settings) { s.OrderBy = path }))
			testkit.Equal(t, o.OrderKey(eventGrid(4)), want, "%s", path)
			testkit.Equal(t, o.OrderKey(packed(1, schema.EventGridForm, "nonsense")), "", "what cannot be read has the key")
		})
	}
}

// Size has to be near enough that a batch keeps to what is preferred.
func TestSizeIsAboutWhatIsWritten(t *testing.T) {
	r := newReceiver(t, nil)
	c := newSender(t)
	for name, x := range map[string]struct {
		output schema.Kind
		p      *pending.Delivery
	}{
		"eventgrid": {schema.EventGrid, eventGrid(1)}, "cloudevents": {schema.CloudEvents, cloudEvent(1)},
		"converted": {schema.CloudEvents, eventGrid(1)}, "custom": {schema.Custom, custom(1)},
	} {
		t.Run(name, func(t *testing.T) {
			o := prepare(t, c, subscription(r.url, x.output, func(s *topics.Settings) { s.MaxEvents = 2 }))
			c.Deliver(t.Context(), o, []*pending.Delivery{x.p})
			_, body := r.last(t)
			if size := o.Size(x.p); size < len(body)-2-10 || size > len(body)+150 {
				t.Errorf("%s: said %d bytes, wrote %d", name, size, len(body))
			}
		})
	}
}

func FuzzScalar(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\u000d\n"`, `-1e5`, `true`, `null`, `{}`, `"`, ``, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 0 && raw[0] == '"' && (len(raw) < 2 || raw[len(raw)-1] != '"') {
			return // Field gives valid JSON only
		}
		if text, ok := scalar(raw); ok && (!egress.Sendable("X", text) || len(text) > maxValueBytes) {
			t.Errorf("%q gives %q", raw, text)
		}
	})
}

// R3: orders of a kind share the headers that all requests of that kind have, and one's own stay its own.
func TestOrdersShareWhatTheyHaveInCommon(t *testing.T) {
	c := newSender(t)
	order := func(name string, headers ...topics.Header) *Order {
		s := subscription("http://127.0.0.1/"+name, schema.CloudEvents, func(s *topics.Settings) { s.Headers = headers })
		s.Name = name
		return prepare(t, c, s)
	}
	first, own, last := order("first"), order("own", topics.Header{Name: "X-Own", Value: "1"}), order("last")
	shared := reflect.ValueOf(first.header).Pointer()
	testkit.Equal(t, reflect.ValueOf(last.header).Pointer(), shared, "the headers of another order")
	testkit.That(t, reflect.ValueOf(own.header).Pointer() != shared && own.header.Get("X-Own") == "1", "its own are %v", own.header)
	testkit.Equal(t, last.header.Get("X-Own"), "", "another order's header")
	testkit.Slices(t, last.name, []string{"LAST"}, "the subscription")
	testkit.Equal(t, last.header.Get("Origin"), "yard.example", "origin")
}
