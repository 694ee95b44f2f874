package processor

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestARecordIsDeadWhenItHasNotChangedForItsTimeOnOurClock(t *testing.T) {
	const lease = 30 * time.Second
	start := time.Now()
	present := func(v Version) []Entry { return []Entry{presenceEntry("a", presence{Nonce: "n"}, v)} }
	owned := func(v Version, owner string) []Lease { return []Lease{{Partition: "0", Owner: owner, Version: v}} }
	type reading struct {
		at        time.Duration
		leases    []Lease
		presences []Entry
	}
	for name, c := range map[string]struct {
		readings []reading
		dead     bool // the lease
		gone     bool // the instance
		foreign  bool
		change   time.Duration // when the next one dies; 0: none
	}{
		"seen for the first time it lives, however old it may be": {
			readings: []reading{{0, owned("1", "a"), present("1")}}, change: lease},
		"unchanged for nearly the time it lives": {
			readings: []reading{{0, owned("1", "a"), present("1")}, {lease - 1, owned("1", "a"), present("1")}}, change: lease},
		"unchanged for the time it is dead": {
			readings: []reading{{0, owned("1", "a"), present("1")}, {lease, owned("1", "a"), present("1")}}, dead: true, gone: true},
		"a change starts the time anew": {
			readings: []reading{{0, owned("1", "a"), present("1")}, {lease - 1, owned("2", "a"), present("2")}, {lease + 5, owned("2", "a"), present("2")}},
			change:   2*lease - 1},
		"a lease can die while its instance lives": {
			readings: []reading{{0, owned("1", "a"), present("1")}, {lease, owned("1", "a"), present("2")}}, dead: true, change: 2 * lease},
		"an owner without presence is foreign and lives longer": {
			readings: []reading{{0, owned("1", "x"), nil}, {lease, owned("1", "x"), nil}}, foreign: true, change: foreignLease},
		"but not for ever": {
			readings: []reading{{0, owned("1", "x"), nil}, {foreignLease, owned("1", "x"), nil}}, foreign: true, dead: true},
		"a free lease is not dead": {
			readings: []reading{{0, owned("1", ""), nil}, {time.Hour, owned("1", ""), nil}}},
		"what was away is seen for the first time again": {
			readings: []reading{{0, owned("1", "a"), present("1")}, {20 * time.Second, nil, nil}, {40 * time.Second, owned("1", "a"), present("1")}},
			change:   40*time.Second + lease},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserver(lease)
			var w world
			for _, r := range c.readings {
				w = o.look(start.Add(r.at), r.leases, r.presences, nil)
			}
			l := w.leases["0"]
			if l.dead != c.dead || l.foreign != c.foreign || w.instances["a"].dead != c.gone {
				t.Errorf("lease %+v, instance %+v", l, w.instances["a"])
			}
			if want := start.Add(c.change); c.change == 0 && !w.change.IsZero() || c.change != 0 && !w.change.Equal(want) {
				t.Errorf("next change %v, want %v", w.change.Sub(start), c.change)
			}
			testkit.Equal(t, w.foreigners(), (c.foreign && !c.dead), "foreigners")
		})
	}
}
