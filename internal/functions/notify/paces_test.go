package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: a client that opens circuits under ever new names has few notices sent, and those of the
// yard's functions are not held up by them. What waits is sent later.
func TestInventedCircuitsAreNoStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		for i := range 200 {
			w.circuits.set(fmt.Sprint("invented", i), opened(breaker.Record{}, fmt.Sprint("i", i)))
		}
		settle()
		testkit.Equal(t, len(w.posted(chat)), int(targetPace.Burst), "notices at once")
		w.circuits.set("resize", opened(breaker.Record{}, "real"))
		settle()
		notified := w.posted(chat)
		testkit.Equal(t, notified[len(notified)-1].Incident, "real", "the newest notice")
		time.Sleep(time.Hour)
		settle()
		n := len(w.posted(chat)) - 1
		testkit.That(t, n >= 85 && n <= 91, "%d notices after an hour", n)
	})
}

// R4: all targets together get no more than so many.
func TestThePaceInAll(t *testing.T) {
	p, now, sent := newPaces(), time.Now(), 0
	for target := range 100 {
		for range 10 {
			if p.take(false, fmt.Sprint(target), now) == 0 {
				sent++
			}
		}
	}
	testkit.Equal(t, sent, int(totalPace.Burst), "notices at once")
	testkit.Equal(t, p.take(true, "0", now), 0, "wait of a function of the yard")
	testkit.Equal(t, p.take(false, "new", now.Add(24*time.Hour)), 0, "wait a day later")
	testkit.That(t, len(p.buckets) <= 4, "%d buckets are kept", len(p.buckets))
}
