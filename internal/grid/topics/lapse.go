package topics

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// deadline is when the definition next changes by itself; zero: never. No definition has none.
func (r *record) deadline() time.Time {
	if r == nil {
		return time.Time{}
	}
	var first time.Time
	sooner := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if r.State == Pending {
		sooner(r.Validation.Until)
	}
	if r.Proposal != nil {
		sooner(r.Proposal.Validation.Until)
	}
	if r.ends() {
		sooner(r.Expires)
	}
	return first
}

// ends reports whether the subscription ends when it expires: others get nothing anyway, and their
// state says why. A Pending one stays Pending until its endpoint has agreed, or is given up: an
// Expired one is delivered what is left, and goes on without being asked when it is prolonged.
func (r *record) ends() bool { return r.State == Active || r.State == Paused }

// lapse makes the changes that are due by now, and reports whether there were any.
//
// An update whose endpoint has neither agreed nor refused is forgotten, as if it had not been
// asked for: that is what a crash in mid-handshake leaves.
func (r *record) lapse(now time.Time) bool {
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	changed := false
	if r.Proposal != nil && due(r.Proposal.Validation.Until) {
		r.Proposal, changed = nil, true
	}
	if r.ends() && due(r.Expires) {
		r.State, r.Why, changed = Expired, "it expired at "+r.Expires.UTC().Format(time.RFC3339), true
	}
	if r.State == Pending && due(r.Validation.Until) {
		r.State, changed = Failed, true
		wayBack := "create or update it again"
		if !r.failedFirst() { // the name of one that was Active before is taken
			wayBack = "update it, with this endpoint or another"
		}
		r.Why = fmt.Sprintf("the endpoint had not agreed by %s: %s", r.Validation.Until.UTC().Format(time.RFC3339), wayBack)
	}
	if changed && r.State != Pending {
		r.Validation.close()
	}
	return changed
}

// close takes the link back. The code stays: by it whoever asked knows its handshake again.
func (v *Validation) close() { v.Token, v.Until, v.Awaiting = "", time.Time{}, false }

const (
	// lapsePause is how long to wait with a lapse that could not be stored.
	lapsePause = time.Second
	// lapseSpread is how much later than its time a definition may lapse.
	lapseSpread = time.Second
)

// keepTime lets definitions lapse when their time has come, until ctx ends. Every node does: each waits a random part
// of a second longer, so that most hear that another has stored the lapse, and do not try in vain.
func (k *Registry) keepTime(ctx context.Context) {
	for ctx.Err() == nil {
		keys, next := k.view.deadlines.due(time.Now())
		for _, key := range keys {
			k.lapse(ctx, key)
		}
		var due <-chan time.Time
		if !next.IsZero() {
			due = time.After(time.Until(next) + rand.N(lapseSpread))
		}
		select {
		case <-due:
		case <-k.view.deadlines.sooner:
		case <-ctx.Done():
		}
	}
}

func (k *Registry) lapse(ctx context.Context, key string) {
	lapsed := false
	s, err := k.change(ctx, key, func(r *record) error {
		if lapsed = r.lapse(time.Now()); !lapsed {
			return mirror.ErrUnchanged
		}
		return nil
	})
	switch {
	case err == nil && lapsed:
		k.log.Info("subscription lapsed", "subscription", s.Name, "source", s.Source, "state", s.State, "why", s.Why)
	case err == nil:
		k.view.deadlines.set(key, s.deadline()) // somebody was faster, or it was too early
	case errors.Is(err, meta.ErrNotFound), ctx.Err() != nil:
	default:
		k.log.Warn("subscription could not lapse, trying again", "key", key, "error", err)
		k.view.deadlines.set(key, time.Now().Add(lapsePause))
	}
}

// deadlines are the moments at which definitions change by themselves, at most one for each key.
// To find those that are due it looks at all: that takes less than storing the change of one.
type deadlines struct {
	// sooner receives when there is an earlier one than due last gave as the next.
	sooner chan struct{}

	mu   sync.Mutex
	all  map[string]time.Time // guarded by mu
	next time.Time            // the earliest that anybody was notified of; guarded by mu
}

func newDeadlines() *deadlines {
	return &deadlines{sooner: make(chan struct{}, 1), all: make(map[string]time.Time)}
}

// set notes the moment of a key, in place of any other; the zero time is none.
func (d *deadlines) set(key string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.IsZero() {
		delete(d.all, key)
		return
	}
	d.all[key] = at
	if d.next.IsZero() || at.Before(d.next) {
		d.next = at
		select {
		case d.sooner <- struct{}{}:
		default: // an earlier notification has yet to be received
		}
	}
}

// due takes the keys whose moment has come, and gives the next moment; zero: there is none.
func (d *deadlines) due(now time.Time) (keys []string, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, at := range d.all {
		switch {
		case !at.After(now):
			delete(d.all, key)
			keys = append(keys, key)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.Sort(keys)
	d.next = next
	return keys, next
}
