package consumer

import "time"

// Deadlines are when members of one group are removed, unless they are heard of: after their session, and
// after their rebalance time-out while they have something to give up. They are not stored: after a
// restart everybody has all its time again.
//
// The coordinator calls Follow with each new state of the group, and Heard with each heartbeat. Deadlines
// are its alone, and have no lock.
type Deadlines struct {
	session time.Duration
	of      map[string]deadline
}

// deadline is that of one member; revoke is zero while there is nothing to give up.
type deadline struct {
	session, revoke time.Time
	revoking        Set // what revoke is about
}

// NewDeadlines makes those of a group whose members are heard of at least once in a session.
func NewDeadlines(session time.Duration) *Deadlines {
	return &Deadlines{session: session, of: make(map[string]deadline)}
}

// Heard begins a member's session anew.
func (d *Deadlines) Heard(member string, now time.Time) {
	if one, known := d.of[member]; known {
		one.session = now.Add(d.session)
		d.of[member] = one
	}
}

// Follow takes over who is a member, and who has what to give up.
func (d *Deadlines) Follow(g *Group, now time.Time) {
	for id := range d.of {
		if g.members[id] == nil {
			delete(d.of, id)
		}
	}
	for id, m := range g.members {
		one, known := d.of[id]
		if !known {
			one.session = now.Add(d.session)
		}
		switch {
		case len(m.Revoking) == 0:
			one.revoke, one.revoking = time.Time{}, nil
		case !m.Revoking.Equal(one.revoking): // something else than before: the time is for each
			one.revoke, one.revoking = now.Add(m.RebalanceTimeout), m.Revoking
		}
		d.of[id] = one
	}
}

// next is when the member is removed.
func (o deadline) next() time.Time {
	if !o.revoke.IsZero() && o.revoke.Before(o.session) {
		return o.revoke
	}
	return o.session
}

// Due are the members whose time is over.
func (d *Deadlines) Due(now time.Time) (members []string) {
	for id, one := range d.of {
		if !one.next().After(now) {
			members = append(members, id)
		}
	}
	return members
}

// Next is when somebody's time will be over; zero while there is nobody.
func (d *Deadlines) Next() (first time.Time) {
	for _, one := range d.of {
		if at := one.next(); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
