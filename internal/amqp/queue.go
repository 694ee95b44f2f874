package amqp

// linkQueue are the links that wait for room in the output, first come, first served. The
// one that has the turn is not in it any more. Guarded by Conn.mu.
//
// While the queue is not empty, someone has the turn, or the output is full; then the
// writing goroutine will take it and call next. So whoever gives up the turn has to pass it.
type linkQueue struct {
	first, last *outgoing
	turn        *outgoing // may fill in what it has, alone
}

// join puts a link at the end, unless it is in the queue already. One that has the turn,
// and finds no room, gives it up.
func (q *linkQueue) join(o *outgoing) {
	if q.turn == o {
		q.turn = nil
	}
	if o.queued {
		return
	}
	o.queued = true
	o.prev, o.next = q.last, nil
	if q.last == nil {
		q.first = o
	} else {
		q.last.next = o
	}
	q.last = o
}

// leave takes a link out, if it is in.
func (q *linkQueue) leave(o *outgoing) {
	if !o.queued {
		return
	}
	if o.prev == nil {
		q.first = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		q.last = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.queued, o.prev, o.next = false, nil, nil
}

// next gives the turn to the first in the queue, if nobody has it.
func (q *linkQueue) next() {
	if q.turn != nil || q.first == nil {
		return
	}
	q.turn = q.first
	q.leave(q.turn)
	q.turn.wakeUp()
}

// pass gives up the turn, if the link has it: to the next, while there is room.
func (q *linkQueue) pass(o *outgoing, full bool) {
	if q.turn != o {
		return
	}
	q.turn = nil
	if !full {
		q.next()
	}
}
