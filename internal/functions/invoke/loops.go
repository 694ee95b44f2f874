package invoke

import (
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/grid/hops"
)

// hopsOf is how often yards have passed on the one of the events that was passed on most. A program
// that publishes what it is called with passes the header on, or is a yard itself.
func hopsOf(events []event.Event) (most int) {
	for i := range events {
		most = max(most, hops.OfProperties(events[i].Properties))
	}
	return most
}

// endLoops is the answer for events that go round in a loop, by which the program is not called:
// they are put away, and those beside them are left for another call.
func endLoops(events []event.Event) (answer Answer, looped bool) {
	end := Result{Verdict: Poison, Error: hops.Advice}
	var each map[int]Result // made when the first is found, which is rare
	others := 0
	for i := range events {
		if hops.OfProperties(events[i].Properties) >= hops.Max {
			if each == nil {
				each = map[int]Result{}
			}
			each[i] = end
		} else {
			others++
		}
	}
	switch {
	case len(each) == 0:
		return Answer{}, false
	case others == 0:
		return Answer{Result: end}, true
	}
	for i := range events {
		if _, ends := each[i]; !ends {
			each[i] = Result{Verdict: Untouched}
		}
	}
	return Answer{Each: each}, true
}
