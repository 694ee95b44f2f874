package amqp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// DefaultConnections is how many clients may be connected at once, unless Config.Admission says
// otherwise.
const DefaultConnections = 10_000

// Config is how a server behaves. Zero fields mean the default beside them.
type Config struct {
	// Handler is required.
	Handler Handler
	// Auth nil: PLAIN and EXTERNAL are not offered. EXTERNAL is offered on connections
	// whose TLS layer has verified a client certificate.
	Auth Authenticator
	// Container begins our container id; "eventyard".
	Container string

	// MaxFrameBytes is the largest frame we take; 65536.
	MaxFrameBytes uint32
	// MaxMessageBytes bounds a message on links whose sink names no limit; 1 MiB.
	MaxMessageBytes uint64
	// IdleTimeout is how long a peer may be silent, and how long a frame may take to
	// arrive; 60 s. The .NET client refuses servers that say less than 5 s.
	IdleTimeout time.Duration
	// OpenTimeout is how long a connection may take from its first byte (TLS handshake
	// included) to its open; 10 s.
	OpenTimeout time.Duration
	// WriteTimeout is how long the peer may take nothing of what we send before it is
	// cut off; 10 min. One that has taken some of the present piece gets as long again
	// (not with TLS or WebSockets). It is meant for a client that lives, and says so by
	// its heartbeats, but does not read: that costs little, and it may be busy. A machine
	// that has vanished is noticed long before.
	WriteTimeout time.Duration
	// Admission says how many connections may be at once, and keeps strangers and clients apart;
	// nil means one with the defaults, and DefaultConnections for clients.
	Admission *admission.Listener
	// Memory bounds what clients have not taken yet; nil means one with the defaults.
	Memory *admission.Memory
	// Parts bounds what clients have sent of messages that are not whole yet; nil means one with the
	// same defaults, and room for one message of the largest size.
	Parts *admission.Memory
	// MaxSessions and MaxLinks of one connection; 4999, as Event Hubs has it, and 2048: a processor
	// may read all partitions of a large hub over one connection. A stranger may have far less.
	MaxSessions, MaxLinks int

	// Log nil means slog.Default().
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	c.Container = cmp.Or(c.Container, "eventyard")
	c.MaxFrameBytes = cmp.Or(c.MaxFrameBytes, 64<<10)
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 1<<20)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.OpenTimeout = cmp.Or(c.OpenTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Minute)
	c.MaxSessions = cmp.Or(c.MaxSessions, 4999)
	c.MaxLinks = cmp.Or(c.MaxLinks, 2048)
	if c.Admission == nil {
		c.Admission = admission.New(admission.Limits{}).Listener(DefaultConnections)
	}
	if c.Memory == nil {
		c.Memory = admission.DefaultMemory()
	}
	if c.Parts == nil {
		largest := int(min(c.MaxMessageBytes, math.MaxInt/4))
		// What strangers may have comes on top, so that it takes nothing from clients.
		c.Parts = admission.NewMemory(max(maxHolderPartBytes, largest), max(maxAllPartBytes, largest)+c.Admission.Limits().StrangerBytes, admission.DefaultPatience)
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// validate looks at a config whose defaults are filled in.
func (c Config) validate() error {
	if c.Handler == nil {
		return errors.New("amqp: Handler is missing")
	}
	if c.MaxFrameBytes < wire.MinMaxFrameBytes || c.MaxFrameBytes > maxFrameBytes {
		return fmt.Errorf("amqp: MaxFrameBytes is %d, not %d to %d", c.MaxFrameBytes, wire.MinMaxFrameBytes, maxFrameBytes)
	}
	if c.IdleTimeout < time.Millisecond || c.OpenTimeout < 0 || c.WriteTimeout < 0 {
		return errors.New("amqp: a time-out is negative, or less than a millisecond")
	}
	if c.MaxSessions < 0 || c.MaxLinks < 0 {
		return errors.New("amqp: a limit is negative")
	}
	if c.MaxSessions > 1<<15 || c.MaxLinks > 1<<20 {
		return errors.New("amqp: MaxSessions is beyond 32768, or MaxLinks beyond 1048576")
	}
	return nil
}

// channelMax and handleMax are announced to the peer.
func (c *Config) channelMax() uint16 { return uint16(max(minChannelMax, c.MaxSessions)) }

func (c *Config) handleMax() uint32 { return uint32(max(minHandleMax, c.MaxLinks)) }
