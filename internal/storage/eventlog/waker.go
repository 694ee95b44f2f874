package eventlog

import "sync"

// Waker waits at many cursors at once: one goroutine follows as many partitions as it likes, at the
// cost of a few words for each that has nothing to give. Partitions go by numbers of the caller's.
// One goroutine uses it.
type Waker struct {
	signal chan struct{}
	stops  map[int]func()

	mu sync.Mutex
	// woken is guarded by mu.
	woken []int
}

// NewWaker makes one that waits at nothing.
func NewWaker() *Waker {
	return &Waker{signal: make(chan struct{}, 1), stops: map[int]func(){}}
}

// Wait begins to wait at a cursor, which may be closed then, until Woken gives its number.
func (w *Waker) Wait(number int, c Cursor) {
	w.stops[number] = c.Await(func() {
		w.mu.Lock()
		w.woken = append(w.woken, number)
		w.mu.Unlock()
		select {
		case w.signal <- struct{}{}:
		default: // it is there already
		}
	})
}

// C is ready to receive from when there may be numbers to be had from Woken.
func (w *Waker) C() <-chan struct{} { return w.signal }

// Woken appends the numbers at which there is something to read, or to fail, in the order in which
// it came. They are not waited at any more.
func (w *Waker) Woken(to []int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range w.woken {
		delete(w.stops, number)
	}
	to = append(to, w.woken...)
	if w.woken = w.woken[:0]; cap(w.woken) > 64 {
		w.woken = nil
	}
	return to
}

// Stop waits at nothing any more.
func (w *Waker) Stop() {
	for _, stop := range w.stops {
		stop()
	}
	clear(w.stops)
}
