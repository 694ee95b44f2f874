package circuit

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// ErrLeaving: the partition is to be given up before the circuit let anything through.
var ErrLeaving = errors.New("the partition is to be given up")

// Config is a member's.
type Config struct {
	Store    processor.Store
	Group    processor.Group
	Function string
	Instance string
	Policy   breaker.Policy
	// Poll is how often a store is read that cannot be watched (and, ten times rarer, one that
	// can); 0: 1 s.
	Poll time.Duration
	// OnChange hears of every change of state that this member sees, once each, in order. It is
	// quick, and asks the member for nothing but Record. nil: nobody.
	OnChange func(was, is breaker.Record)
	// Log; nil: slog.Default(). Each change of state is a line, and a store that fails one now and
	// then.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Policy = c.Policy.WithDefaults()
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.OnChange == nil {
		c.OnChange = func(was, is breaker.Record) {}
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Log = c.Log.With("hub", c.Group.Hub, "group", c.Group.Group, "function", c.Function)
	return c
}

// callTimeout bounds one call of the store.
const callTimeout = 5 * time.Second

// Member is one instance's part in a circuit: it reads and writes the record. Methods may be
// called by many goroutines at once.
type Member struct {
	*knowledge
	cfg Config
	// wake has room for one: Run has something to do before its time.
	wake  chan struct{}
	queue queue
	// running: Run stores what there is to store.
	running atomic.Bool
	// asking is held, by having sent to it, from before the record is read or written until what
	// came of it is adopted: so what is adopted is never older than what was. It is taken before
	// the knowledge's lock.
	asking chan struct{}
	looked time.Time // when the last good read of the record began; guarded by asking
}

// New makes one; nothing happens before Run.
func New(cfg Config) *Member {
	cfg = cfg.withDefaults()
	return &Member{
		cfg: cfg, knowledge: &knowledge{policy: cfg.Policy, self: cfg.Instance, changed: make(chan struct{})},
		wake: make(chan struct{}, 1), asking: make(chan struct{}, 1),
	}
}

// wakeRun has Run look for something to do.
func (m *Member) wakeRun() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}
