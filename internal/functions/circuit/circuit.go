package circuit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	// Poll is how often a store is looked at that cannot be watched (and, ten times rarer, one that can); 0: 1 s.
	Poll time.Duration
	// OnChange is told of every change of state that this member sees, once each, in order; quick, and without asking the
	// member for more than Record. nil: nobody.
	OnChange func(was, is breaker.Record)
	// Log; nil: slog.Default(). Each change of state is a line, and a store that fails one now and then.
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
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = c.Log.With("hub", c.Group.Hub, "group", c.Group.Group, "function", c.Function)
	return c
}

// callTimeout bounds one call of the store.
const callTimeout = 5 * time.Second

// Member is one instance's part in a circuit. Methods may be called by many goroutines at once.
type Member struct {
	cfg Config
	// gate is the pass of a closed circuit; nil: it is not closed, or nothing is known. It follows record, and is all that Wait looks
	// at while things are well.
	gate atomic.Pointer[Pass]
	// wake has room for one: Run has something to do before its time.
	wake chan struct{}
	// running: Run stores what there is to store.
	running atomic.Bool
	// asking is held, by having sent to it, from before the record is read or written until what came of it is
	// adopted: so what is adopted is never older than what was. It is taken before mu.
	asking chan struct{}
	looked time.Time // when the last good read of the record began; guarded by asking

	mu sync.Mutex
	// Guarded by mu. record, version and since change only while asking is held, too.
	known   bool
	record  breaker.Record
	version processor.Version
	since   time.Time     // when version was first seen
	doubt   time.Time     // since when an older record is read; zero: it is not
	changed chan struct{} // closed and made anew with every new term
	window  breaker.Window
	samples []breaker.Sample // of this term
	others  []breaker.Seen   // never changed, only replaced
	waiting int              // how many have an event to try
	probe   probe
}

// New makes one; nothing happens before Run.
func New(cfg Config) *Member {
	return &Member{
		cfg:     cfg.withDefaults(),
		wake:    make(chan struct{}, 1),
		asking:  make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
}

// Record is the circuit as last seen, and how many failures within the window are known here. Before the first
// good read its State is empty.
func (m *Member) Record() (breaker.Record, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, m.failuresLocked(time.Now())
}

// Changed is closed when the circuit is no longer as Record told: for those who make calls that an opening should end.
// Who wants to miss nothing takes it before asking Record.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *Member) failuresLocked(now time.Time) int {
	within := m.cfg.Policy.Within
	return breaker.Sum(m.record.Term, within, m.window.Tally(within, now), m.others, now)
}

// viewLocked is what is known here; an incident's name is added where one begins.
func (m *Member) viewLocked(now time.Time) breaker.View {
	return breaker.View{
		Record:    m.record,
		Unchanged: now.Sub(m.since),
		Failures:  m.failuresLocked(now),
		Samples:   m.samples,
		Self:      m.cfg.Instance,
		Ready:     m.waiting > 0,
		Now:       now,
	}
}

// wakeRun has Run look for something to do.
func (m *Member) wakeRun() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// sleep waits, or gives ctx's cause.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
