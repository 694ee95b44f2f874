package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a real one, with a client that reaches it over the network, and a hub "h" of two
// partitions with the group "g".
type yard struct {
	*servertest.Yard
	client *hub.Client
	hub    *hub.Hub
}

func start(t *testing.T, changes ...func(*server.Config)) *yard {
	t.Helper()
	y := &yard{Yard: servertest.Start(t, append([]func(*server.Config){servertest.Listeners, withHub}, changes...)...)}
	y.client = y.dial(t, y.ConnectionString(), hub.Config{})
	y.hub = y.client.Hub("h")
	return y
}

func withHub(cfg *server.Config) {
	cfg.Hubs = []server.Hub{{Name: "h", Partitions: 2, Groups: []string{"g"}}}
}

func (y *yard) dial(t *testing.T, connectionString string, cfg hub.Config) *hub.Client {
	t.Helper()
	cfg.Log = y.Config.Log
	client, err := hub.Dial(t.Context(), connectionString, cfg)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, client.Close()) })
	return client
}

// quick is a client, and its hub, for a network that is down on purpose.
func (y *yard) quick(t *testing.T) (*hub.Client, *hub.Hub) {
	client := y.dial(t, y.ConnectionString(), hub.Config{Retry: quickly})
	return client, client.Hub("h")
}

func bounds(t *testing.T, h *hub.Hub, id string) hub.PartitionInfo {
	t.Helper()
	info, err := h.Partition(t.Context(), id)
	testkit.Must(t, err)
	return info
}

// at points a connection string at a listener.
func (y *yard) at(t *testing.T, listener string) auth.ConnectionString {
	t.Helper()
	c, err := auth.ParseConnectionString(y.ConnectionString())
	testkit.Must(t, err)
	c.Endpoint = "sb://" + y.address(t, listener) + "/"
	c.Emulator = listener == "amqp" || listener == "http"
	return c
}

func (y *yard) address(t *testing.T, listener string) string {
	t.Helper()
	u, err := url.Parse(y.Addresses()[listener])
	testkit.Must(t, err)
	return u.Host
}

// restart stops the yard and starts another on its folder and address, after something was
// done meanwhile.
func (y *yard) restart(t *testing.T, meanwhile func()) {
	t.Helper()
	amqp := y.address(t, "amqp")
	y.Stop(t)
	meanwhile()
	old := y.Config
	y.Yard = servertest.Start(t, servertest.Listeners, func(cfg *server.Config) {
		cfg.DataDir, cfg.AMQP = old.DataDir, amqp
	})
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	testkit.MustErrorIs(t, err, want, "answered")
}

// numbers makes events "from" to "to"-1.
func numbers(from, to int) (events []event.Event) {
	for i := from; i < to; i++ {
		events = append(events, event.Text(fmt.Sprint(i)))
	}
	return events
}

func open(t *testing.T, h *hub.Hub, cfg hub.ReadConfig) hub.Reader {
	t.Helper()
	r, err := h.Open(t.Context(), cfg)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, r.Close(context.WithoutCancel(t.Context()))) })
	return r
}

// next reads exactly so many events, by however many calls.
func next(t *testing.T, r hub.Reader, count int) (events []event.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(events) < count {
		var err error
		if events, err = r.Next(ctx, events, count-len(events)); err != nil {
			t.Fatalf("after %d of %d events: %v", len(events), count, err)
		}
	}
	return events
}

func bodies(events []event.Event) (all []string) {
	for i := range events {
		all = append(all, string(events[i].Body))
	}
	return all
}

func wantBodies(t *testing.T, events []event.Event, want ...string) {
	t.Helper()
	if got := bodies(events); !slices.Equal(got, want) {
		t.Fatalf("read %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// nextError is what a reader says that has nothing more to give.
func nextError(t *testing.T, r hub.Reader) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := r.Next(ctx, nil, 10)
	if err == nil {
		t.Fatalf("read %v, want an error", bodies(events))
	}
	return err
}

// remove deletes a hub.
func (y *yard) remove(t *testing.T, name string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, y.Addresses()["http"]+"/api/v1/hubs/"+name, nil)
	testkit.Must(t, err)
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	testkit.Must(t, err)
	testkit.Must(t, response.Body.Close())
	testkit.MustEqual(t, response.StatusCode/100, 2, "deleting answers %s", response.Status)
}
