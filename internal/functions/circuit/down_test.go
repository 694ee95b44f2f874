package circuit

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

var hundred = breaker.Policy{Failures: 100, Within: 30 * time.Second}

// findsDown has a member find what it needs down once a second for so long, which counts or not.
func (p *played) findsDown(d time.Duration, n int) {
	p.w.t.Helper()
	for range int(d / time.Second) {
		testkit.Must(p.w.t, testkit.Err(p.FoundDown(p.w.t.Context(), time.Second, n)))
		pass(time.Second)
	}
}

// F5, R7: a lasting outage opens the circuit of all, however few calls there are meanwhile, and
// whether they count or not.
func TestNothingButWhatIsDownOpensIt(t *testing.T) {
	for _, counts := range []int{0, 1} {
		inWorld(t, hundred, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.startPolling("b")
			b.FoundUp() // long ago by then
			a.findsDown(30*time.Second, counts)
			a.is(breaker.Closed)
			a.findsDown(2*time.Second, counts)
			a.is(breaker.Open)
			b.is(breaker.Open)
			w.resume()
			pass(2 * time.Second)
			a.findsDown(20*time.Second, counts)
			a.is(breaker.Closed) // it begins anew
		})
	}
}

// F5, R7: what one instance cannot reach while others can stops nobody.
func TestWhatIsWellForOthersIsNotDown(t *testing.T) {
	for name, start := range map[string]func(*world, string) *played{"watched": (*world).start, "polled": (*world).startPolling} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, hundred, func(t *testing.T, w *world) {
				a, b := start(w, "a"), start(w, "b")
				for range 60 {
					b.FoundUp()
					a.findsDown(2*time.Second, 1)
					a.is(breaker.Closed)
				}
				a.findsDown(35*time.Second, 1) // the other has nothing to do any more
				a.is(breaker.Open)
			})
		})
	}
}

// F5: a call that was answered, whatever it was, ends the outage.
func TestAnAnswerEndsAnOutage(t *testing.T) {
	inWorld(t, hundred, func(t *testing.T, w *world) {
		a := w.start("a")
		for range 5 {
			a.findsDown(29*time.Second, 1)
			a.FoundUp()
		}
		a.is(breaker.Closed)
	})
}

// R7: while one finds it down, it learns of what succeeds elsewhere, some seconds later and never
// as younger than it is, and of those that find it down, too.
func TestWhatIsMetElsewhereIsKnown(t *testing.T) {
	for name, start := range map[string]func(*world, string) *played{"watched": (*world).start, "polled": (*world).startPolling} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, hundred, func(t *testing.T, w *world) {
				a, b := start(w, "a"), start(w, "b")
				b.Succeeded(time.Now())
				pass(20 * time.Second)
				good, _ := a.Elsewhere()
				testkit.That(t, good.IsZero(), "it is told where nobody needs it")
				first := time.Now()
				for range 40 {
					began := time.Now()
					pass(700 * time.Millisecond)
					b.Succeeded(began)
					a.findsDown(time.Second, 0)
					good, down := a.Elsewhere()
					testkit.That(t, !good.After(began), "a success is said to be younger by %v", good.Sub(began))
					testkit.That(t, down.IsZero(), "it is down elsewhere")
				}
				good, _ = a.Elsewhere()
				testkit.That(t, good.After(first), "no success is known since %v", time.Since(first))
				for range 8 {
					b.findsDown(time.Second, 0)
					a.findsDown(time.Second, 0)
				}
				good, down := a.Elsewhere()
				testkit.That(t, down.After(good), "it is not down elsewhere")
				b.Succeeded(time.Now())
				a.findsDown(3*time.Second, 0)
				_, down = a.Elsewhere()
				testkit.That(t, down.IsZero(), "it is still down elsewhere")
			})
		})
	}
}
