package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// onServers is a node of a yard on real servers.
func onServers(servers *natstest.Servers, node, key string) Config {
	return Config{
		Engine: servers.URL() + "?yard=shop", Node: node, Version: "1.2.3", Log: testkit.Quiet(), Secrets: Secrets{Key: key},
		HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off,
	}
}

// awaitReady waits until readyz answers a status, and gives its answer. A node is quiet, and servers
// have a leader again, within some seconds.
func (r *running) awaitReady(want int) (answer string) {
	r.t.Helper()
	testkit.Eventually(r.t, fmt.Sprintf("readyz answers %d", want), func() bool {
		var status int
		status, answer = r.do("GET", "/readyz", "")
		return status == want
	})
	return answer
}

// C5, C8: a node says that it is not ready while the servers have no majority, goes on by itself when
// they have one again, and is alive throughout.
func TestReadinessFollowsTheServers(t *testing.T) {
	servers := natstest.Start(t, 3)
	r := start(t, onServers(servers, "a", sealed.NewKey()))
	r.want(http.StatusOK, "GET", "/readyz", "")
	servers.Stop(t, 1)
	servers.Stop(t, 2)
	said := r.awaitReady(http.StatusServiceUnavailable)
	testkit.That(t, strings.Contains(said, "most of them have to run"), "it says %s", said)
	r.want(http.StatusOK, "GET", "/healthz", "")
	servers.Restart(t, 1)
	r.awaitReady(http.StatusOK)
}
