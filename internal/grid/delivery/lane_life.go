package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
)

// adopt gives the lane new terms and its endpoint, and gives back the old ones.
func (l *lane) adopt(t *terms, e *endpoint, now time.Time) (*terms, *endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, had := l.terms, l.endpoint
	if old.ordered != t.ordered {
		l.shedLocked() // to be read again, in the other order
		l.queue.order(t.ordered)
	}
	l.terms, l.endpoint = t, e
	if e != had {
		l.probeSent = false
	}
	if old.limit != t.limit {
		l.limiter = t.limiter()
	}
	for _, track := range l.tracks {
		track.version++ // what is being read may not be wanted any more, or more of it
	}
	l.full = false
	l.pull.notify(!t.pull) // who waits for something to receive waits in vain
	l.pokeLocked(now)
	return old, had
}

// end is the lane's, with its subscription. What it has in memory is nobody's any more.
func (l *lane) end() *endpoint {
	l.mu.Lock()
	items := l.queue.clear()
	items = append(items, l.expired...)
	items = append(items, l.lapsed...)
	items = append(items, l.pull.drop()...)
	items = append(items, l.stock.returning...)
	if l.stock.peeked != nil {
		items = append(items, l.stock.peeked)
	}
	for _, it := range items {
		l.letGoLocked(it)
	}
	l.gone, l.expired, l.lapsed, l.stock = true, nil, nil, stock{}
	for _, t := range l.tracks {
		t.version++
		t.joined.Store(false)
	}
	l.pull.notify(true)
	l.setAlarmLocked(time.Time{})
	e := l.endpoint
	l.mu.Unlock()
	notifyDone(items)
	return e
}

// endpointNow is where it sends to; nil: nowhere.
func (l *lane) endpointNow() *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint
}

// filter is what its events have to pass; nil if it cannot be used.
func (l *lane) filter() *filter.Filter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terms.filter
}

func (l *lane) name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terms.sub.Name
}
