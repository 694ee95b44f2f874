//go:build linux

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	ceclient "github.com/cloudevents/sdk-go/v2/client"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// cloudBox keeps what a receiver of CloudEvents' own library for Go got.
type cloudBox struct {
	mu  sync.Mutex
	got []event.Event // guarded by mu
}

func (b *cloudBox) put(events ...event.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, events...)
}

func (b *cloudBox) await(t *testing.T, n int) (got []event.Event) {
	t.Helper()
	eventually(t, func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		if got = slices.Clone(b.got); len(got) >= n {
			return ""
		}
		return fmt.Sprintf("%d of %d events came", len(got), n)
	})
	return got
}

// startCloudReceiver runs the library's own server. It agrees by the callback, as the library does
// where one is offered: not in the answer to OPTIONS, but by a request of its own.
func startCloudReceiver(t *testing.T, b *cloudBox) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p, err := cehttp.New(cehttp.WithListener(listener), cehttp.WithDefaultOptionsHandlerFunc([]string{http.MethodPost}, 6000, []string{"eventgrid.azure.net"}, true))
	testkit.Must(t, err)
	c, err := ceclient.New(p)
	testkit.Must(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		testkit.Check(t, c.StartReceiver(ctx, func(e event.Event) { b.put(e) }), "the receiver's end")
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return "http://" + listener.Addr().String() + "/"
}

// TestGridCloudEvents delivers to receivers made with CloudEvents' own library for Go: structured
// and binary to its server, batches to its functions for them. // G2, G9, G11
func TestGridCloudEvents(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	clouds, orders := y.topic(t, "clouds", "cloudevents"), y.topic(t, "orders", "eventgrid")
	structured, binary, mapped, batched := &cloudBox{}, &cloudBox{}, &cloudBox{}, &cloudBox{}
	for name, test := range map[string]struct {
		box  *cloudBox
		args []string
	}{
		"structured": {structured, []string{"--topic", "clouds"}},
		"binary":     {binary, []string{"--topic", "clouds", "--binary"}},
		"mapped":     {mapped, []string{"--topic", "orders", "--schema", "cloudevents", "--binary"}},
	} {
		y.do(t, append([]string{"subscription", "create", name, "--endpoint", startCloudReceiver(t, test.box)}, test.args...)...)
		shown := y.eventuallyShown(t, name, func(s admin.Subscription) bool { return s.State == "active" })
		testkit.Equal(t, shown.ValidationURL, "", "%s has still a link to agree", name)
	}
	y.subscribe(t, "clouds", "batched", batchReceiver(t, batched), "--max-events", "100")

	y.publish(t, clouds, "application/cloudevents-batch+json", "["+cloudEvent("1")+","+`{"specversion":"1.0","id":"2","source":"/cam","type":"photo","datacontenttype":"image/png","data_base64":"/wAB"}`+"]")
	publishBinary(t, clouds)
	// Without a data version: with one, Event Grid writes dataschema as #VERSION, and this library
	// takes nothing but absolute URIs there.
	y.publish(t, orders, "application/json", `[{"id":"4","subject":"/shops/1","eventType":"order.placed","eventTime":"2030-01-02T15:04:05Z","data":{"total":42}}]`)

	for name, box := range map[string]*cloudBox{"structured": structured, "binary": binary, "batched": batched} {
		t.Run(name, func(t *testing.T) { checkClouds(t, box.await(t, 3)) })
	}
	e := mapped.await(t, 1)[0]
	if e.ID() != "4" || e.Source() != orders.Resource || e.Type() != "order.placed" || e.Subject() != "/shops/1" || string(e.Data()) != `{"total":42}` || e.Time().Year() != 2030 {
		t.Errorf("what was mapped is %s", e)
	}
}

// batchReceiver reads batches with the library's functions; its server does not take them.
func batchReceiver(t *testing.T, b *cloudBox) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.Header().Set("WebHook-Allowed-Origin", "*")
			return
		}
		events, err := cehttp.NewEventsFromHTTPRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.put(events...)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// publishBinary sends an event in binary mode with the library.
func publishBinary(t *testing.T, topic admin.Topic) {
	t.Helper()
	e := event.New()
	e.SetID("3")
	e.SetSource("/meter")
	e.SetType("reading")
	e.SetExtension("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	testkit.Must(t, e.SetData(event.ApplicationJSON, map[string]int{"kWh": 7}))
	r, err := cehttp.NewHTTPRequestFromEvent(t.Context(), topic.Endpoint, e)
	testkit.Must(t, err)
	r.Header.Set("aeg-sas-key", topic.Keys.Key1)
	if status, body := fetch(t, http.DefaultClient, r); status != http.StatusOK {
		t.Fatalf("publish in binary mode: %d %s", status, body)
	}
}

func checkClouds(t *testing.T, got []event.Event) {
	t.Helper()
	want := map[string]string{
		"1": `/shops/1 order.placed application/json {"total":42}`, "2": "/cam photo image/png \xff\x00\x01", "3": `/meter reading application/json {"kWh":7}`,
	}
	for _, e := range got {
		if text := fmt.Sprintf("%s %s %s %s", e.Source(), e.Type(), e.DataContentType(), e.Data()); text != want[e.ID()] {
			t.Errorf("event %s is %q, want %q", e.ID(), text, want[e.ID()])
		}
		testkit.Check(t, e.Validate())
		extensions, _ := json.Marshal(e.Extensions())
		if e.ID() == "1" && string(extensions) != `{"mine":"kept"}` || e.ID() == "3" && e.Extensions()["traceparent"] != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
			t.Errorf("event %s has the extensions %s", e.ID(), extensions)
		}
		delete(want, e.ID())
	}
	if len(want) > 0 {
		t.Errorf("not delivered: %v", want)
	}
}
