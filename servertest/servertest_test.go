package servertest_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A yard without listeners has no address, and any number of them live side by side.
func TestYardsWithoutListeners(t *testing.T) {
	one, other := servertest.Start(t), servertest.Start(t)
	for _, y := range []*servertest.Yard{one, other} {
		if addresses := y.Addresses(); len(addresses) != 0 {
			t.Errorf("it has the addresses %v", addresses)
		}
		y.Hub(t, "orders", 2, "billing")
		y.Hub(t, "orders", 2) // is there already
	}
	if one.Config.DataDir == other.Config.DataDir {
		t.Error("they share a folder")
	}
}

func TestListenersAreOnLoopback(t *testing.T) {
	y := servertest.Start(t, servertest.Listeners)
	addresses := y.Addresses()
	for _, listener := range []string{"amqp", "amqps", "http", "https"} {
		_, address, _ := strings.Cut(addresses[listener], "://")
		if host, port, err := net.SplitHostPort(address); err != nil || host != "127.0.0.1" || port == "0" {
			t.Errorf("the %s listener is at %q", listener, addresses[listener])
		}
	}
	cs, err := auth.ParseConnectionString(y.ConnectionString())
	if err != nil || "amqp://"+cs.Host() != addresses["amqp"] {
		t.Errorf("%q leads to %s: %v", y.ConnectionString(), cs.Host(), err)
	}
	answer, err := http.Get(addresses["http"] + "/readyz")
	testkit.Must(t, err)
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	testkit.Equal(t, answer.StatusCode, http.StatusOK, "it answers %s", answer.Status)
}

// What one yard has stored another finds in its folder.
func TestAnotherYardOnTheSameFolder(t *testing.T) {
	first := servertest.Start(t, func(c *server.Config) { c.Hubs = []server.Hub{{Name: "orders", Partitions: 3}} })
	first.Stop(t)
	first.Stop(t)
	second := servertest.Start(t, func(c *server.Config) { c.DataDir = first.Config.DataDir })
	if err := second.EnsureHub(t.Context(), server.Hub{Name: "orders", Partitions: 4}); err == nil {
		t.Error("there was no hub with 3 partitions")
	}
}

// P12: a client of the test's own sends and reads, in the process and by a listener.
func TestDial(t *testing.T) {
	y := servertest.Start(t, servertest.Listeners)
	y.Hub(t, "orders", 1)
	outside, err := hub.Dial(t.Context(), y.ConnectionString(), hub.Config{Log: y.Config.Log})
	testkit.Must(t, err)
	defer outside.Close()
	clients := []*hub.Client{y.Dial(t), outside}
	for i, client := range clients {
		testkit.Must(t, client.Hub("orders").Send(t.Context(), event.Event{Body: []byte{byte('a' + i)}}))
	}
	for _, client := range clients {
		var got string
		for ev, err := range client.Hub("orders").Read(t.Context(), hub.ReadConfig{Partition: "0"}) {
			testkit.Must(t, err)
			if got += string(ev.Body); len(got) == 2 {
				break
			}
		}
		testkit.Equal(t, got, "ab", "read")
	}
}
