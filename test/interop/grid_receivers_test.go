//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// functionApp receives by the conventions of Azure Functions' trigger for Event Grid: the function
// is named in the query; aeg-event-type decides, for CloudEvents too; a body is one event or an
// array of them; a success is 202, and the answer to the validation event is JSON that calls itself
// text.
type functionApp struct {
	function string

	mu     sync.Mutex
	events []object // guarded by mu
	kinds  []string // guarded by mu: aeg-event-type of each request
}

func (f *functionApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind := r.Header.Get("aeg-event-type")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds = append(f.kinds, kind)
	switch {
	case r.URL.Query().Get("functionName") != f.function || r.URL.Query().Get("code") != "host key":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "cannot find function: '%s'", r.URL.Query().Get("functionName"))
	case strings.EqualFold(kind, "SubscriptionValidation"):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, `{"validationResponse":%q}`, validationCode(body))
	case strings.EqualFold(kind, "Notification"):
		f.run(w, body)
	case strings.EqualFold(kind, "Unsubscribe"):
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// run has f.mu held.
func (f *functionApp) run(w http.ResponseWriter, body []byte) {
	var events []object
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '{' {
		body = slices.Concat([]byte{'['}, body, []byte{']'})
	}
	if err := json.Unmarshal(body, &events); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	f.events = append(f.events, events...)
	w.WriteHeader(http.StatusAccepted)
}

func (f *functionApp) await(t *testing.T, n int) []object {
	t.Helper()
	var got []object
	eventually(t, func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		if got = slices.Clone(f.events); len(got) >= n {
			return ""
		}
		return fmt.Sprintf("%d of %d events came", len(got), n)
	})
	return got
}

// TestGridFunctions delivers to a receiver that works like Azure Functions. // G11, G12
func TestGridFunctions(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders, clouds := y.topic(t, "orders", "eventgrid"), y.topic(t, "clouds", "cloudevents")
	app := &functionApp{function: "Bill Orders"}
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	at := server.URL + "/runtime/webhooks/EventGrid?functionName=Bill%20Orders&code=host%20key"

	if said := y.refuses(t, "subscription", "create", "wrong", "--topic", "orders", "--endpoint", server.URL+"/runtime/webhooks/EventGrid?functionName=Other"); !strings.Contains(said, "404") {
		t.Errorf("a function that is not there was said to be %s", said)
	}
	y.subscribe(t, "orders", "single", at)
	y.subscribe(t, "orders", "batched", at, "--max-events", "10")
	// Functions know no OPTIONS: CloudEvents are trusted to be welcome there.
	if said := y.refuses(t, "subscription", "create", "asked", "--topic", "clouds", "--endpoint", at); !strings.Contains(said, "skip-validation") && !strings.Contains(said, "skipValidation") {
		t.Errorf("without advice: %s", said)
	}
	y.subscribe(t, "clouds", "cloud", at, "--skip-validation")
	y.publish(t, orders, "application/json", gridEvents("1", "2", "3"))
	y.publish(t, clouds, "application/cloudevents+json", cloudEvent("4"))

	seen := map[string]int{}
	for _, e := range app.await(t, 7) {
		seen[fmt.Sprint(e["id"], " ", e["eventType"], e["type"])]++
	}
	want := map[string]int{"1 order.placed<nil>": 2, "2 order.placed<nil>": 2, "3 order.placed<nil>": 2, "4 <nil>order.placed": 1}
	testkit.Equal(t, fmt.Sprint(seen), fmt.Sprint(want), "the function ran for %v, want %v", seen, want)
	for _, name := range []string{"single", "batched", "cloud"} {
		y.eventuallyShown(t, name, func(s admin.Subscription) bool {
			return s.Stats.Delivered == s.Stats.Matched && s.Stats.Matched > 0 && len(s.Stats.Failed) == 0
		})
	}
	y.do(t, "subscription", "delete", "single", "--yes") // it is told, and answers 400: it knows only another word for it
}

// viewer receives as Microsoft's sample viewer does: a body that is an object with a specversion is
// a CloudEvent, everything else has to be an array; without aeg-event-type it is a bad request;
// OPTIONS is agreed to by repeating the origin.
type viewer struct {
	mu    sync.Mutex
	shown []string // guarded by mu
}

func (v *viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		w.Header().Set("WebHook-Allowed-Rate", "*")
		w.Header().Set("WebHook-Allowed-Origin", r.Header.Get("WebHook-Request-Origin"))
		return
	}
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch r.Header.Get("aeg-event-type") { // in exactly this case
	case "SubscriptionValidation":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"validationResponse":%q}`, validationCode(body))
	case "Notification":
		if err := v.show(body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// show has v.mu held.
func (v *viewer) show(body []byte) error {
	var cloud struct{ ID, Type, Source, Time, SpecVersion string }
	if json.Unmarshal(body, &cloud) == nil && cloud.SpecVersion != "" {
		v.shown = append(v.shown, fmt.Sprintf("cloud %s %s %s", cloud.ID, cloud.Type, cloud.Source))
		return nil
	}
	var events []struct{ ID, EventType, Subject, EventTime string }
	if err := json.Unmarshal(body, &events); err != nil {
		return err
	}
	for _, e := range events {
		v.shown = append(v.shown, fmt.Sprintf("grid %s %s %s", e.ID, e.EventType, e.Subject))
	}
	return nil
}

// TestGridViewer delivers to a receiver that works like Microsoft's sample viewer, also what is
// turned into a CloudEvent on its way. // G2, G9, G11, G12
func TestGridViewer(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders, clouds := y.topic(t, "orders", "eventgrid"), y.topic(t, "clouds", "cloudevents")
	v := &viewer{}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	at := server.URL + "/api/updates"
	y.subscribe(t, "orders", "as-they-are", at)
	y.subscribe(t, "orders", "as-clouds", at, "--schema", "cloudevents")
	y.subscribe(t, "clouds", "clouds", at)
	y.publish(t, orders, "application/json", gridEvents("1"))
	y.publish(t, clouds, "application/cloudevents-batch+json; charset=utf-8", "["+cloudEvent("2")+","+cloudEvent("3")+"]")
	want := []string{
		"cloud 1 order.placed " + orders.Resource, "cloud 2 order.placed /shops/1", "cloud 3 order.placed /shops/1", "grid 1 order.placed /shops/1",
	}
	eventually(t, func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		if got := slices.Sorted(slices.Values(v.shown)); !slices.Equal(got, want) {
			return fmt.Sprintf("shown %q, want %q", got, want)
		}
		return ""
	})
}

// TestGridSubscribersToComeLater subscribes to a topic that has events already, while more come.
// G1
func TestGridSubscribersToComeLater(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders := y.topic(t, "orders", "eventgrid")
	y.publish(t, orders, "application/json", gridEvents("old"))
	later, start := newHook(t, nil), newHook(t, nil)
	y.subscribe(t, "orders", "later", later.URL)
	y.subscribe(t, "orders", "start", start.URL, "--from-start")
	y.publish(t, orders, "application/json", gridEvents("new"))
	if got := later.await(t, 1); read[[]object](t, got[0].body)[0]["id"] != "new" {
		t.Errorf("who came later got %s", got[0].body)
	}
	start.await(t, 2)
	y.do(t, "subscription", "delete", "later", "--yes")
	y.do(t, "subscription", "delete", "start", "--yes")
	again := newHook(t, nil)
	y.subscribe(t, "orders", "again", again.URL)
	y.publish(t, orders, "application/json", gridEvents("newest"))
	if got := again.await(t, 1); read[[]object](t, got[0].body)[0]["id"] != "newest" {
		t.Errorf("who came last got %s", got[0].body)
	}
}
