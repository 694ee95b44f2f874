package delivery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: what holds for a topic's one partition holds for all of a hub's.
func TestNothingOfAHubIsLost(t *testing.T) {
	for seed := range max(*seeds/8, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liveOnAHub(newLife(t, uint64(2000+seed))) })
		})
	}
}

func liveOnAHub(l *life) {
	const partitions = 3
	l.hub("readings", partitions)
	source := topics.Source{Hub: "readings"}
	l.start()
	names := []string{"plain", "batched", "steady"}
	l.subscribeTo(source, "plain")
	l.subscribeTo(source, "batched", batched(4, 0))
	l.subscribeTo(source, "steady", func(s *topics.Settings) { s.Concurrency = 1 })
	var want []string
	next := make([]int, partitions)
	publish := func() {
		for range 1 + l.dice.IntN(30) {
			p := l.dice.IntN(partitions)
			l.publishHub("readings", p, `{"n":1}`)
			want = append(want, fmt.Sprintf("yard/readings/%d/%d", p, next[p]))
			next[p]++
		}
	}
	for range 50 {
		switch l.dice.IntN(7) {
		case 0, 1:
			publish()
		case 2:
			l.weather.Store(int32(l.dice.IntN(11)))
		case 3:
			after(time.Duration(l.dice.IntN(60_000)) * time.Millisecond)
		case 4:
			l.restart()
		case 5:
			l.plug.fuse.Store(1 + l.dice.Int64N(60))
			publish()
			after(time.Duration(l.dice.IntN(20_000)) * time.Millisecond)
			l.restart()
		case 6:
			_, err := l.topics.Update(l.t.Context(), source, names[l.dice.IntN(3)], func(s *topics.Settings) error {
				s.Paused = !s.Paused
				return nil
			})
			testkit.Must(l.t, err)
		}
	}
	l.weather.Store(0)
	for _, name := range names {
		sub, err := l.topics.Update(l.t.Context(), source, name, func(s *topics.Settings) error {
			s.Paused = false
			return nil
		})
		testkit.Must(l.t, err)
		defer func() {
			got := l.sender.delivered(name)
			for _, p := range l.dead.all() {
				if p.Subscription == sub.ID {
					got = append(got, eventID(&item{Delivery: p}))
				}
			}
			wantIDs(l.t, name, got, want)
		}()
	}
	after(30 * time.Hour)
	testkit.Equal(l.t, l.service.budget.used.Load(), 0, "bytes are in use at the end")
	l.stop()
}
