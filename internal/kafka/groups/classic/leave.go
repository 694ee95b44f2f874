package classic

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// Leaver is somebody who leaves. A static member may be named by its instance alone: operators do so.
type Leaver struct{ Member, Instance string }

// Leave takes members out, and says for each whether it was one.
func (g *Group) Leave(now time.Time, all []Leaver) ([]error, Effect) {
	errs, gone := make([]error, len(all)), false
	for i, l := range all {
		if _, given := g.pending[l.Member]; given && l.Instance == "" {
			delete(g.pending, l.Member)
			gone = true
			continue
		}
		m, err := g.known(l.Member, l.Instance)
		if l.Member == "" {
			if m, err = g.instance(l.Instance), nil; m == nil {
				err = member.ErrUnknown
			}
		}
		if errs[i] = err; err == nil {
			g.remove(m)
			gone = true
		}
	}
	if gone {
		g.removed(now)
	}
	return errs, g.take()
}

// Abandon is for a request that waits while its connection has ended: its ticket is not answered any more. A
// member that never was in a generation is gone with it, and others have their session time-out to come back.
func (g *Group) Abandon(now time.Time, t Ticket) Effect {
	at := slices.IndexFunc(g.order, func(m *one) bool { return m.joining == t || m.syncing == t })
	if t == 0 || at < 0 {
		return g.take()
	}
	m := g.order[at]
	if m.syncing == t {
		m.syncing, m.synced = 0, false
	} else {
		m.joining = 0
	}
	m.heard(now)
	if m.fresh {
		g.remove(m)
		g.removed(now)
	}
	return g.take()
}

// Tick does what is due: it removes who was not heard of, and ends the wait for members.
func (g *Group) Tick(now time.Time) Effect {
	gone := false
	for id, until := range g.pending {
		if !now.Before(until) {
			delete(g.pending, id)
			gone = true
		}
	}
	late := !g.deadline.IsZero() && !now.Before(g.deadline)
	for _, m := range slices.Clone(g.order) {
		if !m.waits() && !now.Before(m.expires) || late && g.state != Preparing && !m.synced {
			g.remove(m)
			gone = true
		}
	}
	switch {
	case late && g.state == Preparing:
		clear(g.pending) // they may still join, as new ones
		g.complete(now)
	case gone:
		g.removed(now)
	case late && g.state == Stable: // all have asked, the last of them by coming back as a static member
		g.deadline = time.Time{}
	}
	return g.take()
}

// Next is when Tick has something to do; zero: never.
func (g *Group) Next() time.Time {
	next := g.deadline
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, until := range g.pending {
		sooner(until)
	}
	for _, m := range g.order {
		if !m.waits() {
			sooner(m.expires)
		}
	}
	return next
}
