package processor

import "github.com/eventyard/eventyard/event"

// watermark keeps, for one lane, which events it was given and which of them are not yet
// finished or marked. What is finished out of order is held back by the lowest that is not:
// the watermark of all lanes is the lowest of theirs. It is a plain value; its owner guards it.
type watermark struct {
	// queue are events not yet in a batch, before the position before each of them.
	queue  []event.Event
	before []position
	// current is the batch being handled: the position before it; nil: none.
	current *position
	// unmarked are the batches taken and not marked, oldest first.
	unmarked []span
}

// span is one batch: the position before its first event that is not marked, and its last
// event's sequence number.
type span struct {
	before  position
	last    int64
	skipped bool // it need not be marked, only those before it
}

// maxSpans bounds what is remembered of batches that nobody marks: beyond it the oldest two
// become one, which then is marked with the later of them.
const maxSpans = 64

func (w *watermark) add(ev event.Event, before position) {
	w.queue = append(w.queue, ev)
	w.before = append(w.before, before)
}

// take moves up to n events from the queue into a batch, appending to the slices given.
func (w *watermark) take(n int, events []event.Event, before []position) ([]event.Event, []position) {
	n = min(n, len(w.queue))
	events = append(events, w.queue[:n]...)
	before = append(before, w.before[:n]...)
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	w.before = w.before[:copy(w.before, w.before[n:])]
	w.current = &before[0]
	w.unmarked = append(w.unmarked, span{before: before[0], last: events[len(events)-1].Sequence})
	if len(w.unmarked) > maxSpans {
		w.unmarked[1].before, w.unmarked[1].skipped = w.unmarked[0].before, false
		w.unmarked = w.unmarked[1:]
	}
	return events, before
}

// finish says that the batch being handled is done with.
func (w *watermark) finish() { w.current = nil }

// mark says that all up to the event of this sequence number is done. after is the position before
// the next event of its batch; there is none when it is the last.
func (w *watermark) mark(seq int64, after *position) {
	for len(w.unmarked) > 0 && w.unmarked[0].last <= seq {
		w.unmarked = w.unmarked[1:]
	}
	if after != nil && len(w.unmarked) > 0 && w.unmarked[0].before.seq < after.seq {
		w.unmarked[0].before = *after
	}
	w.trim()
}

// skip says that the batch that ends with this event is not waited for.
func (w *watermark) skip(last int64) {
	if n := len(w.unmarked); n > 0 && w.unmarked[n-1].last == last {
		w.unmarked[n-1].skipped = true
	}
	w.trim()
}

func (w *watermark) trim() {
	for len(w.unmarked) > 0 && w.unmarked[0].skipped {
		w.unmarked = w.unmarked[1:]
	}
}

// unfinished is the position before the lowest event that is not finished; false: all are.
func (w *watermark) unfinished() (position, bool) {
	switch {
	case w.current != nil:
		return *w.current, true
	case len(w.queue) > 0:
		return w.before[0], true
	}
	return nowhere, false
}

// undone is the same for events that are not marked.
func (w *watermark) undone() (position, bool) {
	switch {
	case len(w.unmarked) > 0:
		return w.unmarked[0].before, true
	case len(w.queue) > 0:
		return w.before[0], true
	}
	return nowhere, false
}

// lowest is the lowest of all lanes' positions, or newest where none has anything left.
func lowest[T any](lanes []T, newest position, position func(T) (position, bool)) position {
	low := newest
	for _, l := range lanes {
		if pos, any := position(l); any && pos.seq < low.seq {
			low = pos
		}
	}
	return low
}
