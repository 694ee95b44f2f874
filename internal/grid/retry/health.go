package retry

import (
	"cmp"
	"time"
)

// Health is what is known of an endpoint (G7). The zero value is a well one.
//
//	          After failures in a row           Until comes
//	Well ──→ Suffering ──────────→ Waiting ──────────────→ Probing
//	 ↑           │                    ↑                      │  │
//	 │           │ success            └───── failure ────────┘  │
//	 └───────────┴───────────────────────────── success ────────┘
//
// A success makes well at once from anywhere: that of a delivery which was on its way when
// probation began shows as much as that of a probe.
type Health struct {
	// Failures in a row that are a sign of illness.
	Failures int
	// Until is when probation may end: a probe is allowed then. Zero: not on probation.
	Until time.Time
	// Trips counts the probations in a row, for longer ones.
	Trips int
	// Last is the newest failure's outcome, Since when probation began.
	Last  Outcome
	Since time.Time
}

// Probation says when endpoints are put aside. The zero value of each field means its default.
type Probation struct {
	// After so many failed deliveries in a row; zero: 10; negative: never. A delivery is one
	// request, of one event or of a batch: if the events of a batch counted, one hiccup of a
	// receiver that takes batches would put it aside.
	After int
	// Waits by outcome, doubled each time in a row up to Cap. Those not given are that of outcome
	// "", and where that is not given either, reference §13's. Cap zero: 3 h.
	Waits map[Outcome]time.Duration
	Cap   time.Duration
}

const (
	defaultAfter = 10
	defaultCap   = 3 * time.Hour
	defaultWait  = 10 * time.Second // of outcomes that reference §13 does not name
)

var defaultWaits = map[Outcome]time.Duration{
	Busy:            10 * time.Second,
	TimedOut:        10 * time.Second,
	SocketError:     30 * time.Second,
	NotFound:        5 * time.Minute,
	ResolutionError: 5 * time.Minute,
	Disabled:        5 * time.Minute,
	Full:            5 * time.Minute,
	Unauthorized:    5 * time.Minute,
	Forbidden:       5 * time.Minute,
}

// After gives the health after a delivery.
func (h Health) After(p Probation, o Outcome, now time.Time) Health {
	if o == Delivered {
		return Health{}
	}
	if !Ill(o) {
		return h
	}
	h.Failures++
	h.Last = o
	switch h.State(now) {
	case Probing:
		h.Trips++
		h.Until = now.Add(p.wait(o, h.Trips))
	case Suffering:
		if after := cmp.Or(p.After, defaultAfter); after > 0 && h.Failures >= after {
			h.Trips, h.Since = 1, now
			h.Until = now.Add(p.wait(o, 1))
		}
	case Well, Waiting:
		// Waiting: it was on its way when probation began, and shows nothing new.
	}
	return h
}

// State of an endpoint at a time.
type State string

const (
	Well      State = "healthy"
	Suffering State = "failing"   // failures, not yet on probation
	Waiting   State = "probation" // nothing is sent
	Probing   State = "probing"   // one delivery may go out
)

// State gives it.
func (h Health) State(now time.Time) State {
	switch {
	case h.Until.IsZero() && h.Failures == 0:
		return Well
	case h.Until.IsZero():
		return Suffering
	case now.Before(h.Until):
		return Waiting
	}
	return Probing
}

// wait is how long the nth probation in a row lasts. It is doubled step by step up to the cap, so
// that no count of trips overflows.
func (p Probation) wait(o Outcome, trips int) time.Duration {
	limit := cmp.Or(p.Cap, defaultCap)
	wait, given := p.Waits[o]
	if !given {
		wait, given = p.Waits[""]
	}
	if !given {
		wait = cmp.Or(defaultWaits[o], defaultWait)
	}
	for ; trips > 1 && 0 < wait && wait < limit; trips-- {
		if wait > limit/2 {
			return limit
		}
		wait *= 2
	}
	return min(wait, limit)
}
