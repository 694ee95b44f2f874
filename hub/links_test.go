package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// A node whose link for requests has ended is asked over a new pair, although the other link
// of the pair still stands.
func TestANodeIsAskedAgainWhenOneOfItsLinksHasEnded(t *testing.T) {
	y := start(t)
	client, h := y.quick(t)
	testkit.Must(t, infoError(h))
	for _, node := range []string{"$management", "$cbs"} {
		hub.EndRequests(t, client, node)
		testkit.Must(t, infoError(h))
		testkit.Must(t, h.SendTo(t.Context(), "1", event.Text("x"))) // needs a token of its own
		hub.EndReplies(t, client, node)
		testkit.Must(t, infoError(h))
		testkit.Must(t, h.SendTo(t.Context(), "0", event.Text("x")))
	}
}

// A caller who has no more time takes nobody's connection away.
func TestCallsThatAreGivenUpDisturbNobody(t *testing.T) {
	y := start(t)
	client := y.dial(t, y.ConnectionString(), hub.Config{})
	h := client.Hub("h")
	before := hub.Connection(client)
	for range 200 { // fewer than a connection may have sessions, should all of them be left behind
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(400*time.Microsecond))
		r, err := h.Open(ctx, hub.ReadConfig{Partition: "0"})
		cancel()
		if err == nil {
			testkit.Must(t, r.Close(t.Context()))
		}
	}
	testkit.Must(t, infoError(h))
	testkit.Equal(t, hub.Connection(client), before,
		"the connection was replaced: %v", hub.WhyConnectionEnded(before))
}

// A reader that is closed lets go of who waits for it, whatever the hub does.
func TestCloseOfAReaderUnblocksNext(t *testing.T) {
	for name, test := range map[string]func(client *hub.Client, network *flakyNetwork){
		"while the hub says nothing":      func(_ *hub.Client, network *flakyNetwork) { network.freeze() },
		"while it connects to a mute hub": func(client *hub.Client, network *flakyNetwork) { network.mute.Store(true); hub.BreakConnection(client) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := startMemory(t, memorySetup{})
				network := &flakyNetwork{y: y}
				client := y.dial(t, development.String(), hub.Config{Dial: network.dial})
				r, err := client.Hub("h").Open(t.Context(), hub.ReadConfig{Partition: "0"})
				testkit.Must(t, err)
				answer := make(chan error, 1)
				go func() { answer <- testkit.Err(r.Next(context.Background(), nil, 1)) }()
				synctest.Wait()
				test(client, network)
				time.Sleep(time.Second)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = r.Close(ctx)
				wantError(t, <-answer, hub.ErrClosed)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
				network.thaw()
			})
		})
	}
}

// A call ends with its context, also while the network takes nothing.
func TestSendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{})
		network := &flakyNetwork{y: y}
		client := y.dial(t, development.String(), hub.Config{Dial: network.dial})
		h := client.Hub("h")
		testkit.Must(t, h.Send(t.Context(), event.Text("x")))
		network.freeze()
		began := time.Now()
		answers := make(chan error)
		for i := range 3 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				answers <- h.Send(ctx, event.Text(fmt.Sprint(i)))
			}()
		}
		for range 3 {
			wantError(t, <-answers, context.DeadlineExceeded)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		network.thaw()
		testkit.Must(t, h.Send(t.Context(), event.Text("x")))
	})
}

// H2: a partition that was forgotten is not one of the hub's choice.
func TestAPartitionHasAName(t *testing.T) {
	y := start(t)
	for name, err := range map[string]error{
		"send": y.hub.SendTo(t.Context(), "", event.Text("x")), "open": openError(y.hub, hub.ReadConfig{}),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.ErrorIs(t, err, hub.ErrNotFound, "%s answers", name)
		})
	}
}

// flakyNetwork can stop taking bytes, and give connections on which nothing is said.
type flakyNetwork struct {
	y    *memoryYard
	mute atomic.Bool

	mu     sync.Mutex
	frozen chan struct{} // guarded by mu; closed when it thaws; nil: it is not frozen
}

func (n *flakyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.mute.Load() {
		return mute(ctx, network, address)
	}
	conn, err := n.y.listener.Dial(ctx)
	return &flakyConn{Conn: conn, network: n, closed: make(chan struct{})}, err
}

func (n *flakyNetwork) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = make(chan struct{})
}

func (n *flakyNetwork) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen != nil {
		close(n.frozen)
		n.frozen = nil
	}
}

type flakyConn struct {
	net.Conn
	network *flakyNetwork
	once    sync.Once
	closed  chan struct{}
}

func (c *flakyConn) Write(p []byte) (int, error) {
	c.network.mu.Lock()
	frozen := c.network.frozen
	c.network.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(p)
}

func (c *flakyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// H9: a token that does not say when it expires is renewed also after a renewal has failed.
func TestTokensOfUnknownLifeAreRenewedAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{bearer: bearer{}})
		var asked, failing atomic.Int64
		token := func(context.Context) (string, time.Time, error) {
			asked.Add(1)
			if failing.Add(-1) >= 0 {
				return "", time.Time{}, errors.New("the issuer is down")
			}
			return time.Now().Add(30 * time.Minute).Format(time.RFC3339), time.Time{}, nil
		}
		client := y.dial(t, "Endpoint=sb://yard/;UseDevelopmentEmulator=true", hub.Config{Token: token})
		h := client.Hub("h")
		testkit.Must(t, h.Send(t.Context(), event.Text("x")))
		r := open(t, h, hub.ReadConfig{Partition: "0"})
		next(t, r, 1)
		failing.Store(3)
		time.Sleep(3 * time.Hour)
		before := y.log.count.Load()
		testkit.Must(t, h.Send(t.Context(), event.Text("y")))
		wantBodies(t, next(t, r, 1), "y")
		if after := y.log.count.Load(); before != 3 || after != before {
			t.Errorf("%d warnings, then %d", before, after)
		}
	})
}

// H9: a program that gives the same token again until it has expired, or one that is about
// to, is not asked in a tight loop, nor is the hub.
func TestTokensThatEndSoonAreNotRenewedWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{bearer: patientBearer{}})
		var asked atomic.Int64
		token := func(context.Context) (string, time.Time, error) {
			asked.Add(1)
			return "x", time.Now(), nil
		}
		client := y.dial(t, "Endpoint=sb://yard/;UseDevelopmentEmulator=true", hub.Config{Token: token})
		open(t, client.Hub("h"), hub.ReadConfig{Partition: "0"})
		before := asked.Load()
		time.Sleep(time.Minute)
		if n := asked.Load() - before; n > 60 {
			t.Errorf("asked %d times in a minute", n)
		}
	})
}

// patientBearer takes every token.
type patientBearer struct{}

func (patientBearer) Verify(context.Context, string) (auth.Grant, error) {
	return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "bearer"}, nil
}

// P1: one client reads all partitions of a large hub, as a lone processor does: each reader has a
// session, of which a connection has many.
func TestAClientReadsAllPartitionsOfALargeHub(t *testing.T) {
	const partitions = 300
	y := start(t, func(cfg *server.Config) {
		cfg.Hubs = append(cfg.Hubs, server.Hub{Name: "large", Partitions: partitions})
	})
	h := y.client.Hub("large")
	for i := range partitions {
		r, err := h.Open(t.Context(), hub.ReadConfig{Partition: fmt.Sprint(i)})
		testkit.Must(t, err, "reader %d", i)
		defer r.Close(context.WithoutCancel(t.Context()))
	}
	testkit.Must(t, h.SendTo(t.Context(), "299", event.Text("hello")))
}
