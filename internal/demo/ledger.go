package demo

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// ledger is what the children have said of themselves. Any goroutine may use it.
type ledger struct {
	mu       sync.Mutex
	sent     counts
	last     sending
	pace     pace
	twice    rereads
	consumed map[string]progress // by consumer
	watchers map[string]string   // address by watcher
	delays   []time.Duration     // of the newest readings on their way to residents' pages
	first    time.Time           // when the first reading was on a resident's page; zero: none was yet
	ready    map[string]bool
	troubles map[string]string // the newest of each child
}

// progress is how far a consumer has come.
type progress struct {
	events int64
	behind time.Duration
	at     time.Time
}

func newLedger(now time.Time) *ledger {
	l := &ledger{sent: counts{}, consumed: map[string]progress{}, watchers: map[string]string{}, ready: map[string]bool{}, troubles: map[string]string{}}
	l.pace.excuse(now.Add(paceSpan))
	return l
}

// keptDelays is how many delays the median is of.
const keptDelays = 400

// hear takes a child's line.
func (l *ledger) hear(name string, a account, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Ready:
		l.ready[name] = true
	case a.Sending != nil:
		l.sent.update(a.Sending.Periods)
		l.last = *a.Sending
		l.pace.note(moment{at: now, due: a.Sending.Due, acked: l.sent.total().Acked})
	case a.Read != nil:
		l.twice.note(a.Read.Partition, a.Read.From, a.Read.To)
		p := l.consumed[name]
		l.consumed[name] = progress{events: p.events + a.Read.To - a.Read.From + 1, behind: a.Read.Behind, at: now}
	case a.Serving != "":
		l.watchers[name] = a.Serving
	case a.Seen != 0:
		if l.first.IsZero() {
			l.first = now
		}
		l.delays = append(l.delays, a.Seen)
		l.delays = l.delays[max(0, len(l.delays)-keptDelays):]
	case a.Trouble != "":
		l.troubles[name] = a.Trouble
	}
}

// counts gives what the gateway has counted, and how much was read twice.
func (l *ledger) counts() (sent counts, twice int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sent), l.twice.twice
}

// isReady tells whether a child has begun to work.
func (l *ledger) isReady(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready[name]
}

// hasEnded tells whether the gateway has sent its last.
func (l *ledger) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.Ended
}

// excuse puts off the judgement of the rate.
func (l *ledger) excuse(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.excuse(until)
}

// fallsShort tells whether too little was sent for too long.
func (l *ledger) fallsShort(now time.Time) (reached float64, short bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.reached(), l.pace.short(now)
}

// rate is what the gateway sends.
func (l *ledger) rate(every time.Duration) Rate {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, acked := l.pace.rates()
	return Rate{
		Homes: l.last.Homes, Sensors: l.last.Sensors, Promised: promised(l.last.Homes, l.last.Sensors, every),
		Sent: acked, Reached: l.pace.reached(), Alarms: l.last.Alarms, Odd: l.last.Odd,
	}
}

// delay is how long half of the readings took to a resident's page.
func (l *ledger) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.delays) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(l.delays))[len(l.delays)/2]
}

// firstShown is how long after a moment the first home was on a resident's page; not ok: none has been.
func (l *ledger) firstShown(since time.Time) (after time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first.Sub(since), !l.first.IsZero()
}

// progressOf gives how far consumers have come.
func (l *ledger) progressOf() map[string]progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.consumed)
}

// trouble is the newest error that a child has carried on from.
func (l *ledger) trouble(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.troubles[name]
}

// watcherAddresses are where watchers answer.
func (l *ledger) watcherAddresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.watchers))
}
