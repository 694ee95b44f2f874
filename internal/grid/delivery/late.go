package delivery

import (
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/grid/pending"
)

// lateMarks is how many are remembered at most; the oldest go first. Who is forgotten is sent
// once more: best effort, as promised (G5).
const lateMarks = 100_000

// key names an event on its way to a subscription.
type key struct {
	subscription, source string
	partition            int
	sequence             int64
}

func keyOf(p *pending.Delivery) key {
	return key{p.Subscription, p.Source, p.Partition, p.Sequence}
}

// lates remembers events that an answer delivered which came after its request was given up.
type lates struct {
	count atomic.Int64 // of marks, so that mostly no lock is needed to find none

	mu    sync.Mutex
	marks map[key]struct{} // guarded by mu
	order []key            // as they came; guarded by mu
}

func (s *lates) add(keys []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks == nil {
		s.marks = make(map[key]struct{})
	}
	for _, k := range keys {
		s.marks[k] = struct{}{}
		s.order = append(s.order, k)
	}
	for len(s.order) > lateMarks {
		delete(s.marks, s.order[0])
		s.order = s.order[1:]
	}
	s.count.Store(int64(len(s.marks)))
}

// took reports whether an event was delivered late, and forgets it.
func (s *lates) took(k key) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.marks[k]
	delete(s.marks, k)
	s.count.Store(int64(len(s.marks)))
	return ok
}
