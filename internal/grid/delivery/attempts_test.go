package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V2: what became of the attempts at an event outlives the process that made them.
func TestAttemptsSurviveARestart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", func(s *topics.Settings) { s.Retry.MaxAttempts = 3 })
		y.sender.always(webhook.Result{Status: 500, Outcome: retry.GenericError, Head: []byte("sorry")})
		began := time.Now()
		y.publish("orders", "a")
		after(5 * time.Second) // the marks are saved: a crash repeats nothing
		y.restart()
		after(20 * time.Second)
		y.sender.always(webhook.Result{Outcome: retry.SocketError, Err: "connection refused"})
		y.restart()
		after(time.Hour)
		y.wantLetter(retry.ReasonAttempts, 3)
		h := y.dead.all()[0].History
		testkit.MustEqual(t, len(h), 3, "%+v", h)
		testkit.That(t, h[0].At.Equal(began) && h[0].Status == 500 && h[0].Said == "sorry" && !h[0].Probe, "the first is %+v", h[0])
		testkit.That(t, h[1].At.After(h[0].At) && h[1].Outcome == retry.GenericError, "the second is %+v", h[1])
		testkit.That(t, h[2].At.After(h[1].At) && h[2].Outcome == retry.SocketError && h[2].Said == "connection refused", "the last is %+v", h[2])
	})
}

// V2, G7: a probe is marked as one, in the list and in the event's own history.
func TestProbesAreMarked(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("broken", func(s *topics.Settings) { s.Concurrency, s.Retry.TimeToLive = 1, 2*time.Minute })
		y.sender.always(outcome(retry.SocketError))
		y.publish("orders", ids("e", 10)...)
		after(30 * time.Second)
		got := testkit.Value(y.service.Attempts(t.Context(), id))(t)
		testkit.MustEqual(t, len(got), 11)
		for i, a := range got {
			testkit.Equal(t, a.Probe, i == 0, "attempt %d before the last", i)
		}
		after(time.Hour)
		probed := 0
		for _, p := range y.dead.all() {
			for _, a := range p.History {
				if a.Probe {
					probed++
				}
			}
		}
		testkit.That(t, probed > 0, "no event says that it was a probe")
	})
}

// V2, G2: the list has the ids of all events of a batch.
func TestAttemptsNameTheirEvents(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.MaxEvents, s.Paused = 200, true })
		y.publish("orders", ids("e", 120)...)
		y.change("orders", "receiver", func(s *topics.Settings) { s.Paused = false })
		wait()
		var named []string
		events := 0
		for _, a := range testkit.Value(y.service.Attempts(t.Context(), id))(t) {
			events += a.Events
			testkit.That(t, a.Events == 1 || len(a.EventIDs) == min(a.Events, maxNotedIDs) && a.EventIDs[0] == a.EventID, "%d events, and the ids of %d", a.Events, len(a.EventIDs))
			named = append(named, a.EventIDs...)
			for n := range int64(120) {
				testkit.That(t, !a.of(0, n) || !a.of(1, n), "of another partition")
			}
		}
		testkit.Equal(t, events, 120)
		testkit.That(t, slices.Contains(named, "e00007"), "named are %v", named)
	})
}

// R3: of many lanes fewer requests are remembered, the newest ones, in order; and more again once there are
// fewer lanes.
func TestHowManyAttemptsAreRemembered(t *testing.T) {
	s := &Service{cfg: Config{Attempts: 50}}
	for lanes, want := range map[int64]int{0: 50, 1: 50, 1_000: 50, 5_000: 10, 10_000: 5, 100_000: 3} {
		s.laneCount.Store(lanes)
		testkit.Equal(t, s.mostAttempts(), want, "of each of %d lanes", lanes)
	}
	var a attempts
	n := 0
	for _, step := range []struct{ added, most, first, last int }{
		{3, 5, 1, 3}, {4, 5, 3, 7}, {1, 5, 4, 8}, {1, 3, 7, 9}, {2, 3, 9, 11}, {1, 6, 9, 12}, {4, 6, 11, 16}, {1, 2, 16, 17},
	} {
		for range step.added {
			n++
			a.add(AttemptRecord{Attempt: n, Time: time.Unix(int64(n), 0), numbers: []numbered{{0, ranges.SetOf(int64(n))}}}, step.most)
		}
		var got, want []int
		for i := range a.ring {
			got = append(got, a.ring[(a.next+i)%len(a.ring)].Attempt)
		}
		for i := step.first; i <= step.last; i++ {
			want = append(want, i)
		}
		testkit.Slices(t, got, want, "after %d", n)
		testkit.That(t, cap(a.ring) <= step.most, "room for %d, where %d are remembered", cap(a.ring), step.most)
		_, since := a.of(0, int64(n), time.Unix(0, 0))
		testkit.Equal(t, since.Unix(), map[bool]int64{true: int64(step.first), false: 0}[step.first > 1], "remembered since")
	}
}
