package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/pipe"
	"github.com/eventyard/eventyard/processor"
)

// ErrStopped: the yard has stopped, or is about to.
var ErrStopped = errors.New("the yard has stopped")

// Dial gives a client of this yard with all rights, over a pipe in this process: no socket, no TLS,
// whichever listeners are open. It waits until the yard has started. Of cfg, what says how to get
// in (Token, TLS, WebSockets, Dial) is the yard's own business. The client ends with the yard.
func (s *Server) Dial(ctx context.Context, cfg hub.Config) (*hub.Client, error) {
	in, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial the yard in this process: %w", err)
	}
	cfg.TLS, cfg.WebSockets = nil, false
	cfg.Dial, cfg.Token = in.dial, in.token
	// It has no key: without the pipe and the tokens it is of no use.
	at := auth.ConnectionString{Endpoint: in.endpoint, Emulator: true}
	client, err := hub.Dial(ctx, at.String(), cfg)
	if err != nil {
		return nil, fmt.Errorf("dial the yard in this process: %w", err)
	}
	if !in.keep(client) {
		_ = client.Close()
		return nil, fmt.Errorf("dial the yard in this process: %w", ErrStopped)
	}
	return client, nil
}

// EnsureHub is for a hub what Config.Hubs is at the start: it is there when the call
// returns, with all its groups. A hub with another number of partitions is an error.
func (s *Server) EnsureHub(ctx context.Context, h Hub) error {
	if err := h.validate(); err != nil {
		return err
	}
	in, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("hub %s: %w", h.Name, err)
	}
	if _, err := in.yard.broker.EnsureHub(ctx, h.config(), h.Groups); err != nil {
		return fmt.Errorf("hub %s: %w", h.Name, err)
	}
	return nil
}

// Store gives the yard's own store of leases, checkpoints and entries, without a connection in
// between and with an operator's rights: what processors of this yard use when they are
// given no other. It waits until the yard has started, and serves until it stops.
func (s *Server) Store(ctx context.Context) (processor.Store, error) {
	in, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the yard's store: %w", err)
	}
	return in.yard.groups, nil
}

// enter waits until the yard has started.
func (s *Server) enter(ctx context.Context) (*inside, error) {
	select {
	case <-s.started:
	case <-s.ended:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case <-s.ended: // or both
		return nil, ErrStopped
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inside, nil
}

// inside is the way into a yard for the process that it runs in.
type inside struct {
	yard     *yard
	listener *pipe.Listener
	// endpoint is what the yard is called outside, so that what clients keep by its name
	// is the same for both.
	endpoint string

	mu sync.Mutex
	// clients and closed are guarded by mu. Who has closed a client and forgotten it is not
	// to find it kept here.
	clients []weak.Pointer[hub.Client]
	closed  bool
}

func newInside(y *yard, endpoint string) *inside {
	return &inside{yard: y, listener: pipe.NewListener("inside"), endpoint: endpoint}
}

// passes is what lets clients of this process in: a secret that never leaves it. It stands on no
// policy, so that a root key made anew is no reason to be shut out of one's own yard.
type passes struct {
	secret string
	// others checks the tokens of everybody else; nil: there are none.
	others access.TokenVerifier
}

// Verify takes the secret for all rights.
func (p *passes) Verify(ctx context.Context, token string) (auth.Grant, error) {
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(p.secret)) == 1:
		return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "this process"}, nil
	case p.others == nil:
		return auth.Grant{}, fmt.Errorf("%w: no issuer of bearer tokens is configured", auth.ErrUnsupported)
	}
	return p.others.Verify(ctx, token)
}

func (in *inside) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return in.listener.Dial(ctx)
}

func (in *inside) token(context.Context) (string, time.Time, error) {
	return in.yard.passes.secret, time.Time{}, nil
}

// keep remembers a client to close it when the yard stops; false: it has.
func (in *inside) keep(c *hub.Client) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.clients = slices.DeleteFunc(in.clients, func(p weak.Pointer[hub.Client]) bool { return p.Value() == nil })
	in.clients = append(in.clients, weak.Make(c))
	return true
}

// close ends all clients: they would try for ever to reach the yard again.
func (in *inside) close() {
	in.mu.Lock()
	clients := in.clients
	in.clients, in.closed = nil, true
	in.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range clients {
		if c := p.Value(); c != nil {
			all.Go(func() { _ = c.Close() })
		}
	}
	all.Wait()
}
