package eventhubs

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
)

const (
	// grace is how long a link lives on when its token has expired: clients renew while
	// links stay up, and some come a little late.
	grace = 5 * time.Second
	// maxGrants bounds what one connection may put. Some clients put a token for each
	// partition they read.
	maxGrants = 4096
)

// errTooManyGrants: the connection has put more tokens than any client needs.
var errTooManyGrants = errors.New("too many tokens were put on this connection")

// rights are what a connection was granted, and the links that stand on it. When the
// last grant that carries a link has expired, the link is told so. One timer does for
// all of them.
type rights struct {
	mu sync.Mutex
	// grants, guards and the rest are guarded by mu.
	grants []auth.Grant
	guards map[*guard]struct{}
	// timer is the sweep to come, or the last one; sweeps counts those to come or running.
	timer  *time.Timer
	due    time.Time
	ended  bool
	sweeps sync.WaitGroup
}

// guard is a link that needs a right.
type guard struct {
	path string
	need auth.Rights
	// expire ends the link, whose last grant ended at that time. No lock is held.
	expire func(at time.Time)
	// until is when the link's grants end, as far as was known when it was last looked at;
	// zero: never. Guarded by the mutex of the rights.
	until time.Time
}

// add takes a grant in. One that gives the same as another replaces it, if it lasts
// longer.
func (r *rights) add(g auth.Grant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.grants, func(other auth.Grant) bool { return slices.Equal(other.Scopes, g.Scopes) })
	if at >= 0 {
		if outlasts(g, r.grants[at]) {
			r.grants[at] = g
		}
		return nil
	}
	now := time.Now()
	if len(r.grants) >= maxGrants {
		r.grants = slices.DeleteFunc(r.grants, func(g auth.Grant) bool { return g.Expired(now.Add(-grace)) })
	}
	if len(r.grants) >= maxGrants {
		return errTooManyGrants
	}
	r.grants = append(r.grants, g)
	return nil
}

func outlasts(g, other auth.Grant) bool {
	if g.Expires.IsZero() || other.Expires.IsZero() {
		return g.Expires.IsZero()
	}
	return !g.Expires.Before(other.Expires)
}

// allow tells whether a right to a path was granted. A need of zero asks for any right.
func (r *rights) allow(path string, need auth.Rights) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(r.grants, func(g auth.Grant) bool { return g.Allows(path, need, now) })
}

// watch sees to it that a link ends with its rights.
func (r *rights) watch(g *guard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guards == nil {
		r.guards = make(map[*guard]struct{})
	}
	// Not allowed any more, since a moment: the sweep will say so.
	g.until = time.Now()
	if until, ok := r.untilLocked(g, g.until); ok {
		g.until = until
	}
	r.guards[g] = struct{}{}
	r.armLocked()
}

// unwatch is for links that have ended.
func (r *rights) unwatch(g *guard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.guards, g)
}

// stop ends the watching and waits for a sweep that runs.
func (r *rights) stop() {
	r.mu.Lock()
	r.ended = true
	r.disarmLocked()
	r.mu.Unlock()
	r.sweeps.Wait()
}

// untilLocked tells when the last of the grants ends that carry a link at that time; the
// zero time if one never does.
func (r *rights) untilLocked(g *guard, now time.Time) (until time.Time, ok bool) {
	for _, grant := range r.grants {
		if !grant.Allows(g.path, g.need, now) {
			continue
		}
		if grant.Expires.IsZero() {
			return time.Time{}, true
		}
		if !ok || grant.Expires.After(until) {
			until, ok = grant.Expires, true
		}
	}
	return until, ok
}

// armLocked sets the timer to the first link that may have to end.
func (r *rights) armLocked() {
	if r.ended {
		return
	}
	var first time.Time
	for g := range r.guards {
		if !g.until.IsZero() && (first.IsZero() || g.until.Before(first)) {
			first = g.until
		}
	}
	if first.Equal(r.due) {
		return
	}
	r.disarmLocked()
	if r.due = first; first.IsZero() {
		return
	}
	r.sweeps.Add(1)
	r.timer = time.AfterFunc(time.Until(first.Add(grace)), r.sweep)
}

func (r *rights) disarmLocked() {
	if r.timer != nil && r.timer.Stop() {
		r.sweeps.Done()
	}
	r.timer, r.due = nil, time.Time{}
}

// sweep ends the links whose rights have ended.
func (r *rights) sweep() {
	defer r.sweeps.Done()
	for _, g := range r.expired() {
		g.expire(g.until)
	}
}

// expired takes out the links that have no rights left. For the others the time is set
// anew: their tokens were renewed meanwhile.
func (r *rights) expired() (over []*guard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := time.Now().Add(-grace)
	for g := range r.guards {
		if g.until.IsZero() || late.Before(g.until) {
			continue
		}
		if until, ok := r.untilLocked(g, late); ok {
			g.until = until
			continue
		}
		over = append(over, g)
		delete(r.guards, g)
	}
	r.due = time.Time{}
	r.armLocked()
	return over
}
