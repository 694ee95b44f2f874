package amqp

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The queue as a slice, which is plain to see.
type modelQueue struct {
	waiting []int
	turn    int // -1: nobody's
}

func (m *modelQueue) next() {
	if m.turn < 0 && len(m.waiting) > 0 {
		m.turn, m.waiting = m.waiting[0], m.waiting[1:]
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		links := make([]*outgoing, 5)
		for i := range links {
			links[i] = &outgoing{wake: make(chan struct{}, 1)}
		}
		var q linkQueue
		m := modelQueue{turn: -1}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(links)-1).Draw(t, "link")
			switch rapid.SampledFrom([]string{"join", "leave", "next", "pass", "pass full"}).Draw(t, "step") {
			case "join":
				q.join(links[i])
				if m.turn == i {
					m.turn = -1
				}
				if !slices.Contains(m.waiting, i) {
					m.waiting = append(m.waiting, i)
				}
			case "leave":
				q.leave(links[i])
				m.waiting = slices.DeleteFunc(m.waiting, func(j int) bool { return j == i })
			case "next":
				q.next()
				m.next()
			case "pass":
				q.pass(links[i], false)
				if m.turn == i {
					m.turn = -1
					m.next()
				}
			case "pass full":
				q.pass(links[i], true)
				if m.turn == i {
					m.turn = -1
				}
			}
			compareQueues(t, &q, &m, links)
		}
	})
}

func compareQueues(t *rapid.T, q *linkQueue, m *modelQueue, links []*outgoing) {
	var got []int
	var before *outgoing
	for l := q.first; l != nil; l = l.next {
		testkit.MustEqual(t, l.prev, before, "the queue is not linked both ways")
		testkit.MustEqual(t, l.queued, true, "the queue is not linked both ways")
		before = l
		got = append(got, slices.Index(links, l))
	}
	testkit.MustEqual(t, q.last, before, "the queue's end is not its last")
	testkit.MustSlices(t, got, m.waiting, "waiting")
	if turn := slices.Index(links, q.turn); turn != m.turn {
		t.Fatalf("turn: %d, want %d", turn, m.turn)
	}
}
