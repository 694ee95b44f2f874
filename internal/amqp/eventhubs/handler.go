package eventhubs

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/tracing"
)

// DefaultTokenTimeout is how long a stranger may stay. Clients put their token as soon as they are
// connected, and have it then, or fetch it meanwhile.
const DefaultTokenTimeout = 30 * time.Second

// How many receivers and senders there may be at once: those of one policy or token, and all.
const (
	MaxReceiversOfOne = 16_384
	MaxReceivers      = 65_536
	MaxSendersOfOne   = MaxReceiversOfOne
	MaxSenders        = MaxReceivers
)

// Config is what the listener works with.
type Config struct {
	// Broker and Access are required.
	Broker *broker.Broker
	Access *access.Registry
	// Groups is what stands behind $yard; nil: there is no such node.
	Groups Groups
	// Reserved tells the groups of functions that the yard itself runs: no client changes anything
	// there, whatever its rights. nil: there are none.
	Reserved func(hub, group string) bool
	// Receivers bounds how many there are at once, by policy or token and in all; nil means
	// MaxReceiversOfOne and MaxReceivers.
	Receivers *admission.Quota
	// Senders is the same for those; nil means MaxSendersOfOne and MaxSenders.
	Senders *admission.Quota
	// Memory bounds what is read for receivers and not sent yet; nil means one with the defaults.
	Memory *admission.Memory
	// MaxMessageBytes of a publication; zero means 1 MiB.
	MaxMessageBytes int
	// TokenTimeout is how long a connection may have no rights, from its beginning or since
	// it lost them, before it is closed; zero means DefaultTokenTimeout.
	TokenTimeout time.Duration
	// Log is used where no connection is known; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where the counters are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// Tracer makes spans of what is published; nil means that there are none.
	Tracer tracing.Tracer
}

// Handler is an amqp.Handler and amqp.Authenticator.
type Handler struct {
	cfg     Config // with its defaults
	metrics *metrics
	// batches are *batch, for whoever decodes one next.
	batches sync.Pool
}

var (
	_ amqp.Handler       = (*Handler)(nil)
	_ amqp.Authenticator = (*Handler)(nil)
)

// New makes a listener; it starts nothing.
func New(cfg Config) (*Handler, error) {
	switch {
	case cfg.Broker == nil || cfg.Access == nil:
		return nil, errors.New("make the AMQP listener: both a broker and access are required")
	case cfg.MaxMessageBytes < 0:
		return nil, fmt.Errorf("make the AMQP listener: a message of %d bytes cannot be", cfg.MaxMessageBytes)
	case cfg.TokenTimeout < 0:
		return nil, fmt.Errorf("make the AMQP listener: no token can come within %s", cfg.TokenTimeout)
	}
	metrics, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("make the AMQP listener: %w", err)
	}
	cfg.MaxMessageBytes = cmp.Or(cfg.MaxMessageBytes, 1<<20)
	cfg.TokenTimeout = cmp.Or(cfg.TokenTimeout, DefaultTokenTimeout)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Receivers == nil {
		cfg.Receivers = admission.NewQuota("receivers", MaxReceiversOfOne, MaxReceivers)
	}
	if cfg.Senders == nil {
		cfg.Senders = admission.NewQuota("senders", MaxSendersOfOne, MaxSenders)
	}
	if cfg.Memory == nil {
		cfg.Memory = admission.DefaultMemory()
	}
	if cfg.Reserved == nil {
		cfg.Reserved = func(string, string) bool { return false }
	}
	return &Handler{cfg: cfg, metrics: metrics, batches: sync.Pool{New: func() any { return new(batch) }}}, nil
}

// Connected decides on a connection's links. Who brought a key or a certificate has its
// rights from the start; all others have none until they put a token.
func (d *Handler) Connected(c *amqp.Conn) (amqp.Peer, error) {
	p := newPeer(d, c)
	if g, ok := c.Identity().Value.(auth.Grant); ok {
		if err := p.grant(g); err != nil {
			p.Disconnected()
			return nil, err
		}
		p.log.Debug("connection has the rights of a policy", "holder", g.Holder, "mechanism", c.Identity().Mechanism)
	}
	return p, nil
}

// Plain takes a policy's name and key.
func (d *Handler) Plain(ctx context.Context, from, user, password string) (any, error) {
	g, err := d.cfg.Access.Key(admission.WithRemote(ctx, from), user, password)
	if err != nil {
		d.cfg.Access.Refused(ctx, from, err)
		return nil, fmt.Errorf("log in as %.64q: %w", user, temporary(err))
	}
	return opening(g, user)
}

// External takes a client certificate whose common name is a policy's.
func (d *Handler) External(ctx context.Context, from string, state tls.ConnectionState) (any, error) {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil, errors.New("log in by certificate: none was verified")
	}
	name := state.VerifiedChains[0][0].Subject.CommonName
	g, err := d.cfg.Access.Named(admission.WithRemote(ctx, from), name)
	if err != nil {
		d.cfg.Access.Refused(ctx, from, err)
		return nil, fmt.Errorf("log in by certificate of %.64q: %w", name, temporary(err))
	}
	return opening(g, name)
}

// opening refuses who may do nothing here: the right Metrics is for HTTP.
func opening(g auth.Grant, name string) (any, error) {
	if g.Stands() && !g.Opens() {
		return nil, fmt.Errorf("log in as %.64q: the policy opens no hub: it needs Send, Listen or Manage", name)
	}
	return g, nil
}

// temporary has a client try again where nobody can tell just now whether what it has shown is good.
func temporary(err error) error {
	if errors.Is(err, auth.ErrUnavailable) {
		return fmt.Errorf("%w: %w", amqp.ErrUnchecked, err)
	}
	return err
}
