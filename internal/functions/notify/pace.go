package notify

import "time"

// A circuit that closes and opens again every minute, for hours, is told of at once a few times,
// and then now and then.
const (
	paceBurst = 6 // notices: three incidents and their ends
	paceEvery = 10 * time.Minute
)

// pace gives when people may be told what there is to tell now; zero: at once. There is room for
// paceBurst notices, and for one more every paceEvery; l.Pace is when there will be room for all of
// them again. What has to wait goes together with what comes until then.
func (l *ledger) pace(now time.Time) time.Time {
	const full = paceBurst * paceEvery
	if l.Pace.Before(now) {
		l.Pace = now
	}
	if !l.Pace.Add(-full).After(now) { // nobody waits yet
		l.Pace = l.Pace.Add(paceEvery)
	}
	if at := l.Pace.Add(-full); at.After(now) {
		return at
	}
	return time.Time{}
}

// waits tells whether an item is not to be sent yet. What a clock that was set back says is not
// believed.
func (it item) waits(now time.Time) bool {
	wait := it.NotBefore.Sub(now)
	return wait > 0 && wait <= paceEvery
}

// recall takes back what a target is yet to be told of an incident, if that has to wait; false: it
// has been told, or soon will be.
func (l *ledger) recall(target, incident string, now time.Time) bool {
	for i, it := range l.Items {
		if it.Target == target && it.Claim == nil && it.waits(now) && it.Kind == kindOpened && l.change(it.Change).Incident == incident {
			l.drop(i, superseded)
			return true
		}
	}
	return false
}
