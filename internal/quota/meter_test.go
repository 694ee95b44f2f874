package quota

import (
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// taken tells what came of a batch: that it was taken, or by what it was refused, and for how long.
func taken(err error) string {
	full, ok := errors.AsType[*Error](err)
	if !ok {
		return "taken"
	}
	return full.What + ": " + full.Of + " " + full.Seconds().String()
}

func newMeter(what string, l Limit) *Meter {
	m := NewMeter(what, "events")
	m.Set(l, start)
	return m
}

// R4: whichever limit is used up counts, and the error says which, and for how long.
func TestAMeterHoldsBothLimits(t *testing.T) {
	m := newMeter("hub", Limit{Events: 10, Bytes: 1000})
	take := func(events, bytes int, at time.Duration) string { return taken(Take(events, bytes, start.Add(at), m)) }
	testkit.Equal(t, take(1, 3000, 0), "taken", "the first")
	testkit.Equal(t, take(1, 1, time.Millisecond), "hub: bytes 2s", "the second")
	testkit.Equal(t, take(30, 1, 3*time.Second), "taken", "after a while")
	testkit.Equal(t, take(1, 1, 3*time.Second), "hub: events 2s", "after many events")
	m.Set(Limit{}, start.Add(3*time.Second))
	testkit.Equal(t, take(1e9, 1e9, 3*time.Second), "taken", "without a limit")
	testkit.Equal(t, Take(1, 1, start, nil, nil), nil, "the error without a meter")
}

// R4: another limit changes nothing for who kept to the old one: the part of the burst that is used
// stays that part, and no more events than were taken. What was owed is owed, and made up for at the
// new rate.
func TestAnotherLimit(t *testing.T) {
	for name, c := range map[string]struct {
		taken, limit int
		want         string
	}{
		"within it, ten times the rate":      {99, 1000, "taken"},
		"within it, a hundredth of the rate": {99, 1, "taken"},
		"all of it, ten times the rate":      {100, 1000, "taken"},
		"all of it, a hundredth of the rate": {100, 1, "hub: events 1s"},
		"beyond it, ten times the rate":      {1100, 1000, "hub: events 1s"}, // 1,100 events, of which 1,000 come at once
		"beyond it, the same":                {1100, 100, "hub: events 10s"},
		"beyond it, a tenth of the rate":     {1100, 10, "hub: events 1m40s"},
		"beyond it, no limit":                {1100, 0, "taken"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter("hub", Limit{Events: 100})
			testkit.Must(t, Take(c.taken, 1, start, m))
			m.Set(Limit{Events: int64(c.limit)}, start)
			testkit.Equal(t, taken(Take(1, 1, start, m)), c.want)
		})
	}
	m := newMeter("hub", Limit{Events: 1})
	m.Set(Limit{Events: 10}, start.Add(time.Hour))
	testkit.Equal(t, taken(Take(10, 1, start.Add(time.Hour), m)), "taken", "by one that owes nothing")
}

// R4: however large a batch is the average holds, although nobody is told to come back later than in
// an hour. An operator who takes the limit away forgives what is owed.
func TestALargeBatchIsMadeUpForAsAWhole(t *testing.T) {
	m := newMeter("hub", Limit{Events: 1})
	take := func(at time.Duration) string { return taken(Take(1, 1, start.Add(at), m)) }
	testkit.Must(t, Take(69_231, 1, start, m))
	testkit.Equal(t, take(0), "hub: events 1h0m0s", "at once")
	testkit.Equal(t, take(time.Hour), "hub: events 1h0m0s", "after an hour")
	testkit.Equal(t, take(69_220*time.Second), "hub: events 10s", "near the end")
	testkit.Equal(t, take(69_231*time.Second), "taken", "when it is made up for")

	testkit.Must(t, Take(69_231, 1, start.Add(100_000*time.Second), m))
	m.Set(Limit{}, start.Add(100_000*time.Second))
	m.Set(Limit{Events: 1}, start.Add(100_000*time.Second))
	testkit.Equal(t, take(100_000*time.Second), "taken", "after a time without a limit")
}

// R4: a batch is charged to all its meters or to none.
func TestAllMetersOrNone(t *testing.T) {
	hub, policy := newMeter("hub", Limit{Events: 100}), newMeter("policy", Limit{Bytes: 10})
	testkit.Must(t, Take(1, 20, start, hub, policy))
	for range 500 {
		testkit.Equal(t, taken(Take(1, 1, start, hub, policy)), "policy: bytes 1s")
	}
	testkit.Equal(t, taken(Take(99, 1, start, hub, nil)), "taken", "what is left of the hub's")
	testkit.Equal(t, taken(Take(1, 1, start, hub, nil)), "hub: events 1s", "no more")
}

// R4: what is known only when it has come is charged then, and what was in vain is given back. Who
// asks for none of what is used up is not refused.
func TestWhatIsChargedLater(t *testing.T) {
	m := newMeter("account", Limit{Events: 2, Bytes: 10})
	testkit.Must(t, m.Room(0, 1_000_000, start))
	Charge(0, 30, start, m, nil)
	testkit.Equal(t, taken(m.Room(0, 1, start)), "account: bytes 2s", "room for bytes")
	testkit.Equal(t, taken(Take(1, 0, start, m)), "taken", "a request without bytes")
	Charge(0, -25, start, m, nil)
	testkit.Equal(t, taken(Take(1, 5, start, m)), "taken", "what was given back")
	testkit.Equal(t, taken(Take(0, 5, start, m)), "account: bytes 1s", "more than that")
	Charge(-1_000, -1_000, start, m)
	testkit.Equal(t, taken(Take(3, 11, start, m)), "taken", "all that there is")
	testkit.Equal(t, taken(Take(1, 1, start, m)), "account: events 1s", "more than there can be")
}

// Without a limit a batch costs no memory, nor with one that has room.
func TestTakingAllocatesNothing(t *testing.T) {
	none, wide := NewMeter("hub", "events"), newMeter("policy", Limit{Events: 1e9, Bytes: 1e12})
	testkit.Equal(t, testing.AllocsPerRun(100, func() { _ = Take(1, 1, start, none, wide, nil) }), 0, "allocations")
}

// C8: nodes share a limit, and one that is alone has all of it.
func TestMeterAmongNodes(t *testing.T) {
	now := time.Unix(1000, 0)
	nodes := 1
	m := NewMeter("hub", "events").Among(func() int { return nodes })
	m.Set(Limit{Events: 90}, now)
	// taken is what can be had in ten seconds by ones, after a rest.
	taken := func() (n int) {
		now = now.Add(time.Minute)
		for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(time.Millisecond) {
			if Take(1, 0, now, m) == nil {
				n++
			}
		}
		return n
	}
	for _, nodes = range []int{1, 2, 3, 1, 0} {
		want := 90 / max(nodes, 1) * 11 // a second's worth at once, and ten seconds
		if got := taken(); got < want-5 || got > want+5 {
			t.Errorf("%d nodes: %d, want about %d", nodes, got, want)
		}
	}
	// Who kept to the share that it had owes nothing when it becomes smaller.
	now = now.Add(time.Minute)
	nodes = 1
	if err := Take(90, 0, now, m); err != nil {
		t.Fatal(err)
	}
	nodes = 3
	now = now.Add(100 * time.Millisecond)
	if err := Take(1, 0, now, m); err != nil {
		t.Errorf("a share that became smaller: %v", err)
	}
}
