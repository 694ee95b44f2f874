package blob

import (
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The table of outcomes of lease operations, by state.
func TestLeaseOutcomes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	minute := 60 * time.Second
	free := Lease{}
	held := Lease{ID: "A", Duration: minute, Ends: now.Add(20 * time.Second)}
	endless := Lease{ID: "A", Duration: -1}
	expired := Lease{ID: "A", Duration: minute, Ends: now.Add(-time.Second)}
	breaking := Lease{ID: "A", Duration: minute, Ends: now.Add(20 * time.Second), Breaks: now.Add(10 * time.Second)}
	broken := Lease{ID: "A", Duration: minute, Ends: now.Add(20 * time.Second), Breaks: now.Add(-time.Second)}
	acquire := func(id string) LeaseAction { return LeaseAction{Kind: AcquireLease, Proposed: id, Duration: minute} }
	renew := func(id string) LeaseAction { return LeaseAction{Kind: RenewLease, ID: id} }
	change := func(id, to string) LeaseAction { return LeaseAction{Kind: ChangeLease, ID: id, Proposed: to} }
	release := func(id string) LeaseAction { return LeaseAction{Kind: ReleaseLease, ID: id} }
	breakUp := LeaseAction{Kind: BreakLease}
	within := func(d time.Duration) LeaseAction { return LeaseAction{Kind: BreakLease, Period: &d} }

	fresh := func(id string) Lease { return Lease{ID: id, Duration: minute, Ends: now.Add(minute)} }
	until := func(l Lease, left time.Duration) Lease { l.Breaks = now.Add(left); return l }
	renamed := held
	renamed.ID = "B"

	tests := []struct {
		name   string
		lease  Lease
		action LeaseAction
		want   Lease
		err    error
	}{
		{"a free one is acquired", free, acquire("A"), fresh("A"), nil},
		{"one that is held is not", held, acquire("B"), held, ErrLeasePresent},
		{"but by its holder, which renews it", held, acquire("A"), fresh("A"), nil},
		{"an expired one is acquired by anybody", expired, acquire("B"), fresh("B"), nil},
		{"a broken one is acquired by anybody", broken, acquire("B"), fresh("B"), nil},
		{"a breaking one by nobody", breaking, acquire("B"), breaking, ErrLeasePresent},
		{"not even by its holder", breaking, acquire("A"), breaking, ErrLeaseBreaking},
		{"a lease lasts 15 s at least", free, LeaseAction{Kind: AcquireLease, Proposed: "A", Duration: 14 * time.Second}, free, ErrLeaseDuration},
		{"and 60 s at most", free, LeaseAction{Kind: AcquireLease, Proposed: "A", Duration: 61 * time.Second}, free, ErrLeaseDuration},
		{"or for ever", free, LeaseAction{Kind: AcquireLease, Proposed: "A", Duration: -1}, endless, nil},

		{"the holder renews", held, renew("A"), fresh("A"), nil},
		{"another does not", held, renew("B"), held, ErrLeaseMismatch},
		{"an expired one that nobody wrote over is renewed", expired, renew("A"), fresh("A"), nil},
		{"none is not renewed", free, renew("A"), free, ErrLeaseMismatch},
		{"a breaking one is not renewed", breaking, renew("A"), breaking, ErrLeaseBroken},
		{"nor a broken one", broken, renew("A"), broken, ErrLeaseBroken},
		{"one without end stays so", endless, renew("A"), endless, nil},

		{"the holder changes the id, and the time runs on", held, change("A", "B"), renamed, nil},
		{"to change to what it is succeeds", held, change("X", "A"), held, nil},
		{"another does not change it", held, change("X", "Y"), held, ErrLeaseMismatch},
		{"none is not changed", free, change("A", "B"), free, ErrLeaseNotPresent},
		{"an expired one is not changed", expired, change("A", "B"), expired, ErrLeaseNotPresent},
		{"a breaking one is not changed", breaking, change("A", "B"), breaking, ErrLeaseUnchangeable},
		{"a broken one is not changed", broken, change("A", "B"), broken, ErrLeaseNotPresent},

		{"the holder releases", held, release("A"), free, nil},
		{"another does not release", held, release("B"), held, ErrLeaseMismatch},
		{"a breaking one is released", breaking, release("A"), free, nil},
		{"none is not released", free, release("A"), free, ErrLeaseMismatch},

		{"a break lets the lease run out", held, breakUp, until(held, 20*time.Second), nil},
		{"or makes it shorter", held, within(5 * time.Second), until(held, 5*time.Second), nil},
		{"but not longer", held, within(50 * time.Second), until(held, 20*time.Second), nil},
		{"one without end is broken at once", endless, breakUp, until(endless, 0), nil},
		{"or after a while", endless, within(30 * time.Second), until(endless, 30*time.Second), nil},
		{"a second break makes it shorter", breaking, within(time.Second), until(breaking, time.Second), nil},
		{"and not longer", breaking, within(50 * time.Second), breaking, nil},
		{"a broken one stays broken", broken, breakUp, broken, nil},
		{"an expired one is broken at once", expired, breakUp, until(expired, 0), nil},
		{"none is not broken", free, breakUp, free, ErrLeaseNotPresent},
		{"a break takes a minute at most", held, within(61 * time.Second), held, ErrLeaseDuration},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.lease.apply(test.action, now)
			if !errors.Is(err, test.err) || got != test.want {
				t.Errorf("got %+v, %v\nwant %+v, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestWhoMayWriteUnderALease(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	held := Lease{ID: "A", Duration: -1}
	expired := Lease{ID: "A", Duration: time.Minute, Ends: now}
	tests := []struct {
		name  string
		lease Lease
		id    string
		write error
		read  error
	}{
		{"anybody where there is none", Lease{}, "", nil, nil},
		{"nobody with a lease that is not there", Lease{}, "A", ErrLeaseAbsent, ErrLeaseAbsent},
		{"the holder", held, "A", nil, nil},
		{"nobody else, but all may read", held, "", ErrLeaseNeeded, nil},
		{"nobody with another", held, "B", ErrLeaseOther, ErrLeaseOther},
		{"anybody once it has expired", expired, "", nil, nil},
		{"the holder is told that it has", expired, "A", ErrLeaseLost, ErrLeaseLost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			testkit.ErrorIs(t, test.lease.permits(test.id, now), test.write, "writing")
			testkit.ErrorIs(t, test.lease.permitsReader(test.id, now), test.read, "reading")
		})
	}
}
