package groups

import (
	"sync"
	"time"
)

// size is how many entries there are, and what they measure as they are stored.
type size struct{ stored, bytes int }

func (s size) plus(more size) size { return size{s.stored + more.stored, s.bytes + more.bytes} }

// tally knows about how many entries the groups have, so that not every new one has them counted.
// It is a bound against runaways: with several nodes, and where an answer is lost, it may be passed
// a little.
type tally struct {
	most size

	mu     sync.Mutex
	groups map[string]counted // by prefix of the records; guarded by mu
}

// counted is a group's size and when the entries were last looked at for it.
type counted struct {
	size
	at time.Time
}

const (
	// maxTallies bounds the map: deleted groups leave their number behind.
	maxTallies = 10_000
	// recountAfter is how long a count is good enough to refuse by: to count is to read all.
	recountAfter = time.Second
)

// room reports whether there is room for so much more, and whether that is known for sure:
// counted lately.
func (t *tally) room(prefix string, more size) (room, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.groups[prefix]
	then := n.plus(more)
	room = known && then.stored <= t.most.stored && then.bytes <= t.most.bytes
	return room, known && time.Since(n.at) < recountAfter
}

func (t *tally) set(prefix string, n size) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.groups) >= maxTallies {
		clear(t.groups)
	}
	t.groups[prefix] = counted{n, time.Now()}
}

func (t *tally) add(prefix string, more size) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, known := t.groups[prefix]; known {
		then := n.plus(more)
		n.size = size{max(0, then.stored), max(0, then.bytes)}
		t.groups[prefix] = n
	}
}
