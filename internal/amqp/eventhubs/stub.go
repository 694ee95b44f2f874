// Package eventhubs is the AMQP door: Azure Event Hubs' protocol on top of AMQP 1.0,
// with links to hubs and partitions, claims ($cbs) and management requests.
package eventhubs

import (
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/access"
	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/broker"
)

// Config is what the door works with.
type Config struct {
	Broker *broker.Broker
	Access *access.Keeper
	// MaxMessageBytes of a publication; zero means 1 MiB.
	MaxMessageBytes int
	Log             *slog.Logger
	Metrics         prometheus.Registerer
}

// Door is an amqp.Handler and amqp.Authenticator.
type Door struct{}

var (
	_ amqp.Handler       = (*Door)(nil)
	_ amqp.Authenticator = (*Door)(nil)
)

// New makes a door; it starts nothing.
func New(cfg Config) (*Door, error) { panic("stub") }

// Connected decides on a connection's links.
func (d *Door) Connected(c *amqp.Conn) (amqp.Peer, error) { panic("stub") }

// Plain takes a policy's name and key.
func (d *Door) Plain(ctx context.Context, user, password string) (any, error) { panic("stub") }

// External takes a client certificate whose common name is a policy's.
func (d *Door) External(ctx context.Context, state tls.ConnectionState) (any, error) { panic("stub") }
