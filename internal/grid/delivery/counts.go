package delivery

import "maps"

// kind is what is counted of events, by name: by outcome the first two, by reason the others.
type kind int

const (
	requested kind = iota // requests that were made
	failed                // events whose attempt failed
	dropped               // given up, without a target for dead letters
	buried                // dead-lettered
	kinds
)

// counts is what a lane has done since the start. The maps are made when there is something to
// count.
type counts struct {
	matched, delivered int64
	named              [kinds]map[string]int64
}

// tally is what a worker has to add to them.
type tally struct {
	delivered int64
	attempts  []AttemptRecord
	named     []count
	drops     []droppedEvent
}

type count struct {
	kind   kind
	name   string
	events int
}

func (t *tally) count(k kind, name string, events int) {
	t.named = append(t.named, count{k, name, events})
}

func (c *counts) add(t *tally) {
	c.delivered += t.delivered
	for i := range t.attempts {
		c.addNamed(requested, string(t.attempts[i].Outcome), 1)
	}
	for _, n := range t.named {
		c.addNamed(n.kind, n.name, n.events)
	}
}

// copy is never nil, since people are shown it.
func (c *counts) copy(k kind) map[string]int64 {
	m := make(map[string]int64, len(c.named[k]))
	maps.Copy(m, c.named[k])
	return m
}

func (c *counts) addNamed(k kind, name string, n int) {
	if n == 0 {
		return
	}
	if c.named[k] == nil {
		c.named[k] = make(map[string]int64)
	}
	c.named[k][name] += int64(n)
}
