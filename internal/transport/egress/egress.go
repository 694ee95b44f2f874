// Package egress is the way out: HTTP requests to endpoints that strangers have named. Where
// they lead is checked when the connection is made, after names were resolved, so that no
// name, redirect or spelling of an address leads into the yard's own network.
//
// A request that is not answered in time frees its caller, and may go on in the background
// for a while: a receiver that is slow has often done its work all the same (late.go).
package egress

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// Config says where requests may go.
type Config struct {
	// Allow are networks that are private, loopback or otherwise special and may be reached all
	// the same.
	Allow []netip.Prefix
	// Loopback is development mode: this machine may be reached.
	Loopback bool
	// UserAgent is what the yard calls itself; empty: eventyard.
	UserAgent string
	// MaxLate bounds requests that go on after their time-out, zero: 1,000.
	MaxLate int
	// Connections is how many there may be at once, to all endpoints together; zero: 2,048. While one
	// is being made it counts twice.
	Connections int
	// Resolver and Transport are for tests; nil: the real ones. A *net.Resolver is used where
	// the real one would be. With a Transport of one's own nothing is guarded.
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	Transport http.RoundTripper
	Log       *slog.Logger
	// Metrics takes the client's metrics; nil: nobody does.
	Metrics prometheus.Registerer
}

// Client sends. All methods may be called by many goroutines at once.
type Client struct {
	cfg    Config
	guard  *guard
	share  *share.Share
	seats  *share.Share // of round trips: see seat.go
	dialer *dialer
	// trusts and purses are shared by endpoints: connections by those with the same trust and
	// certificate, tokens by those that get them the same way.
	trusts *cache[trust, http.RoundTripper]
	purses *cache[grant, *purse]

	// relieving: a goroutine makes room for those who wait (relief.go).
	relieving atomic.Bool
	// work goes to workers that wait for some (worker.go).
	work chan *exchange
	// stopping ends with Close; requests and token calls under way end with it.
	stopping context.Context
	stop     context.CancelFunc
	// running counts the goroutines that Close waits for. It only grows under mu.
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool                   // guarded by mu
	late   map[*exchange]struct{} // guarded by mu: requests whose callers have left
}

// New makes one. It starts no goroutine.
func New(cfg Config) (*Client, error) {
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "eventyard")
	cfg.MaxLate = cmp.Or(cfg.MaxLate, 1000)
	cfg.Connections = cmp.Or(cfg.Connections, 2048)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	guard, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, guard: guard, share: share.New(cfg.Connections, dialCost), seats: share.New(max(cfg.Connections, minSeats), 1), work: make(chan *exchange), late: map[*exchange]struct{}{}}
	c.dialer = newDialer(cfg, guard, c.share, c.shortage)
	c.trusts = newCache(maxCached, c.connect, closeIdle)
	c.purses = newCache(maxCached, c.openPurse, nil)
	c.stopping, c.stop = context.WithCancel(context.Background())
	if cfg.Metrics != nil {
		measure(c.share, cfg.Metrics)
	}
	return c, nil
}

// Transport gives a guarded transport for clients of other protocols over HTTP (blob storage).
// Whether redirects are followed is up to such a client; each is guarded like any other way.
func (c *Client) Transport() http.RoundTripper {
	rt, err := c.trusts.get(trust{})
	if err != nil { // the system's roots and no certificate cannot be wrong
		panic(fmt.Sprintf("egress: plain transport: %v", err))
	}
	return rt
}

// Close ends late requests and idle connections, and waits for them. Requests whose callers
// still wait are ended too; later ones are refused. It may be called twice.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for x := range c.late {
		x.end(errClosed)
	}
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
	c.trusts.clear()
}

// spawn runs f in a goroutine that Close waits for; not once it was called.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(f)
	return true
}
