package demo

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// S: what a home says is the same each time it is asked, and there is something of everything.
func TestHomesSayTheSameTwice(t *testing.T) {
	seen := map[string]int{}
	for home := range 8_000 {
		for s := range sensorKinds {
			value := sense(home, s, noon, time.Minute)
			testkit.MustEqual(t, sense(home, s, noon.Add(30*time.Second), time.Minute), value, "%s of home %d", s, home)
			r := reading{Home: homeName(home), Sensor: s.String(), At: noon, Value: value}
			seen[r.alarm()]++
			if r.isOdd() {
				seen["odd"]++
			}
		}
	}
	for _, kind := range []string{"", "door.opened", "glass.broken", "co.high", "odd"} {
		testkit.That(t, seen[kind] > 0, "no reading is %q: %v", kind, seen)
	}
}

func TestNamesOfHomes(t *testing.T) {
	n, ok := homeNumber(homeName(48213))
	testkit.That(t, ok && n == 48213, "home 48213 comes back as %d", n)
	for _, name := range []string{"", "h-1", "h-00000x", "h-048213/.."} {
		_, ok := homeNumber(name)
		testkit.That(t, !ok, "%q is taken for a home", name)
	}
}
