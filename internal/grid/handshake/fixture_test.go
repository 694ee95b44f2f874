package handshake

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

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
