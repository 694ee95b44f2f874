package eventgrid

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The keys of every topic of these tests.
const (
	key1 = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	key2 = "MTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// The names of the policies that have one right each; their key is their name and "-key".
var policies = map[string]auth.Rights{"sender": auth.Send, "listener": auth.Listen, "manager": auth.Manage}

// yard is a listener with real access and definitions in memory, behind a real HTTP server with
// TLS.
type yard struct {
	t             testing.TB
	topics        *memory
	pull          *puller
	topicRegistry *access.Registry
	registry      *prometheus.Registry
	handler       *Handler
	frame         *frame.Frame
	server        *httptest.Server
	stopping      context.CancelFunc
	errors        *testkit.ErrorLog
}

func newYard(t testing.TB, change ...func(*Config)) *yard {
	t.Helper()
	y := &yard{t: t, topics: newMemory(), pull: &puller{}, registry: prometheus.NewRegistry(), errors: testkit.NewErrorLog(t, slog.LevelInfo)}
	log := y.errors.Logger
	y.topicRegistry = newAccess(t, log)
	stopping, stop := context.WithCancel(context.Background())
	y.stopping = stop
	cfg := Config{Topics: y.topics, Pull: y.pull, Access: y.topicRegistry, Stopping: stopping, Log: log, Metrics: y.registry}
	for _, c := range change {
		c(&cfg)
	}
	y.serve(New(cfg))
	y.server = httptest.NewUnstartedServer(y.frame)
	y.server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	y.server.StartTLS()
	t.Cleanup(func() { stop(); y.server.Close() })
	return y
}

// serve puts the API into a frame, where it gets every request.
func (y *yard) serve(d *Handler) {
	api := d.API()
	api.Serves = nil
	y.handler, y.frame = d, frame.New(frame.Config{LoopbackOnly: true, Stopping: d.cfg.Stopping, Log: d.cfg.Log}, api)
}

func newAccess(t testing.TB, log *slog.Logger) *access.Registry {
	t.Helper()
	topicRegistry, err := access.Open(t.Context(), access.Config{
		Meta: storagetest.Entries(t), Hub: func(string) (time.Time, bool) { return time.Time{}, false }, Development: true, AnyBearer: true, Log: log,
	})
	testkit.Must(t, err)
	for name, rights := range policies {
		_, err := topicRegistry.Create(t.Context(), access.Policy{Name: name, Rights: rights, Primary: policyKey(name)})
		testkit.Must(t, err)
	}
	return topicRegistry
}

func policyKey(name string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + " and enough more of it to be a key"))
}

// in is the same yard for a subtest.
func (y *yard) in(t testing.TB) *yard {
	sub := *y
	sub.t = t
	return &sub
}

// request is what is sent; change may alter it.
func (y *yard) request(method, path, body string, change ...func(*http.Request)) *http.Request {
	y.t.Helper()
	r, err := http.NewRequestWithContext(y.t.Context(), method, y.server.URL+path, strings.NewReader(body))
	testkit.Must(y.t, err)
	for _, c := range change {
		c(r)
	}
	return r
}

// ask sends a request and reads the whole answer.
func (y *yard) ask(method, path, body string, change ...func(*http.Request)) reply {
	y.t.Helper()
	response, err := y.server.Client().Do(y.request(method, path, body, change...))
	testkit.Must(y.t, err)
	text, err := io.ReadAll(response.Body)
	testkit.Must(y.t, err)
	testkit.Must(y.t, response.Body.Close())
	return reply{y.t, response, string(text)}
}

// reply is what came back.
type reply struct {
	t testing.TB
	*http.Response
	text string
}

// want fails unless the answer has that status.
func (r reply) want(status int) reply {
	r.t.Helper()
	if r.StatusCode != status {
		r.t.Fatalf("answered %d, want %d: %s", r.StatusCode, status, r.text)
	}
	return r
}

// json reads the answer.
func (r reply) json(into any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.text), into); err != nil {
		r.t.Fatalf("%v in %s", err, r.text)
	}
}

// refused fails unless the answer is an error of that status and finer code, in Event Grid's form,
// that says what to do. It gives the whole message.
func (r reply) refused(status int, code string) string {
	r.t.Helper()
	r.want(status)
	var document errorDocument
	r.json(&document)
	e := document.Error
	if len(e.Details) != 1 || e.Details[0].Code != code || e.Code != r.Header.Get("x-ms-error-code") || e.Code == "" {
		r.t.Fatalf("refused as %s %+v, want %s", r.Header.Get("x-ms-error-code"), e, code)
	}
	text := e.Details[0].Message
	if !strings.HasSuffix(text, ".") || strings.HasSuffix(text, "..") || !strings.Contains(text, ":") {
		r.t.Errorf("the message does not say what to do: %q", text)
	}
	if short, ended := strings.CutSuffix(e.Message, "."); !ended || short == "" || !strings.HasPrefix(text, short) {
		r.t.Errorf("the outer message %q is not how %q begins", e.Message, text)
	}
	if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("x-ms-request-id") == "" {
		r.t.Errorf("the answer's headers are %v", r.Header)
	}
	return text
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func withKey(r *http.Request) { r.Header.Set("aeg-sas-key", key1) }

func asPolicy(name string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, policyKey(name)) }
}

func asRoot(r *http.Request) { r.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey) }

func contentType(text string) func(*http.Request) { return header("Content-Type", text) }

// counted is a counter's value.
func (y *yard) counted(c *prometheus.CounterVec, labels ...string) float64 {
	return testutil.ToFloat64(c.WithLabelValues(labels...))
}

// memory is definitions that are kept nowhere else. Fields are guarded by mu. What management needs
// is not here: that is tried with the real registry.
type memory struct {
	management
	mu        sync.Mutex
	topics    map[string]topics.Topic
	subs      map[string]topics.Subscription // by source and name
	published map[string][]string
	// fails is what Publish says.
	fails     error
	confirmed []string
	confirm   error
	becomes   topics.Subscription // what it is then
}

// management has all methods, and none that can be called.
type management = Topics

func newMemory() *memory {
	m := &memory{topics: map[string]topics.Topic{}, subs: map[string]topics.Subscription{}, published: map[string][]string{}}
	for name, kind := range map[string]schema.Kind{"orders": schema.EventGrid, "clouds": schema.CloudEvents} {
		m.topics[name] = newTopic(name, kind)
	}
	mapped := newTopic("mapped", schema.Custom)
	mapped.Mapping = schema.Mapping{EventType: schema.Field{Default: "thing"}, Subject: schema.Field{Source: "path"}, DataVersion: schema.Field{Default: "1"}}
	m.topics["mapped"] = mapped
	closed := newTopic("closed", schema.EventGrid)
	closed.DisableKeys = true
	m.topics["closed"] = closed
	m.subs["clouds/jobs"] = topics.Subscription{
		Name: "jobs", ID: "jobsjobsjobsj", Source: topics.Source{Topic: "clouds"}, State: topics.Active, Settings: topics.Settings{Pull: &topics.Pull{}},
	}
	return m
}

func newTopic(name string, kind schema.Kind) topics.Topic {
	return topics.Topic{
		Name: name, ID: name, Schema: kind, Key1: key1, Key2: key2,
		Resource: "/subscriptions/0/resourceGroups/yard/providers/Microsoft.EventGrid/topics/" + name,
	}
}

func (m *memory) Topic(name string) (topics.Topic, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.topics[auth.Fold(name)]
	if !ok {
		return topics.Topic{}, fmt.Errorf("%w: %q", topics.ErrTopicNotFound, name)
	}
	return t, nil
}

func (m *memory) setTopic(t topics.Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.topics[auth.Fold(t.Name)] = t
}

func (m *memory) Publish(_ context.Context, topic string, events [][]byte, _ *quota.Meter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	for _, e := range events {
		m.published[topic] = append(m.published[topic], string(e))
	}
	return nil
}

func (m *memory) stored(topic string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.published[topic]
}

func (m *memory) Find(source topics.Source, name string) (topics.Subscription, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.subs[auth.Fold(source.Topic+"/"+name)]
	if !ok {
		return topics.Subscription{}, fmt.Errorf("%w: %q", topics.ErrNotFound, name)
	}
	return s, nil
}

func (m *memory) Confirm(_ context.Context, id, token string, rate int) (topics.Subscription, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.confirm != nil {
		return topics.Subscription{}, m.confirm
	}
	m.confirmed = append(m.confirmed, fmt.Sprintf("%s %s %d", id, token, rate))
	s := m.becomes
	s.Name, s.Source = "mailer", topics.Source{Topic: "orders"}
	s.State = cmp.Or(s.State, topics.Active)
	return s, nil
}

// puller gives what a test has put there. Fields are guarded by mu.
type puller struct {
	mu     sync.Mutex
	events []delivery.Received
	fails  error
	// lost and alien are tokens that cannot be settled.
	lost, alien string
	asked       []string // calls, as text
	waiting     func()   // called by Receive before it waits
}

func (p *puller) note(format string, args ...any) {
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
}

func (p *puller) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "; ")
}

func (p *puller) Receive(ctx context.Context, subscription string, most int, wait time.Duration) ([]delivery.Received, error) {
	p.mu.Lock()
	p.note("receive %s %d %s", subscription, most, wait)
	events, fails, waiting := p.events, p.fails, p.waiting
	if len(events) > most {
		events = events[:most]
	}
	p.events = p.events[len(events):]
	p.mu.Unlock()
	if waiting != nil {
		waiting()
	}
	if len(events) > 0 || fails != nil {
		return events, fails
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
		return nil, nil
	}
}

func (p *puller) GiveBack(ctx context.Context, subscription string, tokens []string) error {
	_, err := p.Settle(ctx, subscription, delivery.Release, 0, tokens)
	return err
}

func (p *puller) Settle(_ context.Context, subscription string, how delivery.Settlement, delay time.Duration, tokens []string) ([]delivery.Settled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note("settle %s %d %s %s", subscription, how, delay, strings.Join(tokens, ","))
	if p.fails != nil {
		return nil, p.fails
	}
	var all []delivery.Settled
	for _, token := range tokens {
		var err error
		switch token {
		case p.lost:
			err = fmt.Errorf("settle: %w", delivery.ErrLockLost)
		case p.alien:
			err = delivery.ErrToken
		}
		all = append(all, delivery.Settled{Token: token, Err: err})
	}
	return all, nil
}
