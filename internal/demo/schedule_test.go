package demo

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// turnsUntil gives how often each home had its turn in each period.
func turnsUntil(s *schedule, until time.Time) map[turn]int {
	all := map[turn]int{}
	for t, ok := s.due(until); ok; t, ok = s.due(until) {
		all[turn{home: t.home, period: t.period}]++
	}
	return all
}

// S: each home reports once a minute, also while homes fall silent.
func TestEachHomeReportsOnceAPeriod(t *testing.T) {
	s := newSchedule(1000, time.Minute, noon)
	all := turnsUntil(s, noon.Add(90*time.Second))
	s.halve()
	testkit.Equal(t, s.reporting(), 500, "homes after halving")
	for turn, n := range turnsUntil(s, noon.Add(4*time.Minute)) {
		all[turn] += n
		testkit.MustThat(t, turn.home%2 == 0, "home %d still reports", turn.home)
	}
	for turn, n := range all {
		testkit.MustEqual(t, n, 1, "reports of home %d in the minute %s", turn.home, clock(turn.period))
	}
	testkit.Equal(t, len(all), 1000+501+249+500+500+1, "reports in all") // the last is of noon and four minutes
}

func TestTurnsFallDueEvenly(t *testing.T) {
	s := newSchedule(600, time.Minute, noon.Add(30*time.Second))
	testkit.Equal(t, len(turnsUntil(s, noon.Add(40*time.Second))), 101, "turns in ten seconds")
	testkit.Equal(t, s.late(noon.Add(41*time.Second)), 9, "turns overdue a second later")
	testkit.Equal(t, promised(100_000, 4, time.Minute), 400_000.0/60, "events a second")
}

// S: a rate that is not reached is noticed, after ten seconds and not before.
func TestPace(t *testing.T) {
	var p pace
	at := func(second int, due, acked int64) bool {
		now := noon.Add(time.Duration(second) * time.Second)
		p.note(moment{now, due, acked})
		return p.short(now)
	}
	for second := range 11 { // the first rate is known after a second
		testkit.That(t, !at(second, int64(100*second), int64(80*second)), "it is called short after %d s", second)
	}
	testkit.That(t, at(11, 1100, 880), "80 %% for ten seconds are not called short")
	testkit.Equal(t, p.reached(), 0.8, "share reached")

	p.excuse(noon.Add(30 * time.Second))
	testkit.Equal(t, p.reached(), 1.0, "share before anything is known")
	for second := 12; second < 30; second++ {
		testkit.That(t, !at(second, int64(100*second), 900), "it is called short at %d s, in spite of the excuse", second)
	}
	testkit.That(t, at(30, 3000, 900), "nothing at all is not called short when the excuse is over")
}

// A stop of some seconds is no reason to halve: what was late is sent after it.
func TestPaceForgivesAMoment(t *testing.T) {
	var p pace
	acked := int64(0)
	for second := range 60 {
		now, due := noon.Add(time.Duration(second)*time.Second), int64(100*second)
		if second%10 < 4 { // nothing comes through, then all of it
			acked = max(acked, due-250)
		} else {
			acked = due
		}
		p.note(moment{now, due, acked})
		testkit.That(t, !p.short(now), "it is called short at %d s", second)
	}
	testkit.Equal(t, p.reached(), 1.0, "share")
}

// V4: the page that is linked knows something within seconds, whenever the demo is started.
func TestTheHomeThatIsLinkedReportsSoon(t *testing.T) {
	for _, of := range []struct {
		homes int
		every time.Duration
	}{{100_000, time.Minute}, {240, 4 * time.Second}, {12, time.Minute}, {1, time.Minute}, {1_000_000, time.Hour}, {1001, time.Second}} {
		for second := range 60 {
			started := noon.Add(time.Duration(second) * 977 * time.Millisecond)
			home, s := soonHome(of.homes, of.every, started), newSchedule(of.homes, of.every, started)
			apart := of.every / time.Duration(of.homes)
			reported := false
			for turn, ok := s.due(started.Add(soonAfter + time.Second + 2*apart)); ok && !reported; turn, ok = s.due(started.Add(soonAfter + time.Second + 2*apart)) {
				reported = turn.home == home
			}
			testkit.That(t, reported, "of %d homes that report every %s, home %d does not %d s after noon", of.homes, of.every, home, second)
			testkit.That(t, of.homes != 100_000 || home%8 == 0, "home %d falls silent when homes are halved", home)
		}
	}
}
