package webhook

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

const topic = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/yard/providers/Microsoft.EventGrid/topics/orders"

// eventGrid, cloudEvent and custom are stored events.
func eventGrid(n int) *pending.Delivery {
	return packed(n, schema.EventGridForm, fmt.Sprintf(`{"id":"e%d","subject":"orders/%d","eventType":"order.placed","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1.%d","data":{"total":%d,"region":"eu"}}`, n, n, n, n))
}

func cloudEvent(n int) *pending.Delivery {
	return packed(n, schema.CloudEventForm, fmt.Sprintf(`{"specversion":"1.0","id":"c%d","source":"/shop","type":"order.placed","subject":"grüße","time":"2026-01-02T03:04:05Z","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","priority":5,"datacontenttype":"application/json","data":{"total":%d,"region":"eu"}}`, n, n))
}

func custom(n int) *pending.Delivery {
	return packed(n, schema.EventGridForm, fmt.Sprintf(`{"id":"x%d","subject":"none","eventType":"order","eventTime":"2026-01-02T03:04:05Z","data":{"orderId":"o%d", "at" : 5}}`, n, n))
}

func packed(n int, form schema.Form, event string) *pending.Delivery {
	return &pending.Delivery{
		Subscription: "abcdefghijklm", Source: "nopqrstuvwxyz", Sequence: int64(n), Form: form, Event: []byte(event),
		Published: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// receiver keeps what it was sent, and answers as told.
type receiver struct {
	url    string
	answer http.HandlerFunc

	mu     sync.Mutex
	got    []*http.Request // guarded by mu
	bodies [][]byte        // guarded by mu
}

func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.got = append(r.got, q)
	r.bodies = append(r.bodies, body)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, q)
	}
}

// last gives the newest request.
func (r *receiver) last(t testing.TB) (*http.Request, []byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		t.Fatal("no request came")
	}
	return r.got[len(r.got)-1], r.bodies[len(r.bodies)-1]
}

// dump writes a request as it came, with what differs from run to run left out.
func (r *receiver) dump(t testing.TB) []byte {
	t.Helper()
	q, body := r.last(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", q.Method, q.RequestURI)
	var names []string
	for name := range q.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, q.Header[name])
	}
	fmt.Fprintf(&b, "\n%s\n", body)
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		testkit.Must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Diff(t, string(want), string(got))
}

func newClient(t testing.TB, cfg egress.Config) *egress.Client {
	t.Helper()
	c, err := egress.New(cfg)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

func newSender(t testing.TB) *Sender {
	t.Helper()
	return New(Config{Client: newClient(t, egress.Config{Loopback: true}), Origin: "yard.example"})
}

// subscription is one to a webhook, changed as wanted.
func subscription(url string, output schema.Kind, change func(*topics.Settings)) *topics.Subscription {
	s := &topics.Subscription{Name: "Billing-1", ID: "abcdefghijklm", Source: topics.Source{Topic: "orders"}, Settings: topics.Settings{
		Webhook: &egress.Endpoint{URL: url}, Output: output,
	}}
	if change != nil {
		change(&s.Settings)
	}
	return s
}

func prepare(t testing.TB, c *Sender, s *topics.Subscription) *Order {
	t.Helper()
	o, err := c.Prepare(s, topic)
	testkit.Must(t, err)
	return o
}
