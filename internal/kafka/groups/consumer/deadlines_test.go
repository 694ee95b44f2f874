package consumer

import (
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

func TestASilentMemberIsDueAfterItsSession(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 2, 0))
	d := NewDeadlines(45 * time.Second)
	testkit.That(t, d.Next().IsZero(), "nobody is waited for")
	w.say(join("a", "orders"))
	d.Follow(w.g, noon)
	testkit.Equal(t, d.Next(), at(45*time.Second))
	w.say(join("b", "orders"))
	d.Follow(w.g, at(10*time.Second))
	d.Heard("a", at(30*time.Second))
	testkit.Slices(t, d.Due(at(54*time.Second)), nil)
	testkit.Slices(t, d.Due(at(55*time.Second)), []string{"b"})
	testkit.Slices(t, slices.Sorted(slices.Values(d.Due(at(75*time.Second)))), []string{"a", "b"})
	w.g = w.g.Remove([]string{"a", "b"}, w.c)
	d.Follow(w.g, at(75*time.Second))
	testkit.That(t, d.Next().IsZero(), "nobody is left")
	d.Heard("a", at(76*time.Second))
	testkit.That(t, d.Next().IsZero(), "who is no member is not waited for")
}

func TestAMemberThatKeepsAPartitionIsDueAfterItsRebalanceTimeout(t *testing.T) { // K2
	w := newWorld(t, hub("orders", 4, 0))
	d := NewDeadlines(time.Hour)
	w.say(join("a", "orders"))
	w.say(join("b", "orders"))
	w.say(beat("a", 1)) // is to give up two
	d.Follow(w.g, noon)
	w.say(owning("a", 1, of("orders", 0, 1, 2, 3))) // does not
	d.Heard("a", at(30*time.Second))
	d.Follow(w.g, at(30*time.Second))
	testkit.Slices(t, d.Due(at(59*time.Second)), nil)
	testkit.Slices(t, d.Due(at(time.Minute)), []string{"a"})

	w.say(owning("a", 1, of("orders", 0, 1))) // does
	d.Follow(w.g, at(59*time.Second))
	testkit.Slices(t, d.Due(at(time.Minute)), nil)

	w.say(join("c", "orders"))
	w.settle()
	w.say(join("d", "orders"))
	w.say(beat("a", 3))
	d.Follow(w.g, at(time.Hour/2))
	revoking := w.g.Member("a").Revoking
	testkit.That(t, len(revoking) > 0, "something else is to be given up")
	testkit.Equal(t, d.Next(), at(time.Hour/2+time.Minute), "which has all the time again")
}
