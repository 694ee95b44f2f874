package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// receiver is a receiver that agrees to everything.
type receiver struct {
	*httptest.Server
	t *testing.T
	// status is what deliveries are answered with; zero: 200.
	status atomic.Int32
	// handshakes counts the questions; got and gone are deliveries and deletion notices.
	handshakes atomic.Int32
	got, gone  chan string
	// hold, if it is not nil, keeps deliveries waiting until it is closed.
	hold chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	h := &receiver{t: t, got: make(chan string, 100), gone: make(chan string, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *receiver) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.Header.Get("aeg-event-type") {
	case "SubscriptionValidation":
		h.handshakes.Add(1)
		_, rest, _ := strings.Cut(string(body), `"validationCode":"`)
		code, _, _ := strings.Cut(rest, `"`)
		fmt.Fprintf(w, `{"validationResponse":%q}`, code)
	case "SubscriptionDeletion":
		h.gone <- string(body)
	default:
		if r.Method == http.MethodOptions {
			h.handshakes.Add(1)
			w.Header().Set("WebHook-Allowed-Origin", r.Header.Get("WebHook-Request-Origin"))
			return
		}
		h.got <- string(body)
		if h.hold != nil {
			select {
			case <-h.hold:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(max(int(h.status.Load()), http.StatusOK))
	}
}

// await gives what comes next, and fails if it is long in coming.
func (h *receiver) await(from chan string, part string) string {
	h.t.Helper()
	select {
	case body := <-from:
		if !strings.Contains(body, part) {
			h.t.Errorf("%s has no %s", body, part)
		}
		return body
	case <-time.After(20 * time.Second):
		h.t.Fatalf("%s did not come", part)
		return ""
	}
}

func (r *running) topic(name string) (t admin.Topic) {
	r.t.Helper()
	testkit.Must(r.t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/topics/"+name, "")), &t))
	return t
}

// subscription waits while no node delivers it yet.
func (r *running) subscription(name string) (s admin.Subscription) {
	r.t.Helper()
	var status int
	var answer string
	testkit.Eventually(r.t, "the subscription to be delivered somewhere", func() bool {
		status, answer = r.do("GET", "/api/v1/subscriptions/"+name, "")
		return status != http.StatusServiceUnavailable
	})
	testkit.Equal(r.t, status, http.StatusOK, "%s", answer)
	testkit.Must(r.t, json.Unmarshal([]byte(answer), &s))
	return s
}

// awaitState waits for a subscription of a topic (or a hub) that is made in the background.
func (r *running) awaitState(of topics.Source, name string, state topics.State) {
	r.t.Helper()
	in, err := r.enter(r.t.Context())
	testkit.Must(r.t, err)
	registry, changed := in.yard.topics, make(chan struct{}, 1)
	defer registry.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	late := time.After(20 * time.Second)
	for {
		s, err := registry.Find(of, name)
		if err == nil && s.State == state {
			return
		}
		select {
		case <-changed:
		case <-late:
			r.t.Fatalf("subscription %s is %q, %v", name, s.State, err)
		}
	}
}

// publish sends an event the way Event Grid's clients do; more is members that it has besides.
func (r *running) publish(topic, id string, more ...string) {
	r.t.Helper()
	shown := r.topic(topic)
	body := fmt.Sprintf(`[{%s"id":%q,"subject":"/s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1","data":{"n":10}}]`, strings.Join(more, ""), id)
	request, err := http.NewRequest("POST", r.url+"/topics/"+topic+"/api/events", strings.NewReader(body))
	testkit.Must(r.t, err)
	request.Header.Set("aeg-sas-key", shown.Keys.Key1)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	testkit.Must(r.t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(response.Body)
		r.t.Fatalf("publishing answers %d: %s", response.StatusCode, answer)
	}
}

const configuredKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// deadTarget is where dead letters can go: nodes on servers share no folder.
func deadTarget() string {
	if testengine.OverServers() {
		return "hub:archive"
	}
	return "folder:dead"
}

// G1, G11: what is configured is there and delivers; a restart asks nobody again.
func TestConfiguredTopicsAndSubscriptionsExist(t *testing.T) {
	hook := newReceiver(t)
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "archive", Partitions: 1}}
	cfg.Topics = []Topic{{Name: "orders", Key1: configuredKey}, {Name: "readings", Schema: "CloudEventSchemaV1_0"}}
	cfg.Subscriptions = []Subscription{
		{
			Name: "billing", Topic: "orders", Endpoint: new(hook.URL), Types: []string{"t"}, SubjectBeginsWith: new("/"), SubjectEndsWith: new("s"),
			Filters: []admin.Filter{"data.n NumberGreaterThan 5"}, MaxEvents: new(10), PreferredKiB: new(64), Attempts: new(3), TTL: new("1h"),
			RetrySchedule: new("1s,2s"), RetryFloors: admin.Floors{"503": "5s", "other": "1s"}, DeadLetter: new(deadTarget()),
			Headers:     []admin.Header{{Name: "X-Env", Value: "prod"}, {Name: "X-Subject", Field: "subject"}},
			SigningKeys: []string{"whsec_" + configuredKey}, OrderBy: new("subject"), Concurrency: new(2),
		},
		{Name: "archive", Topic: "orders", Hub: new("archive")},
		{Name: "worker", Topic: "readings", Pull: &admin.Pull{}},
	}
	for times := range 3 {
		r := start(t, cfg)
		if got := r.topic("orders"); got.Keys.Key1 != configuredKey || got.Schema != "eventgrid" || r.topic("readings").Schema != "cloudevents" {
			t.Errorf("the topic is %+v", got)
		}
		orders := topics.Source{Topic: "orders"}
		r.awaitState(orders, "billing", topics.Active)
		r.awaitState(orders, "archive", topics.Active)
		r.awaitState(topics.Source{Topic: "readings"}, "worker", topics.Active)
		if s := r.subscription("billing"); s.MaxEvents != 10 || s.Retry.Attempts != 3 || s.Retry.Floors["503"] != "5s" || s.DeadLetter != deadTarget() || len(s.Headers) != 2 || s.OrderBy != "subject" {
			t.Errorf("the subscription is %+v", s)
		}
		r.publish("orders", fmt.Sprint("event-", times))
		hook.await(hook.got, fmt.Sprint("event-", times))
		r.shutdown()
	}
	testkit.Equal(t, hook.handshakes.Load(), 1, "the endpoint was asked")
}

// What the configuration says of keys, mappings and pauses holds; a signing key that was made for
// it is not made again.
func TestWhatIsConfiguredOfATopicAndItsSubscriptionHolds(t *testing.T) {
	hook := newReceiver(t)
	cfg := quick(t)
	cfg.Topics = []Topic{{Name: "orders", Schema: "custom", Mapping: json.RawMessage(`{"subject":{"sourceField":"path"}}`), DisableKeys: new(true)}}
	cfg.Subscriptions = []Subscription{
		{Name: "billing", Topic: "orders", Endpoint: new(hook.URL), Sign: new("hmac"), MaxRetryAfter: new("10m"), Paused: new(true)},
	}
	made := ""
	for range 2 {
		r := start(t, cfg)
		r.awaitState(topics.Source{}, "billing", topics.Paused)
		if got := r.topic("orders"); !got.DisableKeys || string(got.Mapping) != `{"subject":{"sourceField":"path"}}` {
			t.Errorf("the topic is %+v, mapping %s", got, got.Mapping)
		}
		got := r.subscription("billing?secrets=true")
		if len(got.Signing) != 1 || got.Retry.MaxRetryAfter != "10m" || made != "" && got.Signing[0].Text != made {
			t.Errorf("the subscription is %+v, signed by %+v", got, got.Signing)
		}
		made = got.Signing[0].Text
		r.shutdown()
	}
}

// What was set at run time, and the configuration has no word for, is not undone by a restart.
func TestARestartLeavesWhatTheConfigurationDoesNotMention(t *testing.T) {
	hook := newReceiver(t)
	cfg := quick(t)
	cfg.Topics = []Topic{{Name: "orders", Schema: "custom"}, {Name: "readings"}}
	cfg.Subscriptions = []Subscription{{Name: "billing", Topic: "orders", Endpoint: new(hook.URL)}}
	r := start(t, cfg)
	r.awaitState(topics.Source{}, "billing", topics.Active)
	r.want(200, "PATCH", "/api/v1/topics/orders", `{"disableKeys":true,"mapping":{"subject":{"sourceField":"path"}}}`)
	key := r.topic("orders").Keys.Key1
	r.want(200, "PATCH", "/api/v1/subscriptions/billing", `{"paused":true}`)
	r.shutdown()

	r = start(t, cfg)
	if got := r.topic("orders"); !got.DisableKeys || string(got.Mapping) != `{"subject":{"sourceField":"path"}}` || got.Keys.Key1 != key {
		t.Errorf("the topic is %+v, mapping %s", got, got.Mapping)
	}
	r.shutdown() // which ends the making of what is configured
	r = start(t, cfg)
	if got := r.subscription("billing"); got.State != "paused" {
		t.Errorf("the subscription is %+v", got)
	}
	r.shutdown()
	cfg.Topics[0].Schema = "eventgrid"
	s, err := New(onEngine(t, cfg))
	testkit.Must(t, err)
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "configured topic orders") || !strings.Contains(err.Error(), "make another topic") {
		t.Errorf("another schema: %v", err)
	}
}

// Links and endpoints are written the way others reach the yard.
func TestPublicURLs(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(silent.Close)
	for name, tt := range map[string]struct {
		change              func(*Config)
		plain, secure, link string
	}{
		"the address of the listener": {func(*Config) {}, "http://127.0.0.1:PORT", "", "http://127.0.0.1:PORT"},
		"a plain public URL":          {func(c *Config) { c.PublicURL = "http://yard.example.com/grid/" }, "http://yard.example.com/grid", "", "http://yard.example.com/grid"},
		"a public URL with TLS":       {func(c *Config) { c.PublicURL = "https://yard.example.com" }, "https://yard.example.com", "", "https://yard.example.com"},
		"a listener with TLS besides": {func(c *Config) { c.HTTPS = "127.0.0.1:0" }, "http://127.0.0.1:PORT", "https://127.0.0.1:", "http://127.0.0.1:PORT"},
		"a name says nothing here":    {func(c *Config) { c.Host = "yard.example.com" }, "http://127.0.0.1:PORT", "", "http://127.0.0.1:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(t)
			cfg.Topics = []Topic{{Name: "orders"}}
			cfg.Subscriptions = []Subscription{{Name: "billing", Topic: "orders", Endpoint: new(silent.URL)}, {Name: "billing", SourceHub: "h", Pull: &admin.Pull{}}}
			cfg.Hubs = []Hub{{Name: "h"}}
			tt.change(&cfg)
			r := start(t, cfg)
			here := func(url string) string { return strings.Replace(url, "http://127.0.0.1:PORT", r.url, 1) }
			got := r.topic("orders")
			if got.Endpoint != here(tt.plain)+"/topics/orders/api/events" || (tt.secure == "") != (got.SecureEndpoint == "") || !strings.HasPrefix(got.SecureEndpoint, tt.secure) {
				t.Errorf("the endpoints are %q and %q", got.Endpoint, got.SecureEndpoint)
			}
			orders := topics.Source{Topic: "orders"}
			r.awaitState(orders, "billing", topics.Pending)
			s := r.subscription("billing?topic=orders")
			if !strings.HasPrefix(s.ValidationURL, here(tt.link)+"/topics/orders/validate?id="+s.ID+"&token=") {
				t.Errorf("the link is %q", s.ValidationURL)
			}
			if strings.HasPrefix(s.ValidationURL, r.url) { // it agrees for the endpoint, and needs no key
				response, err := http.Get(s.ValidationURL)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("opening it: %+v, %v", response, err)
				}
				response.Body.Close()
				r.awaitState(orders, "billing", topics.Active)
			}
			r.shutdown()
		})
	}
}

// A yard that no HTTP client reaches delivers what comes by other listeners.
func TestAGridWithoutAnHTTPListener(t *testing.T) {
	hook := newReceiver(t)
	cfg := quick(t)
	cfg.HTTP, cfg.AMQP = Off, "127.0.0.1:0"
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1}}
	cfg.Subscriptions = []Subscription{{Name: "billing", SourceHub: "orders", Endpoint: new(hook.URL)}}
	r := start(t, cfg)
	client, err := r.Dial(t.Context(), hub.Config{})
	testkit.Must(t, err)
	r.awaitState(topics.Source{Hub: "orders"}, "billing", topics.Active)
	testkit.Must(t, client.Hub("orders").Send(t.Context(), event.Event{Body: []byte("hello")}))
	if body := hook.await(hook.got, `"type":"Eventyard.Hub.Event"`); !strings.Contains(body, `"specversion":"1.0"`) {
		t.Errorf("delivered was %s", body)
	}
	r.shutdown()
}

// G8: dead letters in the data folder are the yard's, also to those who look into it from outside.
func TestADeadLetterFolderIsNotForeign(t *testing.T) {
	testengine.NeedsFiles(t)
	hook := newReceiver(t)
	hook.status.Store(400)
	cfg := quick(t)
	cfg.Grid.DeadLetterDelay = -1
	reported := newReceiver(t)
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","topic":"orders","endpoint":"`+hook.URL+`","deadLetter":"folder:dead"}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"told","topic":"yard-events","endpoint":"`+reported.URL+`","types":["Microsoft.Storage.BlobCreated"]}`)
	r.publish("orders", "1")
	hook.await(hook.got, `"id":"1"`)
	reported.await(reported.got, "Microsoft.Storage.BlobCreated") // when it is there
	r.shutdown()
	if files, err := filepath.Glob(filepath.Join(cfg.DataDir, "dead/ORDERS/BILLING/*/*/*/*/*.json")); len(files) != 1 {
		t.Errorf("written are %v, %v", files, err)
	}
	found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir})
	if err != nil || len(found.Foreign)+len(found.Problems) != 0 || found.Meta != nil || found.Events == 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestDeadLettersAreDistinguishedFromForeignFiles(t *testing.T) {
	testengine.NeedsFiles(t)
	const letter = "ORDERS/BILLING/2026/1/31/12/x.json"
	for name, tt := range map[string]struct {
		files []string
		want  bool
	}{
		"dead letters":                  {[]string{letter, "ORDERS/OTHER/2026/12/1/0/y.json"}, true},
		"those that are being written":  {[]string{letter + ".part"}, true},
		"a folder in a folder":          {[]string{"team/" + letter}, true},
		"the folders that were emptied": {[]string{"ORDERS/BILLING/2026/1/31/12/"}, true},
		"an empty folder":               {nil, false},
		"somebody's notes":              {[]string{"notes.txt"}, false},
		"notes among dead letters":      {[]string{letter, "zzz/notes.txt"}, false},
		"files by date":                 {[]string{"2026/1/31/12/x.json"}, false},
		"other files in such folders":   {[]string{"a/b/2026/1/31/12/x.csv"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tt.files {
				full := filepath.Join(dir, file)
				testkit.Must(t, os.MkdirAll(filepath.Dir(full), 0o700))
				if strings.HasSuffix(file, "/") {
					testkit.Must(t, os.MkdirAll(full, 0o700))
				} else if err := os.WriteFile(full, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Equal(t, hasDeadLetters(dir), tt.want)
		})
	}
}

// G1: a yard that stops does not wait for receivers that hang, and forgets nothing of what they
// had.
func TestStoppingWhileAnEndpointHangs(t *testing.T) {
	hook := newReceiver(t)
	hook.hold = make(chan struct{})
	cfg := quick(t)
	cfg.Grace = 500 * time.Millisecond
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","topic":"orders","endpoint":"`+hook.URL+`"}`)
	r.publish("orders", "1")
	hook.await(hook.got, `"id":"1"`)
	began := time.Now()
	r.shutdown()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
	close(hook.hold)
	r = start(t, cfg)
	hook.await(hook.got, `"id":"1"`)
	r.shutdown()
}

// G11: an endpoint hears that its subscription, or its topic, is gone.
func TestEndpointsHearOfTheEndOfTheirSubscription(t *testing.T) {
	hook := newReceiver(t)
	r := start(t, quick(t))
	r.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
	for _, name := range []string{"one", "two", "three"} {
		r.want(201, "POST", "/api/v1/subscriptions", `{"name":"`+name+`","topic":"orders","endpoint":"`+hook.URL+`"}`)
	}
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"pull","topic":"orders","pull":{}}`)
	r.want(204, "DELETE", "/api/v1/subscriptions/one", "")
	hook.await(hook.gone, "/eventSubscriptions/one")
	r.want(200, "DELETE", "/topics/orders/eventSubscriptions/two", "")
	hook.await(hook.gone, "/eventSubscriptions/two")
	r.want(404, "DELETE", "/api/v1/subscriptions/two", "")
	r.want(204, "DELETE", "/api/v1/topics/orders", "")
	hook.await(hook.gone, "/eventSubscriptions/three")
	r.want(409, "DELETE", "/api/v1/topics/yard-events", "")
	r.shutdown()
	testkit.Equal(t, len(hook.gone), 0, "more were told")
}

// What is wrong with topics and subscriptions by themselves is found before anything is touched.
func TestAGridThatCannotBeConfiguredSo(t *testing.T) {
	with := func(s Subscription) Config {
		s.Name, s.Topic = "billing", "orders"
		return Config{Subscriptions: []Subscription{s}}
	}
	named := func(name, domainTopic string) Config {
		return Config{Subscriptions: []Subscription{{Name: name, Topic: "orders", DomainTopic: domainTopic, Pull: &admin.Pull{}}}}
	}
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"a topic without a name":      {Config{Topics: []Topic{{}}}, "name"},
		"an unknown schema":           {Config{Topics: []Topic{{Name: "orders", Schema: "xml"}}}, "topic orders: schema \"xml\": use eventgrid"},
		"no target":                   {with(Subscription{}), "one of endpoint, hub and pull"},
		"two targets":                 {with(Subscription{Pull: &admin.Pull{}, Hub: new("h")}), "one of endpoint, hub and pull"},
		"a misspelt operator":         {with(Subscription{Pull: &admin.Pull{}, Filters: []admin.Filter{"data.n NumberGreatrThan 5"}}), "subscription billing: definition is not allowed: filters: "},
		"a floor that is none":        {with(Subscription{Pull: &admin.Pull{}, RetryFloors: admin.Floors{"5xx": "5s"}}), "100 to 599"},
		"a time-out that is none":     {with(Subscription{Endpoint: new("http://x"), Timeout: new("X")}), "500ms"},
		"a place that is none":        {with(Subscription{Pull: &admin.Pull{}, DeadLetter: new("bin")}), "folder:DIR"},
		"a time to live that is none": {with(Subscription{Pull: &admin.Pull{}, TTL: new("soon")}), "24h"},
		"too long a life":             {with(Subscription{Pull: &admin.Pull{}, TTL: new("48h")}), "subscriptions[0].ttl: 48h: give 1s to 24h"},
		"too many attempts":           {with(Subscription{Pull: &admin.Pull{}, Attempts: new(31)}), "1 to 30"},
		"too short a time-out":        {with(Subscription{Endpoint: new("http://x"), Timeout: new("1ms")}), "100ms to 30m"},
		"a rate below zero":           {with(Subscription{Endpoint: new("http://x"), Rate: new(-1.0)}), "0.00001 to 1000000"},
		"a TLS that nobody knows":     {with(Subscription{Endpoint: new("http://x"), MinTLS: new("9")}), "1.2 or 1.3"},
		"no attempts":                 {with(Subscription{Endpoint: new("http://x"), Attempts: new(0)}), "1 to 30"},
		"an empty label":              {with(Subscription{Endpoint: new("http://x"), Labels: []string{""}}), "subscription billing: definition is not allowed: a label is empty"},
		"a header of the yard's":      {with(Subscription{Endpoint: new("http://x"), Headers: admin.Headers{{Name: "aeg-x", Value: "1"}}}), "choose another"},
		"a topic's name too short":    {Config{Topics: []Topic{{Name: "ab"}}}, "topics[0].name: \"ab\": use 3 to 50"},
		"a topic's reserved name":     {Config{Topics: []Topic{{Name: "system-x"}}}, "do not begin with"},
		"a key too short":             {Config{Topics: []Topic{{Name: "orders", Key1: "short"}}}, "a key has 16 to 256"},
		"a mapping for no custom":     {Config{Topics: []Topic{{Name: "orders", Schema: "eventgrid", Mapping: []byte(`{"id":{"sourceField":"x"}}`)}}}, "a mapping is for custom events"},
		"a subscription's short name": {named("eu", ""), "subscriptions[0].name: \"eu\": use 3 to 64"},
		"a domain topic that is none": {named("billing", "a b"), "subscriptions[0].domainTopic: \"a b\": use 3 to 128"},
		"pull of a domain topic":      {named("billing", "eu-west"), "are pushed"},
		"too much jitter":             {Config{Grid: Grid{Jitter: 0.6}}, "jitter of 0.6"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
