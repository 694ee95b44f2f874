package admission

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Memory bounds the bytes that were read for clients and that they have not taken yet: of one holder,
// such as a policy, and of all. Who needs some waits for it. Waiting alone would let clients that take
// nothing keep everybody waiting, so that while somebody waits those are cut off who have kept theirs
// the longest, and for longer than a client needs that takes what it is sent. Its methods may be
// called by many goroutines at once.
type Memory struct {
	each, all int
	// patience is for how long a share is safe.
	patience time.Duration

	mu sync.Mutex
	// All below is guarded by mu.
	used     int
	byHolder map[string]int
	kept     Share     // the head of a ring of those that have bytes and may be cut off, the oldest first
	waiting  list.List // of *wish, the oldest first
	// waitingBy counts them by holder.
	waitingBy map[string]int
}

// What readers may hold by default: those of one holder, and all. A share is safe for DefaultPatience.
const (
	MaxReadBytesOfOne = 64 << 20
	MaxReadBytes      = 256 << 20
	DefaultPatience   = 5 * time.Second
)

// DefaultMemory makes one with the defaults.
func DefaultMemory() *Memory { return NewMemory(MaxReadBytesOfOne, MaxReadBytes, DefaultPatience) }

// NewMemory makes one of so many bytes.
func NewMemory(each, all int, patience time.Duration) *Memory {
	m := &Memory{each: each, all: all, patience: patience, byHolder: map[string]int{}, waitingBy: map[string]int{}}
	m.kept.older, m.kept.younger = &m.kept, &m.kept
	return m
}

// Share is what one reader has of the memory. One goroutine uses it at a time.
type Share struct {
	memory *Memory
	holder string
	cut    func()

	// All below is guarded by memory.mu.
	bytes   int
	since   time.Time // when they were last taken
	pressed time.Time // when cut was last called since; zero: it was not
	// older and younger are its neighbours in the ring; nil while it has nothing, and when it is spared.
	older, younger *Share
}

// wish is what somebody waits for.
type wish struct {
	share   *Share
	bytes   int
	granted chan struct{} // closed
}

// Held gives how many bytes a holder has in all its shares.
func (m *Memory) Held(holder string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byHolder[holder]
}

// Share gives a reader its own, with nothing in it. Cut ends what the reader does, and must not wait
// for it: others call it when the share was kept for too long, or had been a moment before. It is called
// again after the same time where that was in vain.
func (m *Memory) Share(holder string, cut func()) *Share {
	return &Share{memory: m, holder: holder, cut: cut}
}

// TryTake makes the share so many bytes, whatever it had, if there is room and nobody waits for it
// already: of the same holder, or because there is none in all.
func (s *Share) TryTake(bytes int) bool {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes = m.atMost(bytes); m.waitingBy[s.holder] > 0 || m.crowdedLocked() || !s.fitsLocked(bytes) {
		return false
	}
	s.setLocked(bytes)
	return true
}

// Grow is TryTake for who has some already, and does not become younger by having more or less. More than
// there is in all is refused.
func (s *Share) Grow(bytes int) bool {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case bytes > s.bytes && (m.waitingBy[s.holder] > 0 || m.crowdedLocked() || !s.fitsLocked(bytes)):
		return false
	case bytes > 0 && s.younger != nil:
		s.addLocked(bytes - s.bytes)
	default:
		s.setLocked(bytes)
	}
	m.grantLocked()
	return true
}

// crowdedLocked: the first who waits does so because there is no room in all.
func (m *Memory) crowdedLocked() bool {
	first := m.waiting.Front()
	return first != nil && m.used+first.Value.(*wish).bytes > m.all
}

// Press cuts off who has stood in the way of so many bytes for the share for too long, if anybody: for who does not
// wait for them, and is to come again.
func (s *Share) Press(bytes int) {
	s.memory.makeRoom(&wish{share: s, bytes: s.memory.atMost(bytes)})
}

// Touch says that the client takes what it is sent: the share is as young as one taken now.
func (s *Share) Touch() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.setLocked(s.bytes)
}

// Spare keeps the share from being cut off from now on: what it waits for is not its client's doing any more.
// Taking more makes it one of many again.
func (s *Share) Spare() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.leaveLocked()
}

// Take is TryTake that waits until there is room, or ctx ends. It has nothing meanwhile.
func (s *Share) Take(ctx context.Context, bytes int) error {
	m := s.memory
	w := &wish{share: s, bytes: m.atMost(bytes), granted: make(chan struct{})}
	m.mu.Lock()
	s.setLocked(0)
	queued := m.waiting.PushBack(w)
	m.waitingBy[s.holder]++
	m.grantLocked()
	m.mu.Unlock()
	timer := time.NewTimer(m.patience)
	defer timer.Stop()
	for {
		select {
		case <-w.granted:
			return nil
		case <-timer.C:
			timer.Reset(m.makeRoom(w))
		case <-ctx.Done():
			m.mu.Lock()
			defer m.mu.Unlock()
			select {
			case <-w.granted:
			default:
				m.dequeueLocked(queued)
			}
			s.setLocked(0)
			m.grantLocked()
			return context.Cause(ctx)
		}
	}
}

// Count makes the share so many bytes, which are in memory whether there is room or not.
func (s *Share) Count(bytes int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.setLocked(bytes)
	m.grantLocked()
}

// Keep is Count for a part of what was taken. It makes the share no younger.
func (s *Share) Keep(bytes int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > 0 && s.younger != nil {
		s.addLocked(bytes - s.bytes)
	} else {
		s.setLocked(bytes)
	}
	m.grantLocked()
}

// Give gives everything back. It may be called again.
func (s *Share) Give() { s.Count(0) }

// atMost: what is larger than all there is waits for all there is.
func (m *Memory) atMost(bytes int) int { return min(bytes, m.each, m.all) }

func (s *Share) fitsLocked(bytes int) bool {
	m, more := s.memory, bytes-s.bytes
	return m.used+more <= m.all && m.byHolder[s.holder]+more <= m.each
}

// setLocked gives the share so many bytes, and makes it the youngest of all.
func (s *Share) setLocked(bytes int) {
	s.addLocked(bytes - s.bytes)
	s.leaveLocked()
	if bytes == 0 {
		return
	}
	head := &s.memory.kept
	s.since, s.pressed = time.Now(), time.Time{}
	s.older, s.younger = head.older, head
	s.older.younger, s.younger.older = s, s
}

// leaveLocked takes the share out of the ring of those that may be cut off.
func (s *Share) leaveLocked() {
	if s.younger != nil {
		s.older.younger, s.younger.older = s.younger, s.older
		s.older, s.younger = nil, nil
	}
}

func (s *Share) addLocked(bytes int) {
	m := s.memory
	s.bytes += bytes
	m.used += bytes
	if m.byHolder[s.holder] += bytes; m.byHolder[s.holder] == 0 {
		delete(m.byHolder, s.holder)
	}
}

// grantLocked lets those go on for whom there is room now, in the order in which they came. Nobody
// waits behind those whose own holder has no room.
func (m *Memory) grantLocked() {
	for e := m.waiting.Front(); e != nil; {
		w, next := e.Value.(*wish), e.Next()
		if m.used+w.bytes > m.all {
			return
		}
		if w.share.fitsLocked(w.bytes) {
			m.dequeueLocked(e)
			w.share.setLocked(w.bytes)
			close(w.granted)
		}
		e = next
	}
}

func (m *Memory) dequeueLocked(e *list.Element) {
	holder := e.Value.(*wish).share.holder
	m.waiting.Remove(e)
	if m.waitingBy[holder]--; m.waitingBy[holder] == 0 {
		delete(m.waitingBy, holder)
	}
}

// makeRoom cuts off who stands in the way of a wish: the oldest share of its holder, if that one has
// no room, else the oldest of all. It tells when to try again.
func (m *Memory) makeRoom(w *wish) time.Duration {
	s, again := m.inTheWay(w)
	if s != nil {
		s.cut()
	}
	return again
}

// inTheWay finds who is to be cut off, if anybody, and notes it.
func (m *Memory) inTheWay(w *wish) (who *Share, again time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ofHolder := m.byHolder[w.share.holder]+w.bytes > m.each
	again = m.patience
	for s := m.kept.younger; s != &m.kept; s = s.younger {
		if s.cut == nil || ofHolder && s.holder != w.share.holder {
			continue
		}
		if ago := time.Since(s.pressed); ago < m.patience { // it may have been in vain
			again = min(again, m.patience-ago)
			continue
		}
		if age := time.Since(s.since); age < m.patience {
			return nil, min(again, m.patience-age)
		}
		s.pressed = time.Now()
		return s, time.Millisecond // then the next, unless this was enough
	}
	return nil, again
}
