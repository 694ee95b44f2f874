package triage

import "time"

// Policy is how often and after what waits events are tried again (F3).
type Policy struct {
	// Retries are the calls after the first; negative: for ever.
	Retries int
	// Delay is before the first retry, and before every one unless Exponential: then it doubles
	// each time up to Max (0: 1 min, or Delay if that is longer), with jitter of a fifth either
	// way, though never more than Max.
	Delay, Max  time.Duration
	Exponential bool
}

// The policy where none is given, of the library and of the yard alike: the wait doubles each time,
// which makes some eight seconds. A program that is restarted is back by then.
const (
	DefaultRetries = 5
	DefaultDelay   = 250 * time.Millisecond
)

const (
	defaultMax  = time.Minute
	leastDeaths = 3
	// aloneDeaths of those that lead to an event's put-away are in calls for it alone. While it had
	// company they may have been anybody's.
	aloneDeaths = 3
	// onceMoreWait is the longest wait before an event that was found by halves is called once
	// more.
	onceMoreWait = 100 * time.Millisecond
	// untouchedWait is the least wait where a call touched nothing: it would be made again and
	// again.
	untouchedWait = time.Second
	// firstDown is the least wait where something has been down for longer than the retries last;
	// it doubles up to mostDown, or the policy's Delay if that is longer. Once it is back events
	// are not to wait for much longer; and as each such call counts, a breaker with usual numbers
	// is to hear of an outage that lasts.
	firstDown = 250 * time.Millisecond
	mostDown  = time.Second
)

// Wait is before retry n, counted from 1; random is in [0,1).
func (p Policy) Wait(n int, random float64) time.Duration {
	if !p.Exponential || p.Delay <= 0 {
		return max(p.Delay, 0)
	}
	limit := p.limit()
	wait := min(p.Delay, limit)
	for ; n > 1 && wait < limit; n-- {
		wait = min(wait, limit-wait) + wait // doubled, without overflow
	}
	least := wait - wait/5
	return least + min(time.Duration(0.4*random*float64(wait)), limit-least)
}

// downWait is after n calls in a row, counted from 1, that failed through no fault of their events:
// the policy's waits, and when it has no more a back-off.
func (p Policy) downWait(n int, random float64) time.Duration {
	wait := p.Wait(n, random)
	if p.Retries < 0 || n <= p.Retries {
		return wait
	}
	backoff := firstDown << min(n-p.Retries-1, 8)
	wait = min(max(wait, backoff), max(mostDown, p.Delay))
	return wait - time.Duration(0.2*random*float64(wait)) // so that partitions do not march in step
}

// limit is the longest wait.
func (p Policy) limit() time.Duration {
	if p.Max > 0 {
		return p.Max
	}
	return max(defaultMax, p.Delay)
}

// deaths is how often an instance may die in a call for the same events before that counts as their
// failure: as often as they may fail.
func (p Policy) deaths() int { return max(leastDeaths, p.Retries+1) }

// usedUp says whether a unit that has just failed together has no try left. One call decides on a
// part of a batch, which is only divided for it.
func (p Policy) usedUp(u Unit) bool {
	return u.Halved && p.Retries >= 0 && u.Events.Len() > 1 || p.decided(u)
}

// decided is the same of events each of which is known to have failed. One that was found by halves
// is called once more, and soon: or whatever fails for another reason in the one call that it has
// alone would be put away. To give it all tries of the policy anew would be kinder still, but while
// everything fails events would then be found guilty so slowly that the circuit might never open,
// and go on being put away.
func (p Policy) decided(u Unit) bool {
	if u.Halved && p.Retries >= 0 {
		return u.Used > min(p.Retries, 1)
	}
	return p.spent(u)
}

// again is before the next call of a unit that has failed.
func (p Policy) again(u Unit, random float64) time.Duration {
	if u.Halved && p.Retries >= 0 {
		return max(min(p.Delay, onceMoreWait), 0)
	}
	return p.Wait(u.Used, random)
}

// spent is the same where one call does not decide. For ever means also for parts that were divided
// under another policy.
func (p Policy) spent(u Unit) bool { return p.Retries >= 0 && u.Used > p.Retries }

// Condemned says whether a unit is to be put away without another call, since its instances
// die of it. Several events never are: they are divided first.
func (p Policy) Condemned(u Unit) bool {
	return u.Counted >= p.deaths() && u.Events.Len() == 1
}
