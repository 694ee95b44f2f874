package demo

import "time"

// schedule says which home reports when: each has a moment of its own in every period, and keeps it.
// Homes that fall silent leave the others' moments alone, so that a home never reports twice in a
// period, however often the number of homes is halved. It is pure; one goroutine uses it.
type schedule struct {
	homes  int // at the beginning
	every  time.Duration
	silent int // only each (1<<silent)th home still reports
	period time.Time
	next   int
}

// turn is one home's.
type turn struct {
	home   int
	at     time.Time
	period time.Time
}

// newSchedule begins with the home whose moment comes next.
func newSchedule(homes int, every time.Duration, now time.Time) *schedule {
	s := &schedule{homes: homes, every: every, period: periodOf(now, every)}
	s.next = int(int64(now.Sub(s.period)) * int64(homes) / int64(every))
	return s
}

// periodOf is the beginning of the period, mostly a minute, that a time is in.
func periodOf(at time.Time, every time.Duration) time.Time { return at.UTC().Truncate(every) }

// due gives the next turn, if its moment has come.
func (s *schedule) due(now time.Time) (turn, bool) {
	for {
		if s.next >= s.homes {
			s.next, s.period = 0, s.period.Add(s.every)
		}
		at := s.moment()
		if at.After(now) {
			return turn{}, false
		}
		home := s.next
		s.next++
		if s.reports(home) {
			return turn{home: home, at: at, period: s.period}, true
		}
	}
}

// moment is that of the next home, whether it still reports or not.
func (s *schedule) moment() time.Time {
	return s.period.Add(time.Duration(int64(s.every) / int64(s.homes) * int64(s.next)))
}

// late is about how many turns are overdue.
func (s *schedule) late(now time.Time) int64 {
	return max(0, int64(now.Sub(s.moment()).Seconds()*promised(s.reporting(), 1, s.every)))
}

func (s *schedule) reports(home int) bool { return home%(1<<s.silent) == 0 }

// soonAfter is how long after the start the home whose page is linked reports: nobody should look at a page that
// knows nothing for most of a period.
const soonAfter = time.Second

// soonHome is that home. It still reports after homes were halved thrice, where so many are not further apart than
// a second.
func soonHome(homes int, every time.Duration, started time.Time) int {
	kept := 8
	for kept > 1 && every/time.Duration(homes)*time.Duration(kept) > time.Second {
		kept /= 2
	}
	next := newSchedule(homes, every, started.Add(soonAfter)).next
	return (next + kept) / kept * kept % homes / kept * kept
}

// halve silences every second home.
func (s *schedule) halve() { s.silent++ }

// reporting is how many homes report.
func (s *schedule) reporting() int { return (s.homes + 1<<s.silent - 1) >> s.silent }

// promised is how many events a second that makes.
func promised(homes, sensors int, every time.Duration) float64 {
	return float64(homes*sensors) / every.Seconds()
}
