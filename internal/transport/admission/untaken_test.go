package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

const patience = 5 * time.Second

// R2: what clients do not take is bounded in bytes, by holder and in all.
func TestMemoryIsBoundedByHolderAndInAll(t *testing.T) {
	m := NewMemory(60, 100, patience)
	a, b, c := m.Share("a", nil), m.Share("b", nil), m.Share("c", nil)
	testkit.That(t, a.TryTake(60), "there is room for the first")
	testkit.That(t, !m.Share("a", nil).TryTake(1), "its holder has no more")
	testkit.That(t, b.TryTake(40), "another has room")
	testkit.That(t, !c.TryTake(1), "there is no more in all")
	a.Keep(10)
	testkit.That(t, c.TryTake(50), "what was given back is for others")
	testkit.That(t, b.TryTake(30), "what it has counts when it takes anew")
	b.Give()
	b.Give()
	testkit.That(t, !b.TryTake(1000), "what is larger than all waits for all there is")
	a.Give()
	c.Give()
	testkit.That(t, b.TryTake(1000), "and gets that")
}

// R2: who needs memory waits for it, and gets it in turn.
func TestWhoNeedsMemoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 100, patience)
		first, second, other := m.Share("a", nil), m.Share("a", nil), m.Share("b", nil)
		testkit.That(t, first.TryTake(60), "there is room")
		got := make(chan error)
		go func() { got <- second.Take(t.Context(), 30) }()
		synctest.Wait()
		testkit.That(t, !m.Share("a", nil).TryTake(0), "nobody of the holder goes before who waits")
		testkit.That(t, other.TryTake(40), "another holder has room, and waits behind nobody")
		late := m.Share("c", nil)
		go func() { got <- late.Take(t.Context(), 10) }()
		synctest.Wait()
		testkit.That(t, !m.Share("d", nil).TryTake(0), "where there is none in all, nobody goes before who waits")
		other.Give()
		testkit.Must(t, <-got)
		late.Give()
		first.Give()
		testkit.Must(t, <-got)
		second.Give()
		other.Give()
		testkit.Equal(t, m.used, 0, "used")
		testkit.Equal(t, len(m.byHolder), 0, "holders")
		testkit.Equal(t, len(m.waitingBy), 0, "holders who wait")
	})
}

// R2: clients that take nothing do not keep others waiting: the one that has kept its memory the
// longest is cut off, if it has had its time; of the holder that has no room, where one has none.
func TestWhoTakesNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 100, patience)
		cut, over := make(chan string, 10), make(chan struct{})
		defer close(over)
		stalled := func(name, holder string, bytes int) {
			gone := make(chan struct{})
			s := m.Share(holder, func() { cut <- name; close(gone) })
			testkit.That(t, s.TryTake(bytes), "there is room for %s", name)
			go func() {
				select {
				case <-gone:
					s.Give()
				case <-over:
				}
			}()
		}
		stalled("of another", "b", 40)
		stalled("oldest", "a", 30)
		time.Sleep(patience / 2)
		stalled("younger", "a", 30)
		busy := m.Share("b", func() { t.Error("one that goes on was cut off") })
		begun := time.Now()
		testkit.Must(t, m.Share("a", nil).Take(t.Context(), 20))
		testkit.Equal(t, time.Since(begun), patience, "waited")
		testkit.Equal(t, <-cut, "oldest")
		testkit.That(t, busy.TryTake(10), "there is room")
		testkit.Must(t, m.Share("c", nil).Take(t.Context(), 30))
		testkit.Equal(t, <-cut, "of another")
		testkit.Equal(t, len(cut), 0, "more were cut off")
		busy.Give()
	})
}

// R2: a client that is slow, and takes what it is sent, is not cut off.
func TestWhoTakesSlowlyIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 60, patience)
		slow := m.Share("a", func() { t.Error("it was cut off") })
		testkit.That(t, slow.TryTake(60), "there is room")
		got := make(chan error)
		go func() { got <- m.Share("b", nil).Take(t.Context(), 10) }()
		for range 10 {
			time.Sleep(patience - time.Second)
			slow.Touch()
		}
		slow.Give()
		testkit.Must(t, <-got)
	})
}

// Who gives up waiting has nothing, and nobody waits behind it.
func TestWhoGivesUpWaitingHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 60, patience)
		first, second := m.Share("a", nil), m.Share("b", nil)
		testkit.That(t, first.TryTake(60), "there is room")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() { testkit.ErrorIs(t, m.Share("a", nil).Take(ctx, 60), gone) }()
		synctest.Wait()
		got := make(chan error)
		go func() { got <- second.Take(t.Context(), 10) }()
		synctest.Wait()
		first.Keep(50)
		cancel(gone)
		testkit.Must(t, <-got)
		second.Give()
		first.Give()
		testkit.Equal(t, m.used, 0, "used")
	})
}

// Whatever is taken, kept and given back, the books balance and the bounds hold.
func TestMemoryBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(50, 120, patience)
		var shares []*Share
		for _, holder := range []string{"a", "a", "a", "b", "b", "c", "c", "d"} {
			shares = append(shares, m.Share(holder, nil))
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := rapid.SampledFrom(shares).Draw(t, "share")
			n := rapid.IntRange(0, 70).Draw(t, "bytes")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				s.TryTake(n)
			case 1:
				s.Keep(min(n, s.bytes))
			default:
				s.Give()
			}
			all, ring, sum := 0, 0, map[string]int{}
			for _, s := range shares {
				all += s.bytes
				sum[s.holder] += s.bytes
			}
			for h, bytes := range sum {
				if bytes != m.byHolder[h] || bytes > m.each {
					t.Fatalf("%s has %d, noted are %d", h, bytes, m.byHolder[h])
				}
			}
			for s := m.kept.younger; s != &m.kept; s = s.younger {
				ring += s.bytes
			}
			if m.used != all || ring != all || all > m.all {
				t.Fatalf("used are %d, in the ring %d, noted %d", all, ring, m.used)
			}
		}
	})
}

// R2: one that could not be cut off when it was its turn is pressed again, as long as somebody waits: what
// it does meanwhile may be nobody's fault, and what it does later its own.
func TestWhoWasPressedInVainIsPressedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 60, patience)
		var at []time.Duration
		begun := time.Now()
		var busy *Share
		busy = m.Share("a", func() {
			if at = append(at, time.Since(begun)); len(at) == 3 {
				go busy.Give()
			}
		})
		testkit.That(t, busy.TryTake(60), "there is room")
		testkit.Must(t, m.Share("b", nil).Take(t.Context(), 10))
		testkit.Slices(t, at, []time.Duration{patience, 2 * patience, 3 * patience})
	})
}

// R2: who takes more to what it has becomes no younger by it, and takes nothing before who waits.
func TestGrowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 100, patience)
		cut := make(chan struct{}, 1)
		growing := m.Share("a", func() { cut <- struct{}{} })
		testkit.That(t, growing.Grow(20), "there is room")
		time.Sleep(patience - time.Second)
		testkit.That(t, growing.Grow(60), "there is room for more")
		testkit.That(t, !growing.Grow(61), "there is more than its holder may have")
		go func() {
			testkit.Check(t, m.Share("a", nil).Take(t.Context(), 10))
		}()
		synctest.Wait()
		testkit.That(t, growing.Grow(50) && growing.Grow(40), "less is always possible")
		synctest.Wait()
		testkit.Equal(t, m.used, 50, "what was given back is for who waits")
		testkit.That(t, !growing.Grow(51), "there is no room")

		begun := time.Now()
		go func() {
			testkit.Check(t, m.Share("a", nil).Take(t.Context(), 15))
		}()
		<-cut
		testkit.Equal(t, time.Since(begun), patience, "the first look")
		testkit.That(t, !growing.Grow(41), "somebody waits")
		growing.Give()
		synctest.Wait()
		testkit.Equal(t, m.used, 25, "used")
	})
}

// R2: what is spared is counted and not cut off; who comes behind it is.
func TestWhoIsSparedIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(60, 60, patience)
		var cut []string
		share := func(name string) *Share {
			s := m.Share("a", func() { cut = append(cut, name) })
			testkit.That(t, s.Grow(20), "there is room")
			return s
		}
		whole := share("whole")
		share("younger")
		whole.Spare()
		whole.Spare()
		time.Sleep(patience)
		testkit.Equal(t, m.used, 40)
		m.Share("a", nil).Press(30)
		m.Share("a", nil).Press(30)
		testkit.Slices(t, cut, []string{"younger"})
		whole.Give()
		testkit.Equal(t, m.used, 20)
	})
}
