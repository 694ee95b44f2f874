package delivery

import "time"

// memory is what a lane has of events in memory: in its queue, set aside to be put away, under
// way, held by receivers, on the way back to the parked log. It is a plain value and the lane's;
// guarded by lane.mu.
type memory struct {
	budget *budget // of all lanes together
	queue  queue
	// expired are too old, and wait for a worker to put them away; lapsed are likewise what pullers
	// held for too long.
	expired, lapsed []*item
	// bytes is what all of it measures.
	bytes int
	// full: something did not fit. Until something leaves there is no use in reading on.
	full bool
}

// chores is how many events wait to be put away.
func (m *memory) chores() int { return len(m.expired) + len(m.lapsed) }

// fits reports whether an event of a size has room in the queue.
func (m *memory) fits(t *terms, size int) bool {
	q, size := &m.queue, size+itemBytes
	room := q.events == 0 || q.events < t.queueEvents && q.bytes+size <= t.queueBytes
	return room && m.budget.allows(m.bytes, size)
}

// fitsExpired reports whether there is room for something that is to be put away.
func (m *memory) fitsExpired(t *terms, size int) bool {
	return len(m.expired) < t.queueEvents && m.budget.allows(m.bytes, size+itemBytes)
}

// low reports whether the queue has gone down so far that filling it is worth opening a cursor.
func (m *memory) low(t *terms) bool {
	return m.queue.events <= t.queueEvents/2 && m.queue.bytes <= t.queueBytes/2 &&
		(m.bytes == 0 || int64(m.bytes) <= m.budget.free()/2)
}

func (m *memory) push(t *terms, it *item, now time.Time) {
	m.bytes += it.bytes()
	m.enqueue(t, it, now)
}

// enqueue puts an item into the queue. One from the log that was not tried yet is due whatever
// the time.
func (m *memory) enqueue(t *terms, it *item, now time.Time) {
	if m.queue.ordered() {
		it.key = t.order.OrderKey(&it.Delivery)
	}
	m.queue.push(it, now)
}

func (m *memory) expire(it *item) {
	m.bytes += it.bytes()
	m.expired = append(m.expired, it)
}

// letGo forgets an item that has left the queue.
func (m *memory) letGo(it *item) {
	m.bytes -= it.bytes()
	m.full = false
	it.free(m.budget)
}

// clear takes all that is nobody's: what workers and receivers have is not.
func (m *memory) clear() []*item {
	items := append(append(m.queue.clear(), m.expired...), m.lapsed...)
	m.expired, m.lapsed = nil, nil
	return items
}
