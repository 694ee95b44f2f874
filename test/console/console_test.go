package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/test/parts"
)

// workerVariable makes this binary a worker, with the connection string that it holds.
const workerVariable = "EVENTYARD_TEST_CONSOLE_WORKER"

func TestMain(m *testing.M) {
	if connection := os.Getenv(workerVariable); connection != "" {
		if err := work(connection, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// lease is how long a dead worker keeps its partitions.
const lease = 3 * time.Second

// work reads until it is killed.
func work(connection, id string) error {
	ctx := context.Background()
	client, err := hub.Dial(ctx, connection, hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	p := processor.New(client.Hub("orders"), processor.Config{Group: "billing", ID: id, Lease: lease})
	return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error { return b.Checkpoint(ctx) })
}

// yard is a real one with one of everything.
type yard struct {
	*servertest.Yard
	client *admin.Client
	base   string
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{Yard: servertest.Start(t, servertest.Listeners)}
	y.base = y.Addresses()["http"]
	y.client = testkit.Value(admin.New(admin.Config{Server: y.base, ConnectionString: y.ConnectionString()}))(t)
	t.Cleanup(y.client.Close)
	y.Hub(t, "orders", 4, "billing")
	return y
}

// furnish adds topics, functions and events.
func (y *yard) furnish(t *testing.T) {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(endpoint.Close)
	for _, body := range []string{`{"total":42}`, "hello", strings.Repeat("long ", 400)} {
		testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, body)})))
	}
	testkit.Must(t, testkit.Err(y.client.CreateTopic(t.Context(), admin.TopicRequest{Name: "shop", Schema: "cloudevents"})))
	testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{Name: "mailer", Topic: "shop", Endpoint: new(endpoint.URL), SkipValidation: new(true)})))
	testkit.Must(t, testkit.Err(y.client.CreateFunction(t.Context(), admin.FunctionRequest{Name: "resize", Hub: "orders", Endpoint: new(endpoint.URL)})))
}

func eventsOf(t *testing.T, body string) []json.RawMessage {
	t.Helper()
	return []json.RawMessage{testkit.Value(admin.Event{Body: []byte(body)}.Encode())(t)}
}

// V1, V3, V4: each page is whole at a desk by day and on a phone by night: the browser has nothing to
// say against it, nobody is kept out, and nothing is scrolled sideways.
func TestPages(t *testing.T) {
	axe := parts.Axe(t)
	y := newYard(t)
	y.furnish(t)
	for _, screen := range screens() {
		t.Run(screen.String(), func(t *testing.T) {
			p := newPage(t, y.base, screen.width, screen.scheme)
			for _, path := range []string{
				"", "hubs", "hubs/orders", "hubs/orders/events", "hubs/orders/partitions/0/events/0", "hubs/orders/groups", "hubs/orders/groups/billing",
				"hubs/orders/groups/billing/move", "hubs/orders/access", "hubs/orders/settings", "topics", "topics/shop", "topics/shop/subscriptions/mailer",
				"functions", "functions/resize", "access", "storage", "more", "new/hub", "new/subscription",
			} {
				p.open("/console/" + path)
				p.check(axe, path+"-"+screen.String())
			}
		})
	}
}

// V1: a hub is made, sent to, and deleted, all by pages.
func TestAHubByItsPages(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/new/hub")
	p.fill(map[string]string{"name": "made", "partitions": "2"})
	p.press(`button[value="act"]`, "Created.")
	testkit.Equal(t, testkit.Value(y.client.Hub(t.Context(), "made"))(t).Partitions, 2)
	p.open("/console/hubs/made/send")
	p.fill(map[string]string{"body": `{"from":"a page"}`})
	p.press(`button[value="act"]`, "1 event was stored.")
	testkit.That(t, strings.Contains(p.text(), "a page"), "the event is not among those of the hub:\n%s", p.text())
	p.open("/console/hubs/made/delete")
	p.fill(map[string]string{"name": "made"})
	p.press(`button[value="act"]`, "Deleted.")
	testkit.That(t, testkit.Err(y.client.Hub(t.Context(), "made")) != nil, "the hub is still there")
}

// P6, V4: the partitions of a worker that is killed are with the others as soon as its leases have run
// out, on a page that nobody has loaded again.
func TestOwnershipMovesOnThePage(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	workers := map[string]*exec.Cmd{}
	for _, id := range []string{"one", "two"} {
		workers[id] = y.worker(t, id)
	}
	p.open("/console/hubs/orders/groups/billing")
	owns := func(id string, n int) string {
		return fmt.Sprintf(`document.querySelectorAll('[data-instance="%s"] .chip:not(.coming):not(.going)').length === %d`, id, n)
	}
	p.await("two partitions each", owns("one", 2)+" && "+owns("two", 2))
	p.run("mark the page", evaluate(`window.marked = true; 0`))
	testkit.Must(t, workers["two"].Process.Kill())
	p.await("all partitions with the one that is left", owns("one", 4))
	p.await("the page that was marked", `window.marked === true`)
}

// worker starts a process that reads.
func (y *yard) worker(t *testing.T, id string) *exec.Cmd {
	t.Helper()
	return startWorker(t, y.ConnectionString(), id)
}

func startWorker(t *testing.T, connection, id string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], id)
	c.Env = append(os.Environ(), workerVariable+"="+connection)
	c.Stderr = t.Output()
	testkit.Must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}
