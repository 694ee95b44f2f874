package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

var points = flag.Int("console.points", 2, "how many points a chart has before the pictures are looked at; there is one in five seconds")

// work keeps a yard busy until the test ends: a hub with workers, a function that fails and a webhook
// that is not well.
func (y *yard) work(t *testing.T) {
	t.Helper()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(refuses.Close)
	y.Hub(t, "wide", 300)
	testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{Name: "alarm-company", Topic: "shop", Endpoint: new(refuses.URL), SkipValidation: new(true)})))
	testkit.Must(t, testkit.Err(y.client.CreateFunction(t.Context(), admin.FunctionRequest{Name: "score", Hub: "orders", Endpoint: new(refuses.URL), Breaker: new("5/30s"), Retries: new(admin.Retries(0))})))
	for _, id := range []string{"one", "two"} {
		y.worker(t, id)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		y.publish(ctx)
	}()
}

// publish sends some events a second, more of one key than of others.
func (y *yard) publish(ctx context.Context) {
	topic, _ := y.client.Topic(ctx, "shop") // it was made
	clock := time.NewTicker(100 * time.Millisecond)
	defer clock.Stop()
	for i := 0; ; i++ {
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
		event, _ := admin.Event{Body: fmt.Appendf(nil, `{"order":%d,"total":42}`, i)}.Encode() // it can be
		key := "often"
		if i%2 == 0 {
			key = fmt.Sprint("key-", i)
		}
		batch := admin.Batch{Events: []json.RawMessage{event, event, event}, Key: key}
		_, _ = y.client.Send(ctx, "orders", batch)
		_, _ = y.client.Send(ctx, "wide", batch)
		if i%5 == 0 {
			y.publishTo(ctx, topic, i)
		}
	}
}

// publishTo sends one event to a topic.
func (y *yard) publishTo(ctx context.Context, to admin.Topic, i int) {
	body := fmt.Sprintf(`[{"specversion":"1.0","id":"%d","source":"/shop","type":"order.placed","data":{}}]`, i)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, strings.NewReader(body))
	if err != nil || to.Keys == nil {
		return
	}
	r.Header.Set("Content-Type", "application/cloudevents-batch+json")
	r.Header.Set("aeg-sas-key", to.Keys.Key1)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
	}
}

// pictured are pages with pictures, plain all others, but for those that tests of their own look at.
var (
	pictured = []string{"", "hubs/orders", "hubs/wide", "hubs/orders/events", "hubs/orders/groups/billing", "topics/shop", "topics/shop/subscriptions/alarm-company", "functions/score", "hubs/wide?page=1&span=2h"}
	plain    = []string{
		"hubs", "hubs/orders/partitions/0/events/0", "hubs/orders/groups", "hubs/orders/groups/billing/move", "hubs/orders/access", "hubs/orders/connect", "hubs/orders/connect?lang=java", "hubs/orders/settings",
		"topics", "topics/shop/publish", "functions", "access", "storage", "more", "new/hub", "new/subscription",
	}
)

// V1, V3, V4: each page of a yard that works and is not well is whole at a desk by day and on a phone by night:
// the browser has nothing to say against it, nobody is kept out, and nothing is scrolled sideways, also at widths
// between, and a finger meets what can be pressed; and a chart goes on by itself.
func TestPages(t *testing.T) {
	y := newYard(t)
	y.furnish(t)
	y.work(t)
	chart := newPage(t, y.base, 1280, "light")
	chart.open("/console/hubs/orders")
	chart.run("remember the line", evaluate(`window.drawn = document.getElementById("flow-published")?.getAttribute("d") ?? ""; 0`))
	checkPages(t, y, plain...)
	chart.await("a line that goes on", fmt.Sprintf(`(() => {
		const d = document.getElementById("flow-published")?.getAttribute("d") ?? "";
		return d.length > 20 && d !== window.drawn && d.split(" ").length >= %d;
	})()`, 2**points))
	checkPages(t, y, pictured...)
	for _, path := range pictured {
		chart.open("/console/" + path)
		for _, width := range []int64{360, 820, 1024} {
			var wide []string
			chart.run("another width", chromedp.EmulateViewport(width, 900), chromedp.Evaluate(tooWide, &wide))
			testkit.That(t, len(wide) == 0, "/console/%s has to be scrolled sideways at %d because of %q", path, width, wide)
			if width == 360 {
				chart.checkTargets(path)
			}
		}
	}
}
