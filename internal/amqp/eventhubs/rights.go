package eventhubs

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
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

// rights are what a connection was granted, and the links that need it. When the last grant that
// carries a link has expired, or was revoked, the link ends. One timer serves all links.
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
	// vigil is for the connection as a whole.
	vigil vigil
}

// guard is a link that needs a right.
type guard struct {
	entity auth.Entity
	need   auth.Rights
	// end ends the link, whose last grant is over: it has expired, or was revoked. No lock is held.
	end func(why error)
	// until is when the link's grants end, as far as was known when it was last looked at;
	// zero: never. Guarded by the mutex of the rights.
	until time.Time
}

// add takes a grant in. One that gives the same as another replaces it, if it lasts longer.
func (r *rights) add(g auth.Grant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.grants, func(other auth.Grant) bool { return slices.Equal(other.Scopes, g.Scopes) })
	if at >= 0 {
		if known := r.grants[at].Expires; g.Expires.IsZero() || !known.IsZero() && !g.Expires.Before(known) {
			r.grants[at] = g
		}
		return nil
	}
	now := time.Now()
	if len(r.grants) >= maxGrants {
		r.grants = slices.DeleteFunc(r.grants, func(g auth.Grant) bool { return g.Expired(now.Add(-grace)) || !g.Stands() })
	}
	if len(r.grants) >= maxGrants {
		return errTooManyGrants
	}
	r.grants = append(r.grants, g)
	return nil
}

// allow reports whether a right to an entity was granted. A need of zero means any right.
func (r *rights) allow(at auth.Entity, need auth.Rights) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(r.grants, func(g auth.Grant) bool { return g.Allows(at, need, now) })
}

// granted gives the grant by which a right to an entity is used and counted: the first that is good.
func (r *rights) granted(at auth.Entity, need auth.Rights) (g auth.Grant, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, g := range r.grants {
		if g.Allows(at, need, now) {
			return g, true
		}
	}
	return auth.Grant{}, false
}

// any reports whether anything at all was granted that is still good.
func (r *rights) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(r.grants, func(g auth.Grant) bool { return !g.Expired(now) && g.Opens() })
}

// watch sees to it that a link ends with its rights. It is false if those have ended already.
func (r *rights) watch(g *guard) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.untilLocked(g, time.Now())
	if !ok {
		return false
	}
	if r.guards == nil {
		r.guards = make(map[*guard]struct{})
	}
	g.until = until
	r.guards[g] = struct{}{}
	r.armLocked()
	return true
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
	r.restLocked()
	r.mu.Unlock()
	r.sweeps.Wait()
}

// review ends what stood on policies, keys or hubs that are not there any more. It is
// called whenever policies have changed.
func (r *rights) review() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	revoked := false
	left := r.grants[:0]
	for _, g := range r.grants {
		trimmed, ended := g.Trimmed()
		revoked = revoked || ended
		if len(trimmed.Scopes) > 0 {
			left = append(left, trimmed)
		}
	}
	clear(r.grants[len(left):])
	if r.grants = left; !revoked {
		return
	}
	over := r.overLocked(func(*guard) bool { return true })
	r.armLocked()
	r.awaitLocked(time.Now())
	r.sweeps.Go(func() {
		for _, g := range over {
			g.end(auth.ErrRevoked)
		}
	})
}

// untilLocked gives the time when the last of the grants ends that carry a link at that time; the
// zero time if one never does.
func (r *rights) untilLocked(g *guard, now time.Time) (until time.Time, ok bool) {
	for _, grant := range r.grants {
		if !grant.Allows(g.entity, g.need, now) {
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

// overLocked takes out those of the links looked at that have no rights left. For the
// others the time is set anew: their tokens were renewed meanwhile.
func (r *rights) overLocked(look func(*guard) bool) (over []*guard) {
	late := time.Now().Add(-grace)
	for g := range r.guards {
		if !look(g) {
			continue
		}
		if until, ok := r.untilLocked(g, late); ok {
			g.until = until
			continue
		}
		over = append(over, g)
		delete(r.guards, g)
	}
	return over
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

// sweep ends the links whose rights have expired.
func (r *rights) sweep() {
	defer r.sweeps.Done()
	r.mu.Lock()
	late := time.Now().Add(-grace)
	over := r.overLocked(func(g *guard) bool { return !g.until.IsZero() && !late.Before(g.until) })
	r.due = time.Time{}
	r.armLocked()
	r.mu.Unlock()
	for _, g := range over {
		g.end(&auth.ExpiredError{At: g.until})
	}
}
