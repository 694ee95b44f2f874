package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// deaf accepts connections and never answers.
type deaf struct {
	net.Listener

	mu   sync.Mutex
	held []net.Conn // guarded by mu
}

func newDeaf(t *testing.T) *deaf {
	t.Helper()
	d := &deaf{Listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := d.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.held = append(d.held, conn)
			d.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		testkit.Check(t, d.Close())
		all.Wait()
		for _, conn := range d.held {
			_ = conn.Close()
		}
	})
	return d
}

func (d *deaf) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.held)
}

func (d *deaf) url() string { return "http://" + d.Addr().String() }

// hang sends so many requests that are not answered, until the test ends.
func hang(t *testing.T, c *Client, to *deaf, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for i := range n {
		all.Go(func() {
			c.Do(ctx, Request{Endpoint: Endpoint{URL: fmt.Sprint(to.url(), "/", i)}, Method: "POST", Body: []byte("x"), Late: time.Minute})
		})
	}
}

// R3: a receiver that hangs has some of the connections, however many want to reach it, and others
// are reached at once.
func TestOneThatHangsLeavesConnectionsToOthers(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c := newClient(t, Config{Loopback: true, Connections: 16, Metrics: metrics})
	hanging := newDeaf(t)
	hang(t, c, hanging, 100)
	testkit.Eventually(t, "the receiver has what it may have", func() bool { return hanging.count() == 8 && c.share.Waiting() == 92 })
	healthy := serve(t, func(w http.ResponseWriter, _ *http.Request) {})
	for range 20 {
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: healthy}, Method: "POST", Body: []byte("x")})
		testkit.MustEqual(t, a.Status, 200, "%v", a.Err)
	}
	testkit.Equal(t, hanging.count(), 8)
	testkit.Must(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP eventyard_outgoing_waiting Requests to others that wait for a connection to be free.
# TYPE eventyard_outgoing_waiting gauge
eventyard_outgoing_waiting 92
`), "eventyard_outgoing_waiting"))
}

// R3: connections that are kept for later, by requests of every kind, make room.
func TestKeptConnectionsMakeRoom(t *testing.T) {
	c := newClient(t, Config{Loopback: true, Connections: 4})
	authority := newAuthority(t) // whose transport is another
	plain := &http.Client{Transport: c.Transport()}
	for i := range 12 {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {})
		if i%2 == 0 {
			response := testkit.Value(plain.Get(url))(t)
			testkit.Must(t, response.Body.Close())
			continue
		}
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url, CA: authority.text}, Method: "POST", Body: []byte("x")})
		testkit.MustEqual(t, a.Status, 200, "%v", a.Err)
	}
	testkit.Equal(t, c.share.Waiting(), 0)
}

// R3: a receiver that is never at rest makes room for another, too.
func TestABusyReceiverMakesRoom(t *testing.T) {
	c := newClient(t, Config{Loopback: true, Connections: 4})
	busy, others := serve(t, func(http.ResponseWriter, *http.Request) {}), []string{}
	for range 4 {
		others = append(others, serve(t, func(http.ResponseWriter, *http.Request) {}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				c.Do(ctx, Request{Endpoint: Endpoint{URL: busy}, Method: "POST", Body: []byte("x")})
			}
		})
	}
	for range 5 {
		for _, url := range others {
			a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Body: []byte("x")})
			testkit.MustEqual(t, a.Status, 200, "%v", a.Err)
		}
	}
}

// R3: that no connection was free is no fault of the endpoint; who gets one has all its time.
func TestAShortageIsNoFaultOfTheEndpoint(t *testing.T) {
	c := newClient(t, Config{Loopback: true, Connections: 2})
	hanging := newDeaf(t)
	hang(t, c, hanging, 1)
	testkit.Eventually(t, "it hangs", func() bool { return hanging.count() == 1 })
	healthy := serve(t, func(http.ResponseWriter, *http.Request) {})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: healthy}, Method: "POST", Body: []byte("x"), Timeout: time.Second})
	testkit.Equal(t, a.Outcome, retry.Canceled)
	testkit.ErrorIs(t, a.Err, errShort)
	for _, err := range []error{
		errShort,
		fmt.Errorf("%w: %w", errToken, errShort),
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
	} {
		testkit.Equal(t, outcomeOf(t.Context(), err), retry.Canceled, "%v", err)
	}
	testkit.Equal(t, c.share.Open(), 1)
}

// R3: requests that go on late are ended for those who wait.
func TestLateRequestsMakeRoom(t *testing.T) {
	c := newClient(t, Config{Loopback: true, Connections: 2})
	hanging := newDeaf(t)
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: hanging.url()}, Method: "POST", Body: []byte("x"),
		Timeout: time.Second, Late: time.Hour})
	testkit.MustEqual(t, a.Outcome, retry.TimedOut)
	testkit.MustThat(t, a.Late != nil, "it does not go on: %v", a.Err)
	healthy := serve(t, func(http.ResponseWriter, *http.Request) {})
	b := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: healthy}, Method: "POST", Body: []byte("x")})
	testkit.Equal(t, b.Status, 200, "%v", b.Err)
	testkit.Equal(t, (<-a.Late).Outcome, retry.TimedOut)
}
