package egress

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func isGranted(w *waiter) bool {
	select {
	case <-w.granted:
		return true
	default:
		return false
	}
}

// connect asks for a connection, which stands at once if it is granted.
func (s *share) connect(address string) *waiter {
	w := s.ask(address)
	if isGranted(w) {
		s.give(w.holder, dialCost-connCost)
	}
	return w
}

// R3: however much the addresses want that never answer, each gets the same, and as much is left for
// the next one.
func TestAShareForTheNext(t *testing.T) {
	for _, tt := range []struct{ limit, hanging, each int }{
		{120, 1, 60}, {120, 2, 40}, {120, 5, 20}, {8, 1, 4}, {2048, 1, 1024}, {2, 1, 1},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.hanging, tt.limit), func(t *testing.T) {
			s := newShare(tt.limit, dialCost)
			for range 2 * tt.limit {
				for i := range tt.hanging {
					s.connect(fmt.Sprint("hanging", i))
				}
			}
			for i := range tt.hanging {
				testkit.Equal(t, s.holders[fmt.Sprint("hanging", i)].held, tt.each, "held by one that hangs")
			}
			if tt.each > 1 {
				testkit.Equal(t, s.tight.Load(), false, "tight, though who waits has as much as is fair")
				testkit.Equal(t, isGranted(s.connect("healthy")), true, "another gets a connection at once")
			}
		})
	}
}

// R3: who has least comes first, then who has waited longest; and that others keep connections which
// nobody uses is noticed.
func TestWhoComesFirst(t *testing.T) {
	s := newShare(6, dialCost)
	var first []*waiter
	for _, address := range []string{"a", "a", "b", "b", "c"} {
		first = append(first, s.connect(address))
	}
	for i, w := range first {
		testkit.MustEqual(t, isGranted(w), true, "connection %d", i)
	}
	greedy, d, e := s.ask("a"), s.ask("d"), s.ask("e")
	for _, w := range []*waiter{greedy, d, e} {
		testkit.MustEqual(t, isGranted(w), false, "of %s: one is not enough for a connection", w.holder.address)
	}
	testkit.Equal(t, s.tight.Load(), true)
	testkit.Equal(t, s.waiting.Load(), 3)
	s.give(first[2].holder, connCost)
	testkit.Equal(t, isGranted(d), true, "d has nothing and came first")
	s.give(first[0].holder, connCost)
	testkit.Equal(t, s.withdraw(d), false, "what has been granted cannot be taken back")
	s.give(d.holder, dialCost)
	testkit.Equal(t, isGranted(e), true, "e has nothing")
	testkit.Equal(t, isGranted(greedy), false, "a has a connection")
	testkit.Equal(t, s.withdraw(greedy), true)
	testkit.Equal(t, s.tight.Load(), false)
	testkit.Equal(t, s.waiting.Load(), 0)
}

// R3: whatever happens, no more is taken than there is; nobody waits while nothing is taken; and what
// was given back is forgotten.
func TestAShareIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShare(rapid.IntRange(1, 20).Draw(t, "limit"), dialCost)
		var waiting, dialing, open []*waiter
		pick := func(from *[]*waiter) *waiter {
			i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
			w := (*from)[i]
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return w
		}
		look := func() {
			var still []*waiter
			for _, w := range waiting {
				if isGranted(w) {
					dialing = append(dialing, w)
				} else {
					still = append(still, w)
				}
			}
			waiting = still
			testkit.MustEqual(t, s.open(), dialCost*len(dialing)+connCost*len(open))
			testkit.MustThat(t, s.open() <= s.limit, "%d of %d are taken", s.open(), s.limit)
			testkit.MustEqual(t, int(s.waiting.Load()), len(waiting))
			testkit.MustThat(t, len(waiting) == 0 || s.open() > 0, "somebody waits for nothing")
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 1 && len(waiting) > 0:
				testkit.MustEqual(t, s.withdraw(pick(&waiting)), true)
			case what == 2 && len(dialing) > 0:
				s.give(pick(&dialing).holder, dialCost)
			case what == 3 && len(dialing) > 0:
				w := pick(&dialing)
				s.give(w.holder, dialCost-connCost)
				open = append(open, w)
			case what == 4 && len(open) > 0:
				s.give(pick(&open).holder, connCost)
			default:
				waiting = append(waiting, s.ask(rapid.StringMatching("[a-e]").Draw(t, "address")))
			}
			look()
		}
		for len(waiting)+len(dialing)+len(open) > 0 {
			for len(open) > 0 {
				s.give(pick(&open).holder, connCost)
				look()
			}
			for len(dialing) > 0 {
				s.give(pick(&dialing).holder, dialCost)
				look()
			}
		}
		testkit.MustEqual(t, len(s.holders)+len(s.queue), 0)
	})
}
