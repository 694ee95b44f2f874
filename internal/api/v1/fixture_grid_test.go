package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/tracing"
)

// gridYard is a yard with a grid that runs. Whatever host is posted to, the hook answers.
type gridYard struct {
	*yard
	topics   *topics.Registry
	delivery *delivery.Service
	dead     *deadletter.Service
	hook     *hook
	traced   tracing.Context // the trace of what is published; zero: none
}

// withGrid runs a test in virtual time, with a grid that delivers.
func withGrid(t *testing.T, test func(t *testing.T, y *gridYard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := &gridYard{yard: openYard(t), hook: &hook{agrees: true}}
		y.openGrid()
		y.openHandler(withEndpoints, func(c *Config) { c.Grid = y.services() }, y.serveFunctions)
		test(t, y)
	})
}

func (y *gridYard) services() *Grid {
	return &Grid{
		Topics: y.topics, Delivery: y.delivery, Dead: y.dead,
		Endpoint: func(r *http.Request, topic string, tls bool) string {
			if tls {
				return "https://" + r.Host + ":8443/topics/" + topic + "/api/events"
			}
			return "http://" + r.Host + "/topics/" + topic + "/api/events"
		},
		ValidationURL: link,
	}
}

func link(s topics.Subscription, token string) string {
	return "http://yard/validate/" + s.ID + "/" + token
}

func (y *gridYard) openGrid() {
	t := y.t
	client, err := egress.New(egress.Config{Transport: y.hook, Log: y.log})
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	dead := deadletter.Config{Engine: y.Engine, Meta: y.Meta, Broker: y.broker, DataDir: t.TempDir(), Transport: y.hook, Delay: -1, Log: y.log}
	y.topics, err = topics.Open(t.Context(), topics.Config{
		Engine: y.Engine, Meta: y.Meta, Broker: y.broker, Log: y.log, ValidationURL: link,
		Validate:      handshake.New(handshake.Config{Client: client, Origin: "eventgrid.azure.net"}),
		CheckTarget:   dead.CheckTarget,
		CheckEndpoint: func(s topics.Subscription) error { return client.Check(*s.Webhook) },
	})
	testkit.Must(t, err)
	dead.Topics = y.topics
	y.dead, err = deadletter.Open(t.Context(), dead)
	testkit.Must(t, err)
	waiting, err := retrylog.Open(t.Context(), retrylog.Config{Engine: y.Engine, Meta: y.Meta, Ladder: retry.Ladder(), Log: y.log})
	testkit.Must(t, err)
	y.delivery, err = delivery.Open(t.Context(), delivery.Config{
		Meta: y.Meta, Topics: y.topics, Broker: y.broker, Dead: y.dead, RetryLogs: waiting, Log: y.log,
		Sender: webhook.New(webhook.Config{Client: client, Broker: y.broker, Origin: "eventgrid.azure.net"}),
	})
	testkit.Must(t, err)
	y.dead.RedriveTo(y.delivery.Redeliver)
	for _, run := range []func(context.Context) error{y.topics.Run, y.dead.Run, y.delivery.Run} {
		testkit.Run(t, run)
	}
}

// subscribe creates a subscription of a topic, which is made if need be; more is JSON beside its
// name.
func (y *gridYard) subscribe(topic, name, more string) admin.Subscription {
	y.t.Helper()
	if _, err := y.topics.Topic(topic); err != nil {
		y.want(http.StatusCreated, "POST", "/api/v1/topics", `{"name":"`+topic+`"}`)
	}
	made := read[admin.Subscription](y.t, y.want(http.StatusCreated, "POST", "/api/v1/subscriptions", `{"name":"`+name+`","topic":"`+topic+`",`+more+`}`))
	return made
}

func (y *gridYard) show(name, query string) (s admin.Subscription) {
	y.t.Helper()
	y.want(http.StatusOK, "GET", "/api/v1/subscriptions/"+name+query, nil).json(y.t, &s)
	return s
}

// publish stores events and lets the grid do what it does with them at once.
func (y *gridYard) publish(topic string, ids ...string) {
	y.t.Helper()
	var stored [][]byte
	for _, id := range ids {
		body := fmt.Sprintf(`[{"id":%q,"subject":"/s","eventType":"order.placed","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1","data":{"n":1}}]`, id)
		events, err := schema.Read(schema.Publication{
			Kind: schema.EventGrid, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), Now: time.Now(),
		})
		testkit.Must(y.t, err)
		stored = append(stored, events...)
	}
	y.settle() // what was changed before is known to all
	testkit.Must(y.t, y.topics.Publish(tracing.With(y.t.Context(), y.traced), topic, stored, nil))
	y.settle()
}

// settle lets everything end that needs no time to pass.
func (y *gridYard) settle() {
	time.Sleep(time.Second) // of the bubble's: some parts gather for a moment
	synctest.Wait()
}

// hook is every endpoint there is.
type hook struct {
	mu     sync.Mutex
	agrees bool // echoes the code of a handshake; guarded by mu
	status int  // of deliveries, zero: 200; guarded by mu
	got    []delivered
}

type delivered struct {
	url    string
	header http.Header
	body   string
}

func (h *hook) set(agrees bool, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agrees, h.status = agrees, status
}

// deliveries are those that came since it was asked last.
func (h *hook) deliveries() []delivered {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

func (h *hook) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Header.Get("aeg-event-type") == "SubscriptionValidation" {
		h.answer(w, body)
		return w.Result(), nil
	}
	h.got = append(h.got, delivered{r.URL.String(), r.Header.Clone(), string(body)})
	w.WriteHeader(max(h.status, http.StatusOK))
	fmt.Fprintf(w, "answer %d", max(h.status, http.StatusOK))
	return w.Result(), nil
}

func (h *hook) answer(w *httptest.ResponseRecorder, body []byte) {
	var asked []struct {
		Data struct {
			ValidationCode string `json:"validationCode"`
		} `json:"data"`
	}
	if h.status != 0 {
		w.WriteHeader(h.status)
	}
	if h.agrees && json.NewDecoder(bytes.NewReader(body)).Decode(&asked) == nil {
		fmt.Fprintf(w, `{"validationResponse":%q}`, asked[0].Data.ValidationCode)
	}
}
