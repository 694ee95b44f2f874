package demo

import "time"

const (
	// rateSpan is over which the rate is measured.
	rateSpan = 5 * time.Second
	// paceSpan is for how long it may fall short: what stands still for a moment catches up.
	paceSpan = 10 * time.Second
	// paceLeast is the share of the promised rate under which homes are halved.
	paceLeast = 0.95
)

// moment is how far the gateway was at a time.
type moment struct {
	at         time.Time
	due, acked int64
}

// pace compares what was sent with what was promised, over the last seconds. It is pure.
type pace struct {
	past  []moment
	since time.Time // when it began to fall short; zero: it does not
	quiet time.Time // no judgement before
}

// note takes the gateway's newest figures.
func (p *pace) note(now moment) {
	p.past = append(p.past, now)
	for len(p.past) > 2 && now.at.Sub(p.past[1].at) >= rateSpan {
		p.past = p.past[1:]
	}
	switch {
	case p.reached() >= paceLeast:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now.at
	}
}

// excuse puts off the next judgement: at the start, while the yard is away, and after halving.
func (p *pace) excuse(until time.Time) {
	if until.After(p.quiet) {
		p.quiet = until
	}
	p.past, p.since = nil, time.Time{}
}

// rates are events a second that were due and that were acknowledged.
func (p *pace) rates() (due, acked float64) {
	if len(p.past) < 2 {
		return 0, 0
	}
	first, last := p.past[0], p.past[len(p.past)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(last.due-first.due) / seconds, float64(last.acked-first.acked) / seconds
}

// reached is the share of what was promised that was sent; at most 1, since what was late is sent
// later. It is 1 as long as nothing is known.
func (p *pace) reached() float64 {
	due, acked := p.rates()
	if due <= 0 {
		return 1
	}
	return min(1, acked/due)
}

// short tells whether too little was sent for the whole span.
func (p *pace) short(now time.Time) bool {
	return !p.since.IsZero() && now.Sub(p.since) >= paceSpan && !now.Before(p.quiet)
}
