package processor

import (
	"context"
	"time"
)

// Renewal by presence. A thousand leases that are written again every Config.Renew are a thousand
// durable writes, and all say the same: their owner lives. Where the store keeps Lease.Presence a
// lease names the life of its owner's presence instead, and one write of that entry renews all that
// hang on it. Others count such a lease as renewed when the version of either changes.
//
// A compare-and-set of the lease alone could not take it safely then: it would also succeed after
// the owner has renewed it by the other record, as when who takes it was frozen since it looked. So
// a presence that was unchanged for a lease time is ended first, by a compare-and-set of its own, on
// the version that was watched. Of that and the owner's next write one fails. If the owner's does,
// it gives up all that hangs on that life, and begins another, which nothing hangs on.
//
//	owner      presence v7 ──────────────── put on v7: conflict, all that hangs on it is lost
//	                         (a lease time)
//	observer   sees v7 ──────── sees v7, put "ended" on v7 ──▶ claims leases, epoch+1
//
// The owner counts from before its last write of the presence, the observer from when it has read
// it, as with leases: when the life is ended the owner has stopped. A lease that was claimed after
// the presence was last written has its own time, by its own version.
//
// What the owner's write of the presence does not tell it is whether a lease was taken while it
// lives: by force after asking, or by an operator. So its time is extended only after a reading that
// began later and shows the lease as it was; that is one read for all. And an instance of a version
// that does not know such leases would find them unchanged: while the presence of one is there, each
// renews by writing its leases. Who has come since that reading counts from later than the owner.

// due: presence and leases are to be renewed.
func (c *coordinator) due(now time.Time) bool { return !now.Before(c.renewAt) }

// beat rewrites the presence if that is due. It comes before the leases, so that who renews them by
// it needs no other write, and before the reading by which it is proven.
func (c *coordinator) beat(ctx context.Context) error {
	if !c.due(time.Now()) {
		return nil
	}
	return c.presence.write(ctx)
}

// prove extends the time of a lease that hangs on our presence by the presence's last write. Others
// may have taken the lease without ending the presence (by force, or as an operator), or may not
// know such leases: so it is called after a reading that began later, and shows neither.
func (c *coordinator) prove(h *holding) {
	if c.hang && h.lease.Presence == c.presence.life {
		h.pump.ownership.prove(c.presence.began.Add(c.cfg.Lease))
	}
}

// loseHanging gives up what hangs on our presence, which others have ended.
func (c *coordinator) loseHanging() {
	for _, h := range c.held {
		if h.lease.Presence == c.presence.life {
			h.pump.ownership.lose(ErrLeaseLost)
		}
	}
}

// life is what leases are to hang on; empty: nothing, they are written again and again.
func (c *coordinator) life() string {
	if c.hang {
		return c.presence.life
	}
	return ""
}

// renew writes, in one call, the leases that are due, unless they hang on our presence, and releases
// those whose pump has ended. A lease that is missing from the answer is lost.
func (c *coordinator) renew(ctx context.Context) error {
	start := time.Now()
	due := c.due(start)
	var claim []Lease
	for _, h := range c.held {
		if h.pump.ownership.lost() {
			c.forgetEnded(h)
		}
		if l, write := h.next(c.life(), c.presence.life, due); write {
			claim = append(claim, l)
		}
	}
	if len(claim) > 0 {
		if err := c.write(ctx, start, claim); err != nil {
			return err
		}
	}
	if due {
		c.renewAt = start.Add(jitter(c.cfg.Renew))
		whole := c.renewAt.Add(-time.Duration(c.renewAt.Nanosecond()))
		if !c.settled.IsZero() && whole.After(start) {
			c.renewAt = whole // a hundred idle instances in one process wake it once a second
		}
	}
	return nil
}

// next gives the lease as it is to be written now, if at all. on is what leases are to hang on, ours
// the life of our presence.
func (h *holding) next(on, ours string, due bool) (l Lease, write bool) {
	l = h.lease
	switch {
	case h.pump.ownership.lost():
		// Its pump may hang for long, and has the partition no more: nothing is to renew it.
		l.Presence = ""
		return l, h.lease.Presence == ours && !h.pump.hasEnded()
	case h.pump.hasEnded():
		return l.released(), true
	}
	l.Presence = on
	return l, h.lease.Presence != on && h.lease.Presence != "" || due && (on == "" || h.lease.Presence != on)
}

// renewUnread is for when the records can be written but not read: leases that hang on our presence
// cannot be proven then, and are renewed by themselves before they end.
func (c *coordinator) renewUnread(ctx context.Context) error {
	if !c.hang || c.unsure || time.Since(c.presence.began) > c.cfg.Renew || time.Since(c.looked) < c.cfg.Lease/2 {
		return nil
	}
	c.hang = false
	return c.renew(ctx)
}
