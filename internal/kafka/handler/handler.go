package handler

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/tracing"
)

// Config is what the listener works with.
type Config struct {
	// Broker, Access, Groups and Transactions are required.
	Broker *broker.Broker
	Access *access.Registry
	// Groups coordinates those of Kafka's consumers that are this node's.
	Groups *groups.Coordinator
	// Transactions coordinates those of Kafka's producers.
	Transactions *transactions.Coordinator
	// Open: everybody has all rights, and naming a hub makes it. It goes with a server that asks nobody
	// who it is, and only with loopback.
	Open bool
	// AutoCreate: naming a hub makes it also where not everything is open, for who has Manage on the namespace.
	AutoCreate bool
	// Advertise is where a client finds this node: host and port for who has come by that connection.
	// Required.
	Advertise func(c *kafka.Conn) (host string, port int32)
	// Nodes are those that the client of a connection may turn to, in the same order at each of them. Nil,
	// or none: one alone, which is at what Advertise says.
	Nodes func(c *kafka.Conn) []Node
	// Coordinator is the node that a group belongs to, by its ID, whatever one client may know of the nodes;
	// nil: this one.
	Coordinator func(group string) Node
	// Elsewhere reaches the nodes that groups belong to, for clients that cannot since one broker stands for all nodes;
	// nil: clients reach all.
	Elsewhere Elsewhere
	// Log is used where no connection is known; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where the counters are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// Tracer makes spans of what is published; nil means that there are none.
	Tracer tracing.Tracer
}

// Handler is a kafka.Handler and kafka.Authenticator, with Passwords.
type Handler struct {
	cfg     Config // with its defaults
	metrics *metrics
	// buffers are *[]byte, for answers that are made here.
	buffers sync.Pool
	// kept bounds what connections keep between fetches.
	kept *kept
	// forwarding has one for each request that waits at another node.
	forwarding chan struct{}
	// waitingHere has one for each request of another node that may wait here.
	waitingHere chan struct{}
}

var (
	_ kafka.Handler       = (*Handler)(nil)
	_ kafka.Authenticator = (*Handler)(nil)
	_ kafka.Passwords     = (*Handler)(nil)
)

// New makes a listener; it starts nothing.
func New(cfg Config) (*Handler, error) {
	if cfg.Broker == nil || cfg.Access == nil || cfg.Groups == nil || cfg.Transactions == nil || cfg.Advertise == nil {
		return nil, errors.New("make the Kafka listener: a broker, access, groups, transactions and an address to advertise are required")
	}
	metrics, err := newMetrics(cfg.Metrics, func(hub broker.Hub) bool {
		now, err := cfg.Broker.Hub(hub.Name)
		return err == nil && now.ID == hub.ID
	})
	if err != nil {
		return nil, fmt.Errorf("make the Kafka listener: %w", err)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Handler{cfg: cfg, metrics: metrics, buffers: sync.Pool{New: func() any { return new([]byte) }}, kept: newKept(), forwarding: make(chan struct{}, maxForwardedWaits), waitingHere: make(chan struct{}, maxWaitsHere)}, nil
}

// Connected makes the peer of a connection whose client has shown who it is.
func (h *Handler) Connected(c *kafka.Conn) (kafka.Peer, error) { return newPeer(h, c), nil }
