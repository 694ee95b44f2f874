package share

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What a connection takes while it is being made, and then.
const (
	dialCost = 2
	connCost = 1
)

func isGranted(w *Waiter) bool {
	select {
	case <-w.granted:
		return true
	default:
		return false
	}
}

// connect asks for a connection, which stands at once if it is granted.
func (s *Share) connect(address string) *Waiter {
	w := s.Ask(address)
	if isGranted(w) {
		s.Give(w.holder, dialCost-connCost)
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
			s := New(tt.limit, dialCost)
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
	s := New(6, dialCost)
	var first []*Waiter
	for _, address := range []string{"a", "a", "b", "b", "c"} {
		first = append(first, s.connect(address))
	}
	for i, w := range first {
		testkit.MustEqual(t, isGranted(w), true, "connection %d", i)
	}
	greedy, d, e := s.Ask("a"), s.Ask("d"), s.Ask("e")
	for _, w := range []*Waiter{greedy, d, e} {
		testkit.MustEqual(t, isGranted(w), false, "of %s: one is not enough for a connection", w.holder.address)
	}
	testkit.Equal(t, s.tight.Load(), true)
	testkit.Equal(t, s.waiting.Load(), 3)
	s.Give(first[2].holder, connCost)
	testkit.Equal(t, isGranted(d), true, "d has nothing and came first")
	s.Give(first[0].holder, connCost)
	testkit.Equal(t, s.Withdraw(d), false, "what has been granted cannot be taken back")
	s.Give(d.holder, dialCost)
	testkit.Equal(t, isGranted(e), true, "e has nothing")
	testkit.Equal(t, isGranted(greedy), false, "a has a connection")
	testkit.Equal(t, s.Withdraw(greedy), true)
	testkit.Equal(t, s.tight.Load(), false)
	testkit.Equal(t, s.waiting.Load(), 0)
}

// R3: who has less than those who wait need not stand behind them, and who could help nobody by it gives nothing up.
func TestWhoWaitsInVainHoldsNobodyUp(t *testing.T) {
	s := New(4, 1)
	hanging, more := s.Take("hanging"), s.Ask("hanging")
	testkit.MustThat(t, hanging != nil && isGranted(more), "the first has half")
	s.Ask("hanging")
	well := s.Take("well")
	testkit.MustThat(t, well != nil, "another has to wait behind one that has half")
	testkit.That(t, s.Take("well") == nil, "no more is left than it has")
	testkit.Equal(t, s.Wanted(well, nil), false, "by one that has more")
	mine := s.Ask("well")
	testkit.Equal(t, s.Wanted(well, mine), false, "by whoever has it")
	another := s.Ask("well")
	testkit.Equal(t, s.Wanted(well, mine), true, "by another of the same address")
	s.Withdraw(another)
	s.Withdraw(mine)
	third := s.Take("third")
	testkit.MustThat(t, third != nil, "a third gets what is left")
	fourth := s.Ask("fourth")
	testkit.MustEqual(t, isGranted(fourth), false, "a fourth")
	testkit.Equal(t, s.Wanted(well, nil), true, "by one that has nothing")
	s.Give(well, 1)
	testkit.Equal(t, isGranted(fourth), true, "a fourth")
}

// R3: whatever happens, no more is taken than there is; nobody waits while nothing is taken; and what
// was given back is forgotten.
func TestAShareIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.IntRange(1, 20).Draw(t, "limit"), dialCost)
		var waiting, dialing, open []*Waiter
		pick := func(from *[]*Waiter) *Waiter {
			i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
			w := (*from)[i]
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return w
		}
		look := func() {
			var still []*Waiter
			for _, w := range waiting {
				if isGranted(w) {
					dialing = append(dialing, w)
				} else {
					still = append(still, w)
				}
			}
			waiting = still
			testkit.MustEqual(t, s.Open(), dialCost*len(dialing)+connCost*len(open))
			testkit.MustThat(t, s.Open() <= s.limit, "%d of %d are taken", s.Open(), s.limit)
			testkit.MustEqual(t, int(s.waiting.Load()), len(waiting))
			testkit.MustThat(t, len(waiting) == 0 || s.Open() > 0, "somebody waits for nothing")
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 1 && len(waiting) > 0:
				testkit.MustEqual(t, s.Withdraw(pick(&waiting)), true)
			case what == 2 && len(dialing) > 0:
				s.Give(pick(&dialing).holder, dialCost)
			case what == 3 && len(dialing) > 0:
				w := pick(&dialing)
				s.Give(w.holder, dialCost-connCost)
				open = append(open, w)
			case what == 4 && len(open) > 0:
				s.Give(pick(&open).holder, connCost)
			default:
				waiting = append(waiting, s.Ask(rapid.StringMatching("[a-e]").Draw(t, "address")))
			}
			look()
		}
		for len(waiting)+len(dialing)+len(open) > 0 {
			for len(open) > 0 {
				s.Give(pick(&open).holder, connCost)
				look()
			}
			for len(dialing) > 0 {
				s.Give(pick(&dialing).holder, dialCost)
				look()
			}
		}
		testkit.MustEqual(t, len(s.holders)+len(s.queue), 0)
	})
}
