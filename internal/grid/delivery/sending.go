package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

// sending is a lane's workers, and what bounds them. It is the lane's; guarded by lane.mu.
type sending struct {
	limiter *rate.Limiter // nil: no limit
	// starting workers have not yet looked, busy ones do something.
	starting, busy int
	inFlight       int  // events that are being sent
	probeSent      bool // the one request that probation allows is under way
	// turn waits for a seat for another worker; nil: nothing does. came is one that has come, while the lane
	// is poked for it.
	turn *turn
	came seat
}

// workers is how many are to be starting for what there is to do. What it counts on is exactly
// what batch.nextJobLocked does, so that none is started for nothing over and over.
func (s *sending) workers(t *terms, g gate, ready, chores int, now time.Time) int {
	want := 0
	if s.allowed(t, g, ready, now) {
		want = 1
		if g == open {
			size := t.batchEvents()
			want = min((ready+size-1)/size, t.concurrency-s.busy)
		}
	}
	if chores > 0 && s.busy < t.concurrency {
		want = max(want, 1)
	}
	return want
}

// allowed reports whether a batch may be taken now, of so many events that are ready.
func (s *sending) allowed(t *terms, g gate, ready int, now time.Time) bool {
	switch {
	case t.pull || ready == 0:
		return false
	case g == open:
		return s.busy < t.concurrency && s.nextToken(now).IsZero()
	}
	return g == probe && !s.probeSent
}

// nextToken is when the rate allows a request again; zero: now.
func (s *sending) nextToken(now time.Time) time.Time {
	if s.limiter == nil {
		return time.Time{}
	}
	missing := 1 - s.limiter.TokensAt(now)
	if missing <= 0 {
		return time.Time{}
	}
	return now.Add(max(time.Duration(missing/float64(s.limiter.Limit())*float64(time.Second)), time.Millisecond))
}

func (s *sending) begin(events int, probe bool, now time.Time) {
	s.probeSent = s.probeSent || probe
	s.inFlight += events
	if s.limiter != nil {
		s.limiter.AllowN(now, 1)
	}
}
