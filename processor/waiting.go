package processor

import "time"

// sayWaiting tells why nothing happens, as whoever has just started an instance wants to know.
func (in *instance) sayWaiting(what string, attributes ...any) {
	in.cfg.Log.Info(what, append([]any{"hub", in.group.Hub, "group", in.group.Group, "instance", in.id}, attributes...)...)
}

// sayBeenHere tells, once, that there is a presence of our id.
func (a *heartbeat) sayBeenHere() {
	if !a.said {
		a.said = true
		a.sayWaiting("an instance with this id has been here: waiting to see whether it lives", "at_most", a.watchFor())
	}
}

// sayHeld tells, once, of leases of others that were there when we came: the living share, the dead
// cannot be told from them before their leases have run out.
func (c *coordinator) sayHeld(w world) {
	if c.said {
		return
	}
	c.said = true
	n, last := 0, time.Duration(0)
	for _, l := range w.leases {
		if l.Owner != "" && l.Owner != c.id {
			n++
			last = max(last, l.since.Add(c.observer.lifetime(l.foreign)).Sub(w.now))
		}
	}
	if n > 0 {
		c.sayWaiting("others hold leases: waiting for the living to share, and for leases of the dead to run out",
			"leases", n, "run_out_within", last)
	}
}
