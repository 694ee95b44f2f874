package parts

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A balancer gives servers connections in turn, and passes over one that is gone.
func TestABalancerPassesOverWhoIsGone(t *testing.T) {
	var addresses []string
	var servers []*httptest.Server
	for _, name := range []string{"one", "two"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		defer s.Close()
		servers, addresses = append(servers, s), append(addresses, s.Listener.Addr().String())
	}
	b := NewBalancer(t, "127.0.0.1:0")
	b.Serve(addresses...)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() string {
		answer := testkit.Value(client.Get("http://" + b.Address()))(t)
		defer answer.Body.Close()
		return string(testkit.Value(io.ReadAll(answer.Body))(t))
	}
	testkit.That(t, ask() != ask(), "both connections were given to one server")
	servers[0].Close()
	for range 4 {
		testkit.Equal(t, ask(), "two")
	}
}
