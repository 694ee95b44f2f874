package eventhubs

import "time"

// vigil ends a connection that has no rights for too long: one that was opened and never
// put a token, or that has lost what it had. Without it strangers could take all the
// connections there may be, and keep them by a sign of life now and then.
type vigil struct {
	// patience is how long a connection may be without rights; zero: for ever. giveUp ends
	// it. Both are set once, before anything else is done with the rights.
	patience time.Duration
	giveUp   func()
	// timer is the look to come, or the last one. Guarded by the mutex of the rights.
	timer *time.Timer
}

// await begins a vigil.
func (r *rights) await(patience time.Duration, giveUp func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vigil = vigil{patience: patience, giveUp: giveUp}
	r.awaitLocked(time.Now())
}

// awaitLocked has a look taken when patience has run out for who has no rights from then on.
func (r *rights) awaitLocked(from time.Time) {
	if r.ended || r.vigil.patience == 0 {
		return
	}
	r.restLocked()
	r.sweeps.Add(1)
	r.vigil.timer = time.AfterFunc(time.Until(from.Add(r.vigil.patience)), r.look)
}

func (r *rights) restLocked() {
	if r.vigil.timer != nil && r.vigil.timer.Stop() {
		r.sweeps.Done()
	}
	r.vigil.timer = nil
}

// look gives up where there are no rights, nor were any lately.
func (r *rights) look() {
	defer r.sweeps.Done()
	if r.forsaken() {
		r.vigil.giveUp()
	}
}

// forsaken reports whether patience has run out. If not it has another look taken later, unless
// there are rights that never expire: if they are revoked, review takes the look.
func (r *rights) forsaken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	var last time.Time
	for _, g := range r.grants {
		switch {
		case !g.Opens():
		case g.Expires.IsZero():
			return false
		case g.Expires.After(last):
			last = g.Expires
		}
	}
	if !time.Now().Before(last.Add(r.vigil.patience)) {
		return true
	}
	r.awaitLocked(last)
	return false
}
