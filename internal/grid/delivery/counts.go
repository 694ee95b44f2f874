package delivery

import "github.com/eventyard/eventyard/internal/grid/retry"

// counts is what a lane has done since the start. The maps are made when there is something to
// count.
type counts struct {
	matched, delivered int64
	requests           map[retry.Outcome]int64
	failed             map[retry.Outcome]int64
	dropped, dead      map[string]int64
}

// tally is what a worker has to add to them.
type tally struct {
	delivered int64
	attempts  []AttemptRecord
	failed    []count
	dropped   []count
	dead      []count
}

type count struct {
	name   string
	events int
}

func (t *tally) fail(o retry.Outcome, n int) { t.failed = append(t.failed, count{string(o), n}) }
func (t *tally) drop(reason string, n int)   { t.dropped = append(t.dropped, count{reason, n}) }
func (t *tally) bury(reason string, n int)   { t.dead = append(t.dead, count{reason, n}) }

func (t *tally) clear() {
	clear(t.attempts)
	t.delivered = 0
	t.attempts, t.failed, t.dropped, t.dead = t.attempts[:0], t.failed[:0], t.dropped[:0], t.dead[:0]
}

func (c *counts) add(t *tally) {
	c.delivered += t.delivered
	for i := range t.attempts {
		c.requests = add(c.requests, t.attempts[i].Outcome, 1)
	}
	for _, f := range t.failed {
		c.failed = add(c.failed, retry.Outcome(f.name), f.events)
	}
	for _, d := range t.dropped {
		c.dropped = add(c.dropped, d.name, d.events)
	}
	for _, d := range t.dead {
		c.dead = add(c.dead, d.name, d.events)
	}
}

func add[K comparable](m map[K]int64, k K, n int) map[K]int64 {
	if n == 0 {
		return m
	}
	if m == nil {
		m = make(map[K]int64)
	}
	m[k] += int64(n)
	return m
}
