package frame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// exchange is one request of an API that does what the test says, and tells errors by their code.
type exchange struct {
	*Call
	*test
}

type test struct {
	find, admit error
	serve       func(w http.ResponseWriter) error
	metrics     *Metrics
	ended       *Call
}

func (x *exchange) Find() error {
	x.Route = Route{Method: "GET", Path: "/thing", Name: "Thing"}
	return x.find
}
func (x *exchange) Admit() error            { return x.admit }
func (x *exchange) Serve() error            { return x.serve(x) }
func (x *exchange) Judge(err error) Refusal { return Judge(Problem, err) }
func (x *exchange) Refuse(said Refusal)     { Reply(x, said.Status, "text/plain", []byte(said.Code)) }
func (x *exchange) Ended(took time.Duration) {
	x.ended = x.Call
	x.metrics.Observe(x.Call, took)
}

// newFrame is a frame around one API; log is what it logs.
func newFrame(t *testing.T, cfg Config, change ...func(*API)) (f *Frame, x *test, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	x = &test{serve: func(w http.ResponseWriter) error { _, err := w.Write([]byte("ok")); return err }}
	x.metrics = NewMetrics(prometheus.NewRegistry(), MetricNames{Requests: "requests_total", Seconds: "seconds"}, false)
	api := API{Name: "test", Routes: []Route{{Method: "GET", Path: "/thing", Need: Open("it is a test")}}}
	api.Begin = func(c *Call) Exchange { c.ID = "id-1"; return &exchange{c, x} }
	for _, c := range change {
		c(&api)
	}
	return New(cfg, api), x, log
}

func ask(f http.Handler, method string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/thing", nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// A yard on loopback answers to names that nobody else can point at it; who opens it to others
// gives up the check of names.
func TestHostMustBeLocal(t *testing.T) {
	tests := []struct {
		what, host string
		status     int
	}{
		{"localhost", "localhost", 200},
		{"localhost with a port", "localhost:8080", 200},
		{"localhost in any case, with its dot", "LocalHost.:8080", 200},
		{"a name beneath localhost", "yard.localhost:8080", 200},
		{"the loopback address", "127.0.0.1:8080", 200},
		{"the loopback address of IPv6", "[::1]:8080", 200},
		{"IPv6 without a port", "[::1]", 200},
		{"another address: a name server cannot give it", "192.168.1.5:8080", 200},
		{"the name that the operator gave", "yard.example:8080", 200},
		{"a foreign name", "evil.example", 403},
		{"a foreign name with a port", "evil.example:8080", 403},
		{"a name that looks like an address", "127.0.0.1.evil.example:8080", 403},
		{"a name that ends like localhost", "notlocalhost", 403},
	}
	guarded, _, _ := newFrame(t, Config{LoopbackOnly: true, Host: "yard.example"})
	open, _, _ := newFrame(t, Config{})
	unguarded, _, _ := newFrame(t, Config{LoopbackOnly: true}, func(a *API) { a.Unguarded = true })
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			to := func(r *http.Request) { r.Host = tt.host }
			if got := ask(guarded, "GET", to); got.Code != tt.status || got.Code == 403 && got.Body.String() != "foreign-host" {
				t.Errorf("answered %d %s", got.Code, got.Body)
			}
			if got, own := ask(open, "GET", to), ask(unguarded, "GET", to); got.Code != 200 || own.Code != 200 {
				t.Errorf("answered %d where all names are good, and %d where the API guards itself", got.Code, own.Code)
			}
		})
	}
}

// Web pages of other origins change nothing; a grid that delivers is no page.
func TestForeignPagesChangeNothing(t *testing.T) {
	f, _, _ := newFrame(t, Config{})
	foreign := func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }
	if got := ask(f, "POST", foreign); got.Code != 403 || got.Body.String() != "cross-origin" {
		t.Errorf("answered %d %s", got.Code, got.Body)
	}
	grid := func(r *http.Request) { r.Header.Set("WebHook-Request-Origin", "grid.example") }
	testkit.Equal(t, ask(f, "POST", foreign, grid).Code, 403, "a grid where none delivers was answered")
	takes, _, _ := newFrame(t, Config{}, func(a *API) { a.Deliveries = true })
	testkit.Equal(t, ask(takes, "POST", foreign, grid).Code, 200, "a grid was answered")
	testkit.Equal(t, ask(f, "GET", foreign).Code, 200, "a page that only looks was answered")
}

// The steps come in order, and what fails in one is told and ends the request.
func TestTheFirstFailureEndsARequest(t *testing.T) {
	f, x, log := newFrame(t, Config{})
	served := false
	x.serve = func(http.ResponseWriter) error { served = true; return errors.New("the disk caught fire") }
	x.admit = auth.ErrSignature
	if got := ask(f, "GET"); got.Code != 401 || served || x.ended.Admitted || x.ended.Refused.Code != "invalid-signature" || log.Len() != 0 {
		t.Errorf("answered %d, served %v, log %s", got.Code, served, log)
	}
	x.find, x.admit = &Refusal{Status: 404, Code: "nowhere"}, nil
	if got := ask(f, "GET"); got.Code != 404 || served {
		t.Errorf("answered %d, served %v", got.Code, served)
	}
	x.find = nil
	if got := ask(f, "GET"); got.Code != 500 || !served || !x.ended.Admitted {
		t.Errorf("answered %d, served %v", got.Code, served)
	}
	for _, part := range []string{"level=ERROR", "the disk caught fire", "api=test", "operation=Thing", "request=id-1"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s: %s", part, log)
		}
	}
	testkit.Equal(t, testutil.ToFloat64(x.metrics.Requests.WithLabelValues("Thing", "500")), 1,
		"requests were counted as failed by us")
}

// inGrid is an exchange of Event Grid's API.
type inGrid struct{ *exchange }

func (inGrid) Judge(err error) Refusal { return Judge(EventGrid, err) }

// R4: a topic's token that has expired was good once, as any other that has: nobody guesses by it.
func TestTheEndOfATopicsTokenIsNoGuess(t *testing.T) {
	var reasons []error
	cfg := Config{Refused: func(_ context.Context, _ string, err error) { reasons = append(reasons, err) }}
	f, x, _ := newFrame(t, cfg, func(a *API) {
		begin := a.Begin
		a.Begin = func(c *Call) Exchange { return inGrid{begin(c).(*exchange)} }
	})
	withToken := func(r *http.Request) { r.Header.Set("aeg-sas-token", "r=x&e=1&s=y") }
	for _, x.admit = range []error{topickey.ErrSignature, fmt.Errorf("%w since 1970", topickey.ErrExpired)} {
		testkit.Equal(t, ask(f, "GET", withToken).Code, 401)
	}
	testkit.MustEqual(t, len(reasons), 2)
	testkit.Equal(t, errors.Is(reasons[0], auth.ErrExpired), false)
	testkit.ErrorIs(t, reasons[1], auth.ErrExpired)
}

// A route without a name, as those of v1 are, is logged by its path.
func TestARouteWithoutANameIsLoggedByItsPath(t *testing.T) {
	c := &Call{R: httptest.NewRequest("GET", "/things/1", nil), Route: Route{Method: "GET", Path: "/things/{id}"}}
	testkit.Slices(t, c.about(&API{Name: "v1"})[:4], []any{"api", "v1", "operation", "/things/{id}"})
}

// A panic costs its own request and no other; an answer that has begun is cut off.
func TestPanicsAreAnswered(t *testing.T) {
	f, x, log := newFrame(t, Config{})
	x.serve = func(http.ResponseWriter) error { panic("index out of range") }
	if got := ask(f, "GET"); got.Code != 500 || got.Body.String() != "internal" || !strings.Contains(log.String(), "index out of range") {
		t.Errorf("answered %d %s, log %s", got.Code, got.Body, log)
	}
	for _, reason := range []any{"too late", http.ErrAbortHandler} {
		x.serve = func(w http.ResponseWriter) error { w.WriteHeader(200); panic(reason) }
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("an answer that has begun ends with %v", got)
				}
			}()
			ask(f, "GET")
		}()
	}
}

// A request whose context ends is answered only if somebody is there to hear: not when the client
// has left, but when it is the yard that gave up on stopping, or a body that did not come in time.
func TestEndedRequests(t *testing.T) {
	stopping, stop := context.WithCancel(context.Background())
	f, x, _ := newFrame(t, Config{Stopping: stopping})
	ended, end := context.WithCancel(t.Context())
	end()
	gone := func(r *http.Request) { *r = *r.WithContext(ended) }
	x.serve = func(http.ResponseWriter) error { return context.Canceled }
	if got := ask(f, "GET", gone); got.Code != StatusClientGone || got.Body.Len() != 0 || x.ended.Status() != StatusClientGone {
		t.Errorf("a client that left was answered %d %s", got.Code, got.Body)
	}
	x.serve = func(http.ResponseWriter) error { return &Refusal{Status: 408, Code: "slow"} }
	testkit.Equal(t, ask(f, "GET", gone).Code, 408, "a client that was slow was answered")
	x.serve = func(http.ResponseWriter) error { return context.Canceled }
	stop()
	if got := ask(f, "GET", gone); got.Code != 503 || got.Body.String() != "outcome-unknown" {
		t.Errorf("a client of a stopping yard was answered %d %s", got.Code, got.Body)
	}
}

// A request goes to the first API that serves it, and what nobody serves is not found.
func TestTheFirstAPIThatServesGetsTheRequest(t *testing.T) {
	page := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				panic("no coffee")
			}
			_, _ = w.Write([]byte(text))
		})
	}
	beneath := func(prefix string) func(*http.Request) bool {
		return func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, prefix) }
	}
	row := Route{Method: "GET", Path: "/a", Need: Open("a test")}
	post := Route{Method: "POST", Path: "/a", Need: Open("a test")}
	f := New(Config{Log: slog.New(slog.DiscardHandler)}, Plain("one", beneath("/a"), page("one"), row, post), Plain("two", beneath("/a/b"), page("two"), row), Plain("three", beneath("/c"), page("three"), row))
	for path, want := range map[string]string{"/a/b": "one", "/c": "three", "/d": "404 page not found\n"} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		testkit.Equal(t, w.Body.String(), want, "%s was answered %q", path, w.Body)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("POST", "/a", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "coffee") {
		t.Errorf("a panic was answered %d %s", w.Code, w.Body)
	}
	if all := f.Routes(); len(all) != 4 || all[3].API != "three" {
		t.Errorf("the table is %v", all)
	}
	for method, status := range map[string]int{"HEAD": 200, "BREW": 405, "DELETE": 405, "OPTIONS": 405} { // R1
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(method, "/a", nil))
		testkit.Equal(t, w.Code, status, method)
		if status == 405 {
			testkit.Equal(t, w.Header().Get("Allow"), "GET, POST", method)
		}
	}
}

// A route that does not say what it needs would let everybody in: it is never served.
func TestEveryRouteSaysWhatItNeeds(t *testing.T) {
	for want, route := range map[string]Route{
		"does not say what it needs":              {Method: "GET", Path: "/a"},
		"is open to all and does not say why":     {Method: "GET", Path: "/a", Need: Open("")},
		"has no method or no path":                {Path: "/a", Need: Of(Any)},
		"route GET /a of test does not say what ": {Method: "GET", Path: "/a"},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("%+v: %q", route, got)
				}
			}()
			New(Config{}, API{Name: "test", Routes: []Route{route}})
		}()
	}
}

func TestNeedsInWords(t *testing.T) {
	for want, need := range map[string]Need{
		"undeclared":                 {},
		"nothing":                    Open("a test"),
		"any token":                  Of(Any),
		"any right to the namespace": Of(Namespace),
		"Send or Listen to the hub":  Of(Hub, auth.Send, auth.Listen),
		"Send to the namespace, or a key of the topic": {Reach: Namespace, OneOf: []auth.Rights{auth.Send}, TopicKey: true},
		"Manage to the namespace, or a signature for the account with one of wc": {
			Reach: Namespace, OneOf: []auth.Rights{auth.Manage}, Permissions: "wc", Account: true},
	} {
		testkit.Equal(t, need.String(), want, "%+v", need)
	}
}

// What is left of a body is read for who was let in, and not for others.
func TestDrain(t *testing.T) {
	body := strings.NewReader("the rest")
	c := &Call{R: httptest.NewRequest("POST", "/", body)}
	if c.Drain(); body.Len() == 0 {
		t.Error("the body of a stranger was read")
	}
	c.Admitted = true
	if c.Drain(); body.Len() != 0 {
		t.Errorf("%d bytes were left", body.Len())
	}
}

// R1: whatever listener and protocol a request came by, its Host is a host and a port and nothing
// else, before anybody reads a topic or an account from it, or compares a scope with it.
func TestHostIsAHost(t *testing.T) {
	plain := func(a *API) {
		*a = Plain("plain", nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }), a.Routes...)
	}
	open, _, _ := newFrame(t, Config{})
	own, _, _ := newFrame(t, Config{}, plain)
	for _, tt := range []struct {
		host   string
		status int
	}{
		{"", 200}, {"localhost", 200}, {"LocalHost.:8080", 200}, {"yard.example.com:443", 200}, {"my_yard:8080", 200}, {"xn--hte-0ma.example", 200},
		{"127.0.0.1", 200}, {"[::1]:8080", 200}, {"[2001:db8::1]", 200}, {"yard:", 200}, {"a.b", 200},

		{"yard/topics/orders/api/events?", 400}, {"yard?x", 400}, {"yard#x", 400}, {"yard/", 400}, {"/yard", 400}, {"yard\\x", 400},
		{"user@yard", 400}, {"user:key@yard", 400}, {"yard:80/x", 400}, {"yard:x", 400}, {"yard:0", 400}, {"yard:65536", 400}, {"yard:+80", 400},
		{"yard:1:2", 400}, {"::1", 400}, {"[::1", 400}, {"::1]", 400}, {"[::1]x", 400}, {"[::1%eth0]", 400}, {"[fe80::1%/topics/orders?]", 400}, {"[127.0.0.1]", 400},
		{"yard..example", 400}, {".yard", 400}, {".", 400}, {"yard example", 400}, {"yard,other", 400}, {"yard%2fx", 400}, {"hütte.example", 400},
		{"yard\r\nx", 400}, {"yard\x00", 400}, {strings.Repeat("a", 260), 400},
	} {
		t.Run(tt.host, func(t *testing.T) {
			to := func(r *http.Request) { r.Host = tt.host }
			if got := ask(open, "GET", to); got.Code != tt.status || got.Code == 400 && got.Body.String() != "invalid-host" {
				t.Errorf("answered %d %s", got.Code, got.Body)
			}
			testkit.Equal(t, ask(own, "GET", to).Code, tt.status, "by an API that guards itself")
		})
	}
}
