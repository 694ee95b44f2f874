package notify

import (
	"fmt"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// publishedSince is the change that the grid is to be told of, among those with a number above one; zero:
// there is none.
func (l *ledger) publishedSince(number int64) change {
	for _, it := range l.Items {
		if it.Kind == kindEvent && it.Number > number {
			return l.change(it.Change)
		}
	}
	return change{}
}

// activityOf is a change of a circuit as the activity journal has it. The grid is told of it by an event
// with more about it.
func activityOf(c Circuit, to change) activity.Entry {
	r := to.Record
	e := activity.Entry{
		At: r.Since, Kind: activity.CircuitOpened, Object: activity.Path("circuits", c.Function), By: r.By, Count: r.Failures, Silent: true,
		Detail: fmt.Sprintf("group %s of hub %s", c.Group.Group, c.Group.Hub),
	}
	switch {
	case r.State == breaker.HalfOpen:
		e.Kind = activity.CircuitHalfOpen
	case r.State == breaker.Held:
		e.Kind = activity.CircuitHeld
	case r.State == breaker.Closed && (to.Gone || to.Previous == breaker.HalfOpen):
		e.Kind = activity.CircuitClosed
	case r.State == breaker.Closed: // not by a probe: somebody closed it
		e.Kind = activity.CircuitResumed
	}
	if r.Reason != "" {
		e.Detail += ": " + r.Reason
	}
	return e
}
