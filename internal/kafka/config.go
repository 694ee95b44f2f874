package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// DefaultConnections is how many clients may be connected at once, unless Config.Admission says
// otherwise.
const DefaultConnections = 10_000

// Config is how a server behaves. Zero fields mean the default beside them.
type Config struct {
	// Handler is required.
	Handler Handler
	// Auth nil: nobody is asked who it is, and everybody is let in. Clients that want to show it all the
	// same are told that it is good.
	Auth Authenticator

	// MaxRequestBytes is the largest request; 100 MiB, as Kafka has it. Only Produce may be as large, for
	// it is never in memory whole; others have at most maxBodyBytes.
	MaxRequestBytes int
	// MaxRecordsBytes is the most that a Produce request may hold for one partition; 1.5 MiB, which is
	// the largest batch that is stored. What is more is passed over, and the request goes on.
	MaxRecordsBytes int
	// AuthTimeout is how long a client may take, TLS handshake included, to show who it is; 10 s.
	AuthTimeout time.Duration
	// IdleTimeout is how long a client may be silent while nothing of its is under way; 10 min, as Kafka
	// has it.
	IdleTimeout time.Duration
	// ReadTimeout is how long a part of a request may take to arrive, once it has begun; 1 min.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take nothing of what it is sent; 10 min. One that has taken
	// some of the present piece gets as long again (not with TLS).
	WriteTimeout time.Duration
	// Admission says how many connections may be at once, and keeps strangers and clients apart; nil means
	// one with the defaults, and DefaultConnections for clients.
	Admission *admission.Listener
	// Memory bounds what requests and answers take; nil means one with the defaults.
	Memory *admission.Memory

	// Log nil means slog.Default().
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, 100<<20)
	c.MaxRecordsBytes = cmp.Or(c.MaxRecordsBytes, 3<<19)
	c.AuthTimeout = cmp.Or(c.AuthTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 10*time.Minute)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Minute)
	if c.Admission == nil {
		c.Admission = admission.New(admission.Limits{}).Listener(DefaultConnections)
	}
	if c.Memory == nil {
		c.Memory = admission.DefaultMemory()
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// validate looks at a config whose defaults are filled in.
func (c Config) validate() error {
	if c.Handler == nil {
		return errors.New("kafka: Handler is missing")
	}
	if c.MaxRequestBytes < maxBodyBytes || c.MaxRequestBytes > maxRequestBytes {
		return fmt.Errorf("kafka: MaxRequestBytes is %d, not %d to %d", c.MaxRequestBytes, maxBodyBytes, maxRequestBytes)
	}
	if c.MaxRecordsBytes < 0 || c.MaxRecordsBytes > c.MaxRequestBytes {
		return fmt.Errorf("kafka: MaxRecordsBytes is %d, not 1 to %d", c.MaxRecordsBytes, c.MaxRequestBytes)
	}
	if c.AuthTimeout < 0 || c.IdleTimeout < 0 || c.ReadTimeout < 0 || c.WriteTimeout < 0 {
		return errors.New("kafka: a time-out is negative")
	}
	return nil
}
