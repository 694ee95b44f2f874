package natsstreams

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// entered is one message of the plain list that the table is compared with.
type entered struct {
	number         uint64
	deadline       time.Time
	taken, settled bool
}

// C1: whatever the order of hand-overs, answers and deadlines, each message is handed over at most
// once and settled once, in time, and never handed over after it was settled.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*entered
		reported := 0 // the number of the message whose done was called last
		tab := table{first: 1, next: 1, end: 1}
		now := time.Unix(0, 0)
		call := func(done func(streams.Seq, error), want *entered) {
			if want == nil {
				testkit.MustThat(t, done == nil, "somebody is told")
				return
			}
			testkit.MustThat(t, done != nil, "nobody is told of %d", want.number)
			reported = 0
			done(0, nil)
			testkit.MustEqual(t, reported, int(want.number))
			want.settled = true
		}
		oldest := func() *entered {
			for _, e := range all {
				if !e.settled {
					return e
				}
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "messages") { // so that the ring grows and is used again
					number := uint64(len(all) + 1)
					e := &entered{number: number, deadline: now.Add(patience)}
					all = append(all, e)
					testkit.MustThat(t, tab.add(waiting{"s", []byte("x"), e.deadline, func(streams.Seq, error) { reported = int(number) }}), "no room")
				}
			},
			"take": func(t *rapid.T) {
				var want *entered
				for _, e := range all {
					if !e.taken && !e.settled {
						want = e
						break
					}
				}
				number, w, ok := tab.take()
				testkit.MustEqual(t, ok, want != nil)
				if ok {
					testkit.MustEqual(t, number, want.number)
					testkit.MustThat(t, w.subject == "s" && len(w.data) == 1, "got %+v", w)
					want.taken = true
				}
			},
			"answer": func(t *rapid.T) {
				number := rapid.Uint64Range(0, uint64(len(all)+1)).Draw(t, "number")
				var want *entered
				if number >= 1 && number <= uint64(len(all)) && !all[number-1].settled {
					want = all[number-1]
				}
				call(tab.settle(number), want)
			},
			"expire": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
				for more := true; more; {
					want := oldest()
					if want != nil && want.deadline.After(now) {
						want = nil
					}
					done, handedOver := tab.expire(now)
					testkit.MustEqual(t, handedOver, want != nil && want.taken)
					call(done, want)
					more = want != nil
				}
			},
			"": func(t *rapid.T) {
				want := oldest()
				deadline, any := tab.deadline()
				testkit.MustEqual(t, any, want != nil)
				testkit.MustThat(t, !any || deadline.Equal(want.deadline), "deadline %v", deadline)
			},
		})
	})
}

func TestTheTableIsBounded(t *testing.T) {
	tab := table{first: 1, next: 1, end: 1}
	w := waiting{done: func(streams.Seq, error) {}}
	for range maxWaiting {
		testkit.MustThat(t, tab.add(w), "no room")
	}
	testkit.That(t, !tab.add(w), "one too many")
	testkit.That(t, tab.settle(2) != nil && !tab.add(w), "the oldest waits still")
	testkit.That(t, tab.settle(1) != nil && tab.add(w) && tab.add(w) && !tab.add(w), "there is room for two")
}
