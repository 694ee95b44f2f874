package quota

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Limit is what may be published in a second; zero: any number. Where there are no events, it is
// requests that are counted as such.
type Limit struct {
	Events int64 `json:"events,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
}

// Error: more is published than a quota allows. Nothing of it was taken.
type Error struct {
	// What has the quota, in words; Of is what there is too much of.
	What, Of string
	// Wait is when there is room again.
	Wait time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("the quota of %s for %s a second is used up: wait %v and try again, or raise it", e.What, e.Of, e.Seconds())
}

// Seconds is the wait as clients are told it, in whole seconds.
func (e *Error) Seconds() time.Duration {
	return max((e.Wait - rounding + time.Second - 1).Truncate(time.Second), time.Second)
}

// Pause is how long a part of the yard waits that publishes by itself: it asks again now and then,
// since an operator may have raised the quota.
func (e *Error) Pause() time.Duration { return min(e.Wait, maxPause) }

const maxPause = 10 * time.Second

// Meter holds the quota of one thing. Each limit gives what a second is worth at once. A nil Meter
// has no limit, and one without a limit takes no lock.
type Meter struct {
	what    string
	unit    string
	nodes   func() int // nil: this is the only one
	limited atomic.Bool

	mu            sync.Mutex
	events, bytes level // guarded by mu
	limit         Limit // guarded by mu
	share         int   // of how many nodes the levels are a share; guarded by mu
}

// NewMeter makes one; what and unit are for errors, such as: hub "orders", events.
func NewMeter(what, unit string) *Meter { return &Meter{what: what, unit: unit} }

// Among makes the limits those of several nodes together, of which this one takes an equal share: nodes
// says how many there are, each time that something is taken, and must be quick. It is called before
// the meter is used, and gives the meter back. Nil: there is one node.
func (m *Meter) Among(nodes func() int) *Meter {
	m.nodes = nodes
	return m
}

// Set changes the limits. What was taken within the old ones is within the new ones, too; what is owed
// beyond them is made up for at the new rate, or forgiven where there is no limit any more.
func (m *Meter) Set(l Limit, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = l
	m.setLocked(m.among(), now)
	m.limited.Store(l != Limit{})
}

// among is how many nodes share the limits.
func (m *Meter) among() int {
	if m.nodes == nil {
		return 1
	}
	return max(m.nodes(), 1)
}

func (m *Meter) setLocked(share int, now time.Time) {
	m.share = share
	m.events.set(part(m.limit.Events, share), now)
	m.bytes.set(part(m.limit.Bytes, share), now)
}

func part(limit int64, share int) Rate {
	n := float64(limit) / float64(share)
	return Rate{PerSecond: n, Burst: n}
}

// adaptLocked takes another share where nodes have come or gone.
func (m *Meter) adaptLocked(now time.Time) {
	if share := m.among(); share != m.share {
		m.setLocked(share, now)
	}
}

// Take takes room for a batch of every meter, or of none, and then says with an *Error when there
// is some. A limit that is used up refuses nobody who asks for none of it.
func Take(events, bytes int, now time.Time, meters ...*Meter) error {
	for i, m := range meters {
		if err := m.take(events, bytes, now); err != nil {
			Charge(-events, -bytes, now, meters[:i]...)
			return err
		}
	}
	return nil
}

// Charge takes of every meter whatever there is, for what is known only when it has come. Less than
// nothing is given back, for what was taken in vain.
func Charge(events, bytes int, now time.Time, meters ...*Meter) {
	for _, m := range meters {
		if m != nil && m.limited.Load() {
			m.mu.Lock()
			m.chargeLocked(events, bytes, now)
			m.mu.Unlock()
		}
	}
}

// Room says whether Take would take anything, with its *Error, and takes nothing.
func (m *Meter) Room(events, bytes int, now time.Time) error {
	if m == nil || !m.limited.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roomLocked(events, bytes, now)
}

func (m *Meter) take(events, bytes int, now time.Time) error {
	if m == nil || !m.limited.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.roomLocked(events, bytes, now)
	if err == nil {
		m.chargeLocked(events, bytes, now)
	}
	return err
}

func (m *Meter) roomLocked(events, bytes int, now time.Time) error {
	m.adaptLocked(now)
	of, wait := m.unit, time.Duration(0)
	if events > 0 {
		wait = m.events.wait(now)
	}
	if bytes > 0 {
		if w := m.bytes.wait(now); w > wait {
			of, wait = "bytes", w
		}
	}
	if wait > 0 {
		return &Error{What: m.what, Of: of, Wait: wait}
	}
	return nil
}

func (m *Meter) chargeLocked(events, bytes int, now time.Time) {
	m.adaptLocked(now)
	m.events.charge(float64(events), now)
	m.bytes.charge(float64(bytes), now)
}
