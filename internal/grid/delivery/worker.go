package delivery

import "time"

// choreEvents is how many are put away at a time.
const choreEvents = 256

// spawnLocked starts workers for what there is to do: as many as there are batches, up to the
// lane's concurrency. Each takes the next batch by itself when it is done with one, and ends
// when there is none. What it counts on is exactly what nextJobLocked does, so that none is
// started for nothing over and over.
func (l *lane) spawnLocked(g gate, now time.Time) {
	want := 0
	if l.sendableLocked(g, now) {
		want = 1
		if g == open {
			size := l.terms.batchEvents()
			want = min((l.queue.ready.len()+size-1)/size, l.terms.concurrency-l.busy)
		}
	}
	if len(l.expired)+len(l.lapsed) > 0 && l.busy < l.terms.concurrency {
		want = max(want, 1)
	}
	for l.starting < want && l.s.crew.start(l.work) {
		l.starting++
	}
}

// sendableLocked tells whether a batch may be taken now.
func (l *lane) sendableLocked(g gate, now time.Time) bool {
	switch {
	case l.terms.pull || l.queue.ready.len() == 0:
		return false
	case g == open:
		return l.busy < l.terms.concurrency && l.tokenLocked(now)
	}
	return g == probe && !l.probeSent
}

// tokenLocked tells whether the rate allows a request.
func (l *lane) tokenLocked(now time.Time) bool {
	return l.limiter == nil || l.limiter.TokensAt(now) >= 1
}

// nextTokenLocked is when it does.
func (l *lane) nextTokenLocked(now time.Time) time.Time {
	missing := 1 - l.limiter.TokensAt(now)
	return now.Add(max(time.Duration(missing/float64(l.limiter.Limit())*float64(time.Second)), time.Millisecond))
}

// work does one job after another until there is none.
func (l *lane) work(s shift) {
	b := &batch{lane: l, shift: s}
	for l.next(b) {
		switch b.job {
		case jobSend:
			b.send(b.items)
		case jobExpire:
			b.giveUpOld()
		case jobLapse:
			b.lapse()
		}
	}
}

// next settles what a worker has done and gives it something new, all under one lock.
func (l *lane) next(b *batch) bool {
	now := time.Now()
	l.mu.Lock()
	if b.job == jobNone {
		l.starting--
	} else {
		l.busy--
		b.settleLocked(now)
	}
	b.job = l.nextJobLocked(b, now)
	if b.job != jobNone {
		l.busy++
	}
	l.pokeLocked(now)
	l.mu.Unlock()
	b.notifyLate()
	return b.job != jobNone
}

// nextJobLocked finds something to do: first what is to be put away, then what is to be sent.
func (l *lane) nextJobLocked(b *batch, now time.Time) job {
	b.begin()
	if l.gone || b.shift.taking.Err() != nil {
		return jobNone
	}
	g := l.gateLocked(now)
	for l.sendableLocked(g, now) && len(l.expired)+len(l.lapsed) == 0 {
		if l.pickLocked(b, now); len(b.items) > 0 {
			l.sendLocked(b, g, now)
			return jobSend
		}
	}
	if b.take(&l.expired) {
		b.held = g != open
		return jobExpire
	}
	if b.take(&l.lapsed) {
		return jobLapse
	}
	return jobNone
}

// sendLocked notes that a batch goes out.
func (l *lane) sendLocked(b *batch, g gate, now time.Time) {
	b.endpoint = l.endpoint
	b.probe = g == probe
	b.probed = b.probe
	l.probeSent = l.probeSent || b.probe
	l.inFlight += len(b.items)
	if l.limiter != nil {
		l.limiter.AllowN(now, 1)
	}
}

// pickLocked takes a batch from the queue: as many as may go together, of what is there now.
// What is too old is put aside, what a late answer has delivered is done.
func (l *lane) pickLocked(b *batch, now time.Time) {
	q := &l.queue
	for q.ready.len() > 0 && len(b.items) == 0 {
		first := q.ready.pop()
		q.out(first)
		if l.dueLocked(b, first, now) {
			b.add(first)
		}
	}
	if len(b.items) > 0 && b.terms.batchEvents() > 1 {
		l.fillLocked(b, now)
	}
}

// lookAhead is how far behind the first event others are looked for that may share its batch.
const lookAhead = 256

// fillLocked adds what may go with the first event (G2): never more than the limit, up to the
// preferred size, and without waiting for anything.
func (l *lane) fillLocked(b *batch, now time.Time) {
	order, first := b.terms.order, &b.items[0].Delivery
	most, group := b.terms.batchEvents(), order.Group(first)
	count, size := 1, order.Size(first)
	full := size >= order.PreferredBytes
	window := min(l.queue.ready.len(), max(most, lookAhead))
	taken := l.queue.ready.remove(window, func(it *item) bool {
		if full || count == most || order.Group(&it.Delivery) != group {
			return false
		}
		n := order.Size(&it.Delivery)
		if full = size+n > order.PreferredBytes; full {
			return false
		}
		count, size = count+1, size+n
		return true
	})
	for _, it := range taken {
		l.queue.out(it)
		if l.dueLocked(b, it, now) {
			b.add(it)
		}
	}
}

// dueLocked tells whether an item that has fallen due is to be sent: time to live is looked at
// now, and only now (G6). What a late answer has delivered is done (G5).
func (l *lane) dueLocked(b *batch, it *item, now time.Time) bool {
	if it.Attempts > 0 && l.s.late.took(keyOf(&it.Delivery)) {
		l.counts.delivered++
		l.finishLocked(it, now)
		b.late = append(b.late, it)
		return false
	}
	if b.terms.expired(it, now) {
		l.expired = append(l.expired, it)
		return false
	}
	return true
}
