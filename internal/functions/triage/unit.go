package triage

import (
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Unit is events that are called together, and what is known of their failures.
type Unit struct {
	Events ranges.Set `json:"events"`
	// Attempts are the calls that failed in all, Used those since the circuit was last closed, or
	// it was divided, which the policy counts.
	Attempts int `json:"attempts,omitempty"`
	Used     int `json:"used,omitempty"`
	// Deaths are calls in which the instance died, in all; Counted those that count against these
	// very events (Work.Wary); Ended the calls that have ended since the last of them, of which the
	// fifth puts an end to suspicion.
	Deaths  int `json:"deaths,omitempty"`
	Counted int `json:"counted,omitempty"`
	Ended   int `json:"ended,omitempty"`
	// Down are the last calls in a row that failed through no fault of these events; Accused:
	// others have succeeded between them, so that it may be their fault after all (Sight.Judge).
	Down    int  `json:"down,omitempty"`
	Accused bool `json:"accused,omitempty"`
	// Calling: a call has begun, and nothing more is known.
	Calling bool `json:"calling,omitempty"`
	// Halved: the whole had used up its retries, and this is a part of it: one call decides whether
	// it is divided further.
	Halved bool `json:"halved,omitempty"`
	// Reason is the newest error, shortened.
	Reason string `json:"reason,omitempty"`
}

// maxReasonBytes is what is kept of a unit's error; an Intent, which makes a poison event, keeps
// more.
const (
	maxReasonBytes       = 512
	maxIntentReasonBytes = 1024
	// maxCount bounds all counts, so that none ever overflows however long something fails.
	maxCount = 1 << 30
	// acquitted is after how many calls that ended a unit's deaths were not its doing.
	acquitted = 5
)

// Tries is how many calls there were that came to nothing.
func (u Unit) Tries() int { return min(u.Attempts+u.Deaths, maxCount) }

// Anew gives the unit with a fresh round of tries, as after a circuit was closed. What it went
// through stays known, and what its instances die of has nothing to do with a circuit.
func (u Unit) Anew() Unit {
	u.Used, u.Halved, u.Calling, u.Down, u.Accused = 0, false, false, 0, false
	return u
}

// blank: nothing is known of it that a record would have to keep.
func (u Unit) blank() bool {
	return u.Attempts == 0 && u.Used == 0 && u.Deaths == 0 && u.Counted == 0 && u.Ended == 0 && !u.Calling && !u.Halved
}

// part gives some of the unit's events with what is known of them all. Deaths in company do not
// count against a single event: they may have been the others'. Several are only divided for it,
// which harms none.
func (u Unit) part(events ranges.Set) Unit {
	if events.Len() == 1 && !events.Equal(u.Events) {
		u.Counted = 0
	}
	u.Events = events
	return u
}

// failed is the unit after a call that failed.
func (u Unit) failed(reason string) Unit {
	u = u.ended(reason)
	u.Used, u.Down = min(u.Used+1, maxCount), 0
	return u
}

// down is the unit after a call that failed through no fault of its events: it uses up no retry.
func (u Unit) down(reason string) Unit {
	u = u.ended(reason)
	u.Down = min(u.Down+1, maxCount)
	return u
}

// ended is the unit after a call that came to nothing and has ended, so that it may not be what its
// instances died of.
func (u Unit) ended(reason string) Unit {
	u.Attempts = min(u.Attempts+1, maxCount)
	u.Calling, u.Reason = false, shorten(reason, maxReasonBytes)
	if u.Deaths > 0 {
		u.Ended = min(u.Ended+1, acquitted)
	}
	if u.Ended == acquitted {
		u.Counted = 0
	}
	return u
}

// divide gives both halves of a unit of several events, to be called at once; a single event is
// guilty.
func (u Unit) divide() []Part {
	if u.Events.Len() == 1 {
		return []Part{{Unit: u, Do: PutAway}}
	}
	left, right := u.Events.Halves()
	return []Part{{Unit: u.part(left), Do: Call}, {Unit: u.part(right), Do: Call}}
}

// shorten cuts a text to at most n bytes of valid UTF-8, so that it is the same after being stored.
func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
