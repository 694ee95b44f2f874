package blob

import "time"

// Lease is who alone may write. The zero value is none. Nothing happens when it ends: its
// state is asked for with the time.
type Lease struct {
	// ID is that of the newest lease, also after it has ended; empty if there is none, or
	// if it was given back or written over since.
	ID string `json:"id,omitempty"`
	// Duration is what it was acquired for; negative means for ever.
	Duration time.Duration `json:"duration,omitempty"`
	// Ends is when it expires, zero for one without end.
	Ends time.Time `json:"ends,omitzero"`
	// Breaks is when its break is complete; zero if nobody breaks it.
	Breaks time.Time `json:"breaks,omitzero"`
}

// LeaseState is what becomes of a lease.
type LeaseState int

const (
	LeaseAvailable LeaseState = iota
	LeaseHeld
	LeaseExpired
	LeaseBreaking
	LeaseBroken
)

// State at a time.
func (l Lease) State(now time.Time) LeaseState {
	switch {
	case l.ID == "":
		return LeaseAvailable
	case !l.Breaks.IsZero() && now.Before(l.Breaks):
		return LeaseBreaking
	case !l.Breaks.IsZero():
		return LeaseBroken
	case !l.Ends.IsZero() && !now.Before(l.Ends):
		return LeaseExpired
	}
	return LeaseHeld
}

// Locked reports whether writing takes the lease's id.
func (l Lease) Locked(now time.Time) bool {
	state := l.State(now)
	return state == LeaseHeld || state == LeaseBreaking
}

// LeaseAction is what is to be done to a lease.
type LeaseAction struct {
	Kind LeaseKind
	// ID is the lease that is renewed, changed or released.
	ID string
	// Proposed is the id that an acquired or changed lease is to have.
	Proposed string
	// Duration of an acquired one: 15 to 60 s, or negative for ever.
	Duration time.Duration
	// Period is how long a broken one may last yet, at most 60 s; nil for as long as it
	// would, and for one without end not at all.
	Period *time.Duration
}

// LeaseKind is the kind of a LeaseAction.
type LeaseKind int

const (
	AcquireLease LeaseKind = iota
	RenewLease
	ChangeLease
	ReleaseLease
	BreakLease
)

const (
	minLease = 15 * time.Second
	maxLease = 60 * time.Second
)

// apply gives the lease as the action leaves it. The rules are those of the table
// "outcomes of lease operations" of the blob service.
func (l Lease) apply(a LeaseAction, now time.Time) (Lease, error) {
	switch a.Kind {
	case AcquireLease:
		return l.acquire(a, now)
	case RenewLease:
		// An expired lease comes back, too, as nobody has written since: a write would have
		// forgotten it.
		switch state := l.State(now); {
		case l.ID == "" || l.ID != a.ID:
			return l, ErrLeaseMismatch
		case state == LeaseBreaking || state == LeaseBroken:
			return l, ErrLeaseBroken
		}
		return l.from(now), nil
	case ChangeLease:
		return l.change(a, now)
	case ReleaseLease:
		if l.ID == "" || l.ID != a.ID {
			return l, ErrLeaseMismatch
		}
		return Lease{}, nil
	}
	return l.breakUp(a, now)
}

func (l Lease) acquire(a LeaseAction, now time.Time) (Lease, error) {
	if a.Duration >= 0 && (a.Duration < minLease || a.Duration > maxLease) {
		return l, ErrLeaseDuration
	}
	switch l.State(now) {
	case LeaseHeld:
		if l.ID != a.Proposed {
			return l, ErrLeasePresent
		}
	case LeaseBreaking:
		if l.ID != a.Proposed {
			return l, ErrLeasePresent
		}
		return l, ErrLeaseBreaking
	}
	return Lease{ID: a.Proposed, Duration: a.Duration}.from(now), nil
}

// from has the lease's time begin.
func (l Lease) from(now time.Time) Lease {
	if l.Ends = (time.Time{}); l.Duration > 0 {
		l.Ends = now.Add(l.Duration)
	}
	return l
}

// change does not make the lease any longer.
func (l Lease) change(a LeaseAction, now time.Time) (Lease, error) {
	switch l.State(now) {
	case LeaseAvailable, LeaseExpired, LeaseBroken:
		return l, ErrLeaseNotPresent
	case LeaseBreaking:
		if l.ID == a.ID {
			return l, ErrLeaseUnchangeable
		}
	}
	if l.ID != a.ID && l.ID != a.Proposed {
		return l, ErrLeaseMismatch
	}
	l.ID = a.Proposed
	return l, nil
}

func (l Lease) breakUp(a LeaseAction, now time.Time) (Lease, error) {
	if a.Period != nil && (*a.Period < 0 || *a.Period > maxLease) {
		return l, ErrLeaseDuration
	}
	state := l.State(now)
	if state == LeaseAvailable {
		return l, ErrLeaseNotPresent
	}
	if state == LeaseBroken {
		return l, nil
	}
	// A break makes a lease shorter, never longer; one without end it ends at once.
	var left time.Duration
	if !l.Breaks.IsZero() {
		left = max(l.Breaks.Sub(now), 0)
	} else if !l.Ends.IsZero() {
		left = max(l.Ends.Sub(now), 0)
	}
	if a.Period != nil && (*a.Period < left || l.Ends.IsZero() && l.Breaks.IsZero()) {
		left = *a.Period
	}
	l.Breaks = now.Add(left)
	return l, nil
}

// Left is how long a breaking lease lasts yet, in whole seconds.
func (l Lease) Left(now time.Time) time.Duration {
	if l.Breaks.IsZero() {
		return 0
	}
	return max(l.Breaks.Sub(now), 0).Round(time.Second)
}

// permits gives the reason why somebody who names a lease, or none, may not write; nil if it may.
func (l Lease) permits(id string, now time.Time) error {
	if l.Locked(now) && id == "" {
		return ErrLeaseNeeded
	}
	return l.permitsReader(id, now)
}

// permitsReader is the same for reading, which takes no lease, but a right one if any.
func (l Lease) permitsReader(id string, now time.Time) error {
	switch {
	case id == "":
		return nil
	case l.Locked(now) && l.ID == id:
		return nil
	case l.Locked(now):
		return ErrLeaseOther
	case l.ID == id:
		return ErrLeaseLost
	}
	return ErrLeaseAbsent
}

// afterWrite forgets a lease that has ended, so that nobody renews it over that write.
func (l Lease) afterWrite(now time.Time) Lease {
	if l.Locked(now) {
		return l
	}
	return Lease{}
}
