package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// workerVariable makes this binary a worker, with the connection string that it holds.
const workerVariable = "EVENTYARD_TEST_CONSOLE_WORKER"

func TestMain(m *testing.M) {
	if connection := os.Getenv(workerVariable); connection != "" {
		if err := work(connection, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	failed := m.Run()
	if err := checkCovered(); err != nil && failed == 0 {
		fmt.Fprintln(os.Stderr, err)
		failed = 1
	}
	if err := removeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		failed = max(failed, 1)
	}
	os.Exit(failed)
}

// lease is how long a dead worker keeps its partitions.
const lease = 3 * time.Second

// work reads hub orders as an instance of a group until it is killed, or interrupted: then it gives back what it has.
func work(connection, group, id string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := hub.Dial(ctx, connection, hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	p := processor.New(client.Hub("orders"), processor.Config{Group: group, ID: id, Lease: lease})
	return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		if string(b.Events[0].Body) == slowBody {
			time.Sleep(slowWork) // and hears of nothing meanwhile
		}
		return b.Checkpoint(ctx)
	})
}

// slowBody is that of an event at which a worker works for a while, so that its partition is handed over slowly.
const (
	slowBody = "slow"
	slowWork = 4 * time.Second
)

// yard is a real one with one of everything.
type yard struct {
	*servertest.Yard
	client     *admin.Client
	base       string
	connection string // connection string
}

func newYard(t *testing.T, changes ...func(*server.Config)) *yard {
	t.Helper()
	y := newEmptyYard(t, changes...)
	y.Hub(t, "orders", 4, "billing")
	return y
}

// newEmptyYard is one in which nobody has made anything yet.
func newEmptyYard(t *testing.T, changes ...func(*server.Config)) *yard {
	t.Helper()
	y := &yard{Yard: servertest.Start(t, append(changes, servertest.Listeners)...)}
	y.base, y.connection = y.Addresses()["http"], y.ConnectionString()
	y.client = testkit.Value(admin.New(admin.Config{Server: y.base, ConnectionString: y.connection}))(t)
	t.Cleanup(y.client.Close)
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
	p.await("two partitions each", chips("one", 2)+" && "+chips("two", 2))
	p.run("mark the page", evaluate(`window.marked = true; 0`))
	testkit.Must(t, workers["two"].Process.Kill())
	p.await("all partitions with the one that is left", chips("one", 4))
	p.await("the page that was marked", `window.marked === true`)
}

// V4: a partition that is handed over is amber at both ends, as long as its owner ends its calls; and of all that
// happens when a worker is killed a screen reader hears one sentence.
func TestAHandoverIsSeenAndAKillIsSaidOnce(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	y.worker(t, "one")
	p.open("/console/hubs/orders/groups/billing")
	p.await("all partitions with the first", chips("one", 4))
	for _, partition := range testkit.Value(y.client.Hub(t.Context(), "orders"))(t).PartitionIDs {
		testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", admin.Batch{Partition: partition, Events: eventsOf(t, slowBody)})))
	}
	p.noteWhen(`document.querySelector('[data-instance="one"] .chip.going') && document.querySelector('[data-instance="two"] .chip.coming')`)
	two := y.worker(t, "two")
	p.noted("a partition that is amber at both ends")
	p.await("two partitions each", chips("one", 2)+" && "+chips("two", 2))
	const said = `document.getElementById("said").textContent`
	p.await("what is so now", said+` === "2 instances alive, each partition has an owner."`)
	p.run("listen", evaluate(`window.said = []; new MutationObserver(() => said.push(document.getElementById("said").textContent)).observe(document.getElementById("said"), {childList: true}); 0`))
	testkit.Must(t, two.Process.Kill())
	p.await("all partitions with the one that is left", chips("one", 4)+` && (window.leftAt ??= performance.now()) > 0`)
	p.await("what is said, and a while after", `window.said.length > 0 && performance.now() > window.leftAt + 6000`)
	p.await("one sentence", `window.said.join() === "1 instance alive, each partition has an owner."`)
}

// worker starts a process that reads.
func (y *yard) worker(t *testing.T, id string) *exec.Cmd {
	t.Helper()
	return startWorker(t, y.ConnectionString(), "billing", id)
}

func startWorker(t *testing.T, connection, group, id string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], group, id)
	c.Env = append(os.Environ(), workerVariable+"="+connection)
	c.Stderr = t.Output()
	testkit.Must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}
