package handshake

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

var _ topics.Validator = (*Asker)(nil)

// hanging is a transport whose first requests are never answered; the others are, by a handler.
type hanging struct {
	hangs   int
	handler http.HandlerFunc
	asked   []time.Time
	closed  int
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked = append(h.asked, time.Now())
	if len(h.asked) <= h.hangs {
		<-r.Context().Done()
		h.closed++
		return nil, context.Cause(r.Context())
	}
	w := httptest.NewRecorder()
	h.handler(w, r)
	return w.Result(), nil
}

// G11: a time-out ends the try, and after 5 s it is asked again, several times.
func TestTimeOutsAreTriedAgain(t *testing.T) {
	for name, x := range map[string]struct {
		output schema.Kind
		hangs  int
		agreed bool
		tries  int
		took   time.Duration
	}{
		"the event, answered at the second try": {schema.EventGrid, 1, true, 2, 35 * time.Second},
		"the event, answered at the last try":   {schema.Custom, 2, true, 3, 70 * time.Second},
		"the event, never answered":             {schema.EventGrid, 9, false, 3, 100 * time.Second},
		"OPTIONS, answered at the second try":   {schema.CloudEvents, 1, true, 2, 35 * time.Second},
		"OPTIONS, never answered":               {schema.CloudEvents, 9, false, 3, 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hanging{hangs: x.hangs, handler: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("WebHook-Allowed-Origin", "*")
					io.WriteString(w, `{"validationResponse":"`+code+`"}`)
				}}
				a := newAsker(t, egress.Config{Transport: h})
				began := time.Now()
				got := a.Validate(t.Context(), subscription("http://receiver.example/", x.output), topic, code, link)
				if got.Agreed != x.agreed || got.Awaiting || time.Since(began) != x.took || len(h.asked) != x.tries || h.closed != min(x.hangs, x.tries) {
					t.Errorf("after %v and %d tries (%d ended): %+v", time.Since(began), len(h.asked), h.closed, got)
				}
				if !x.agreed && !strings.Contains(got.Why, "no answer within 30s") {
					t.Errorf("why: %s", got.Why)
				}
			})
		})
	}
}

func TestWhoAsksMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{hangs: 9}
		a := newAsker(t, egress.Config{Transport: h})
		for _, after := range []time.Duration{10 * time.Second, 32 * time.Second} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("the operator left"))
			began := time.Now()
			got := a.Validate(ctx, subscription("http://receiver.example/", schema.EventGrid), topic, code, link)
			cancel()
			if got.Agreed || got.Awaiting || time.Since(began) != after || !strings.Contains(got.Why, "the operator left") {
				t.Errorf("after %v: %+v", time.Since(began), got)
			}
		}
	})
}

// What fails otherwise is told at once.
func TestOtherFailuresAreNotTriedAgain(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, output := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
		a := newAsker(t, egress.Config{Loopback: true})
		got := a.Validate(t.Context(), subscription(gone.URL, output), topic, code, link)
		if got.Agreed || got.Awaiting || !strings.Contains(got.Why, "did not answer") {
			t.Errorf("%s: %+v", output, got)
		}
		guarded := newAsker(t, egress.Config{})
		got = guarded.Validate(t.Context(), subscription(gone.URL, output), topic, code, link)
		if got.Agreed || got.Awaiting || !strings.Contains(got.Why, "grid.allow") {
			t.Errorf("%s: %+v", output, got)
		}
	}
}

// G11: what is advised is what helps: not to ask helps nobody whose endpoint cannot be sent anything.
func TestAdviceGoesByTheCause(t *testing.T) {
	agrees := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("WebHook-Allowed-Origin", "*") })
	secure, plain := httptest.NewUnstartedServer(agrees), httptest.NewServer(agrees)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs who hangs up
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	says := func(text string) string {
		return newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusBadRequest) }).url
	}
	named := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	for name, test := range map[string]struct{ url, ca, want string }{
		"an authority that is not known":  {secure.URL, "", "give the certificate of its authority by ca (--endpoint-ca FILE), or set skipVerify (--endpoint-skip-verify)"},
		"another name in the certificate": {named, authority, "name the endpoint as its certificate does, or set skipVerify (--endpoint-skip-verify)"},
		"https to a plain port":           {strings.Replace(plain.URL, "http:", "https:", 1), "", "it answers without TLS: write http://"},
		"https to another protocol":       {"https://" + greets(t, "220 mail.example.com ESMTP\r\n"), "", "it does not speak TLS: give the port of its HTTPS"},
		"http to another protocol":        {"http://" + greets(t, "220 mail.example.com ESMTP\r\n\r\n"), "", "give the port of its HTTP"},
		"http to a port of Go with TLS":   {strings.Replace(secure.URL, "https:", "http:", 1), "", "that port has TLS: write https:// in place of http://"},
		"http to one of nginx":            {says("<title>400 The plain HTTP request was sent to HTTPS port</title>"), "", "write https://"},
		"http to one of Apache":           {says("You're speaking plain HTTP to an SSL-enabled server port."), "", "write https://"},
	} {
		for _, output := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
			t.Run(name+", "+string(output), func(t *testing.T) {
				s := subscription(test.url, output)
				s.Webhook.CA = test.ca
				got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link)
				testkit.That(t, !got.Agreed && !got.Awaiting && strings.Contains(got.Why, test.want), "why: %s", got.Why)
				for _, useless := range []string{"skipValidation", "give it a key"} {
					testkit.That(t, !strings.Contains(got.Why, useless), "%s does not help: %s", useless, got.Why)
				}
			})
		}
	}
}

// greets is the address of somebody who says the same to everybody, and hangs up.
func greets(t *testing.T, text string) string {
	t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestWhoIsNotAskedHasAgreed(t *testing.T) {
	a := newAsker(t, egress.Config{})
	trusted := subscription("http://10.0.0.1/", schema.EventGrid)
	trusted.SkipValidation = true
	for name, s := range map[string]topics.Subscription{
		"trusted": trusted,
		"a hub":   {Settings: topics.Settings{Hub: "orders"}},
		"pull":    {Settings: topics.Settings{Pull: &topics.Pull{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.Validate(t.Context(), s, topic, code, link); !got.Agreed {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic  = "/subscriptions/x/resourceGroups/yard/providers/Microsoft.EventGrid/topics/orders"
	code   = "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"
	link   = "https://yard.example/validate?id=1&token=t"
	origin = "yard.example"
)

// endpoint is a receiver that answers as told and keeps what it got.
type endpoint struct {
	url    string
	answer http.HandlerFunc

	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
}

func newEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{answer: answer}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.got = append(e.got, r)
	e.bodies = append(e.bodies, body)
	e.mu.Unlock()
	e.answer(w, r)
}

// only gives the one request that came.
func (e *endpoint) only(t *testing.T) (*http.Request, []byte) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	testkit.MustEqual(t, len(e.got), 1, "requests came")
	return e.got[0], e.bodies[0]
}

func newAsker(t *testing.T, egressConfig egress.Config) *Asker {
	t.Helper()
	c, err := egress.New(egressConfig)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return New(Config{Client: c, Origin: origin})
}

// subscription is one to a webhook.
func subscription(url string, output schema.Kind) topics.Subscription {
	return topics.Subscription{Name: "billing", Source: topics.Source{Topic: "orders"}, State: topics.Active, Settings: topics.Settings{
		Webhook: &egress.Endpoint{URL: url}, Output: output,
	}}
}

// G11: the request that CloudEvents' webhooks expect.
func TestTheOptionsRequest(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("WebHook-Allowed-Origin", origin) })
	s := subscription(e.url+"/hook?code=secret", schema.CloudEvents)
	s.Rate = 1.99
	key, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	s.Keys = []signature.Key{key}
	s.Headers = []topics.Header{{Name: "X-Static", Value: "yes"}}
	if got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link); !got.Agreed {
		t.Fatalf("%+v", got)
	}
	r, body := e.only(t)
	if r.Method != "OPTIONS" || r.RequestURI != "/hook?code=secret" || len(body) > 0 {
		t.Errorf("%s %s %q", r.Method, r.RequestURI, body)
	}
	testkit.Check(t, signature.Verify(r.Header, body, []string{key.Text}, time.Now(), 0))
	for name, want := range map[string]string{
		"WebHook-Request-Origin": origin, "WebHook-Request-Callback": link, "WebHook-Request-Rate": "120", "X-Static": "yes", "aeg-event-type": "", "Origin": "",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, r.Header.Get(name), want, "%s", name)
		})
	}
}

func TestAnswersToOptions(t *testing.T) {
	for name, x := range map[string]struct {
		status        int
		allowed, rate string
		asked         float64 // requests a second
		want          string  // agreed, awaiting or what the refusal says
		wantRate      int
	}{
		"our origin":                           {200, origin, "", 0, "agreed", 0},
		"our origin in capitals":               {200, "YARD.example", "", 0, "agreed", 0},
		"every origin":                         {204, "*", "", 0, "agreed", 0},
		"a rate":                               {200, origin, "30", 0, "agreed", 30},
		"any rate":                             {200, origin, "*", 5, "agreed", 0},
		"less than was asked for":              {200, origin, "10", 5, "agreed", 10},
		"a rate was asked for, and none given": {200, origin, "", 5, "agreed", 300},
		"a rate that is none":                  {200, origin, "fast", 5, "agreed", 300},
		"a rate of nothing":                    {200, origin, "0", 0, "agreed", 0},
		"no header":                            {200, "", "", 0, "awaiting", 0},
		"a rate alone":                         {200, "", "10", 0, "awaiting", 0},
		"another origin":                       {200, "other.example", "", 0, `allows events from "other.example"`, 0},
		"it is not supported":                  {405, "", "", 0, "answered 405", 0},
		"it is refused all the same":           {403, "*", "", 0, "answered 403", 0},
		"a redirect":                           {307, "*", "", 0, "answered 307", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
				if x.allowed != "" {
					w.Header().Set("WebHook-Allowed-Origin", x.allowed)
				}
				if x.rate != "" {
					w.Header().Set("WebHook-Allowed-Rate", x.rate)
				}
				w.WriteHeader(x.status)
			})
			s := subscription(e.url, schema.CloudEvents)
			s.Rate = x.asked
			got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link)
			if got.Agreed != (x.want == "agreed") || got.Awaiting != (x.want == "awaiting") || got.Rate != x.wantRate {
				t.Errorf("%+v", got)
			}
			if !got.Agreed && !got.Awaiting && (!strings.Contains(got.Why, x.want) || !strings.Contains(got.Why, "WebHook-Allowed-Origin: "+origin)) {
				t.Errorf("why: %s", got.Why)
			}
			e.only(t)
		})
	}
}

// A hub's events are CloudEvents where nothing else is asked for.
func TestSubscriptionsToHubsAreAskedByOptions(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("WebHook-Allowed-Origin", "*") })
	s := subscription(e.url, "")
	s.Source = topics.Source{Hub: "orders"}
	if got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link); !got.Agreed {
		t.Errorf("%+v", got)
	}
	if r, _ := e.only(t); r.Method != "OPTIONS" {
		t.Errorf("it was asked by %s", r.Method)
	}
}
