package processor

import (
	"context"
	"errors"
	"slices"
	"time"
)

// round renews what is ours, reads what there is, decides, and writes. It gives when the next one
// is due. A store that fails is no reason to end: the leases are proven for a while.
func (c *coordinator) round(ctx context.Context) (time.Time, error) {
	began := time.Now()
	again, err := c.tryRound(ctx)
	c.lastEnd = time.Now()
	c.lastTook = c.lastEnd.Sub(began)
	if errors.Is(err, ErrDuplicateID) {
		return time.Time{}, err
	}
	if err != nil {
		if ctx.Err() == nil {
			c.reportError(err)
		}
		c.failures++
		wait := Backoff{First: max(c.cfg.Renew/20, time.Millisecond), Max: c.cfg.Renew / 2}.delay(c.failures)
		return c.lastEnd.Add(wait), nil
	}
	c.failures = 0
	return again, nil
}

func (c *coordinator) tryRound(ctx context.Context) (time.Time, error) {
	c.endStuck()
	if err := c.beat(ctx); err != nil {
		return time.Time{}, &Error{"", "renew presence", err}
	}
	if !c.unsure {
		if err := c.renew(ctx); err != nil {
			return time.Time{}, &Error{"", "renew leases", err}
		}
	}
	var looked []func() // what pumps wait for that want to know whether their lease is theirs
	for _, h := range c.held {
		if answer := h.pump.control.checking(); answer != nil {
			looked = append(looked, answer)
		}
	}
	if len(looked) == 0 && !c.unsure && time.Now().Before(c.settled) && len(c.held) == len(c.partitions()) {
		c.looked = time.Now() // nothing has changed, says the store
		for _, h := range c.held {
			c.prove(h)
		}
		return c.nextRound(decision{}), nil
	}
	w, err := c.look(ctx)
	if err != nil {
		if also := c.renewUnread(ctx); also != nil {
			err = errors.Join(err, &Error{"", "renew leases", also})
		}
		return time.Time{}, err
	}
	c.reconcile(w)
	for _, answer := range looked {
		answer()
	}
	if err := c.presence.duplicated(w); err != nil {
		return time.Time{}, err
	}
	if err := c.renew(ctx); err != nil {
		return time.Time{}, &Error{"", "renew leases", err}
	}
	c.sayHeld(w)
	return c.act(ctx, w)
}

// write claims leases of ours and takes the outcome in.
func (c *coordinator) write(ctx context.Context, start time.Time, claim []Lease) error {
	sortByPartition(claim, func(l Lease) string { return l.Partition })
	ctx, cancel := c.storeContext(ctx)
	defer cancel()
	written, err := c.store.Claim(ctx, c.group, claim)
	for _, l := range written {
		h := c.held[l.Partition]
		switch {
		case l.Owner == c.id && h == nil:
			c.startPump(l, start)
		case l.Owner == c.id:
			h.lease = l
			h.pump.ownership.prove(start.Add(c.cfg.Lease))
		case h != nil:
			c.forgetEnded(h)
		}
	}
	if err != nil {
		c.unsure = true
		return err
	}
	for _, l := range claim {
		there := slices.ContainsFunc(written, func(w Lease) bool { return w.Partition == l.Partition })
		if h := c.held[l.Partition]; h != nil && !there {
			c.lost(h)
		}
	}
	return nil
}

// lost is for a lease that is another's now.
func (c *coordinator) lost(h *holding) {
	h.lease.Presence = ""
	h.pump.ownership.lose(ErrLeaseLost)
	c.forgetEnded(h)
}

func (c *coordinator) startPump(l Lease, start time.Time) {
	p := newPump(c.instance, l, start.Add(c.cfg.Lease), c.foreign)
	c.held[l.Partition] = &holding{lease: l, pump: p}
	c.mu.Lock()
	c.pumps[l.Partition] = p
	c.mu.Unlock()
	c.cfg.Log.Debug("a partition is ours", "hub", c.group.Hub, "group", c.group.Group, "partition", l.Partition,
		"instance", c.id, "epoch", l.Epoch)
	go func() {
		p.health.announce(Starting)
		p.run()
	}()
}

// forgetEnded drops what has ended. A pump that has not is kept, so that the partition is not
// started a second time beside it. A partition that failed here is barred for a while; a good run
// clears the record.
func (c *coordinator) forgetEnded(h *holding) {
	p := h.pump
	if !p.hasEnded() {
		return
	}
	delete(c.held, p.id)
	c.mu.Lock()
	delete(c.pumps, p.id)
	c.mu.Unlock()
	why := p.ownership.reason()
	c.cfg.Log.Debug("a partition is given up", "hub", c.group.Hub, "group", c.group.Group, "partition", p.id,
		"instance", c.id, "epoch", p.epoch, "reason", why)
	_, open := errors.AsType[errOpen](why)
	switch {
	case errors.Is(why, errRefused):
		c.floor[p.id] = p.epoch + max(p.epoch, 1)
	case open, errors.Is(why, ErrStalled), errors.Is(why, errLetGo):
	default:
		delete(c.barred, p.id)
		return
	}
	b := c.barred[p.id]
	if b == nil {
		b = &bar{}
		c.barred[p.id] = b
	}
	b.failures++
	now := time.Now()
	b.until = now.Add(c.cfg.Backoff.delay(b.failures))
	if !errors.Is(why, errRefused) { // a higher epoch helps then, not another instance
		b.left = now
	}
}

// look reads the records and judges them.
func (c *coordinator) look(ctx context.Context) (world, error) {
	ctx, cancel := c.storeContext(ctx)
	defer cancel()
	presences, nexts, leases, err := readRecords(ctx, c.store, c.group)
	if err != nil {
		return world{}, err
	}
	if presences, err = c.newcomers(ctx, leases, presences); err != nil {
		return world{}, &Error{"", "read presences", err}
	}
	c.load = int64(len(presences)) * int64(len(presences)+len(nexts)+len(leases))
	w := c.observer.look(time.Now(), leases, presences, nexts)
	c.wishes.see(w)
	return w, nil
}

// readRecords reads all that instances know of each other, in this order: an instance is present
// before it has leases.
func readRecords(ctx context.Context, store Store, g Group) (presences, nexts []Entry, leases []Lease, err error) {
	if presences, err = store.Entries(ctx, g, presencePrefix); err != nil {
		return nil, nil, nil, &Error{"", "read presences", err}
	}
	if nexts, err = store.Entries(ctx, g, nextPrefix); err != nil {
		return nil, nil, nil, &Error{"", "read wishes", err}
	}
	if leases, err = store.Leases(ctx, g); err != nil {
		return nil, nil, nil, &Error{"", "read leases", err}
	}
	return presences, nexts, leases, nil
}

// newcomers adds the presences of those who have come since they were read, where a lease is of
// one. An instance is there before its leases and goes after them: who has a lease and is in
// neither reading is foreign.
func (c *coordinator) newcomers(ctx context.Context, leases []Lease, presences []Entry) ([]Entry, error) {
	there := map[string]bool{}
	for _, f := range presences {
		there[f.Key] = true
	}
	if !slices.ContainsFunc(leases, func(l Lease) bool { return l.Owner != "" && !there[presencePrefix+l.Owner] }) {
		return presences, nil
	}
	later, err := c.store.Entries(ctx, c.group, presencePrefix)
	for _, f := range later {
		if !there[f.Key] {
			presences = append(presences, f)
		}
	}
	return presences, err
}

// reconcile compares what we hold with what is recorded.
func (c *coordinator) reconcile(w world) {
	renewing, ok := c.store.(PresenceStore)
	c.hang = ok && renewing.KeepsPresence() && w.knowLives()
	for id, h := range c.held {
		l := w.leases[id]
		if l.Owner == c.id && l.Epoch == h.lease.Epoch {
			h.lease = l.Lease
			c.prove(h)
			continue
		}
		c.lost(h)
	}
	c.unsure, c.looked = false, w.now
}

// act decides and writes.
func (c *coordinator) act(ctx context.Context, w world) (time.Time, error) {
	d := c.situation(w).decide()
	c.foreign = d.foreign
	for id, h := range c.held {
		if _, wanted := d.handOver[id]; wanted {
			h.pump.drain(ErrHandoff, c.cfg.Handoff)
		}
		if d.foreign {
			h.pump.control.showEpoch0()
		}
	}
	for id, dead := range d.end {
		ended, err := c.presence.end(ctx, dead)
		if err != nil {
			return time.Time{}, &Error{"", "end a presence", err}
		}
		if !ended {
			d.lives(id, w.leases)
		}
	}
	start := time.Now()
	if len(d.claim) > 0 {
		if err := c.write(ctx, start, d.claim); err != nil {
			return time.Time{}, &Error{"", "claim leases", err}
		}
	}
	for _, l := range d.claim { // what we have just got is wished for no more
		if n := w.nexts[l.Partition]; n.instance == c.id && c.held[l.Partition] != nil {
			d.remove = append(d.remove, n.entry)
		}
	}
	if err := c.wishes.express(ctx, d); err != nil {
		return time.Time{}, err
	}
	if _, present := w.instances[c.id]; present && len(w.instances) == 1 &&
		c.subscribed && len(d.claim) == 0 && !d.foreign && len(w.nexts) == 0 {
		c.settled = start.Add(surveyEvery)
	}
	return c.nextRound(d), nil
}

func (c *coordinator) situation(w world) *situation {
	s := &situation{world: w, self: c.id, partitions: c.partitions(), held: map[string]bool{}, barred: map[string]bool{},
		floor: c.floor, greedy: c.cfg.Strategy == Greedy, leaving: c.presence.leaving, life: c.life(),
		// The owner's time to hand a partition over, and what it may need to notice.
		force: c.cfg.Handoff + c.cfg.Renew + c.cfg.Renew/2,
		lease: c.cfg.Lease, orphan: 2 * c.cfg.Renew,
		// What it takes the instance whose turn it is to hear of a release.
		released: 2 * c.cfg.Poll}
	if _, watched := c.store.(Watcher); watched {
		s.released = c.cfg.Renew / 20
	}
	for id := range c.held {
		s.held[id] = true
	}
	// Others hear of a release, wait until it is nobody's turn, and take it; alone there is nobody
	// to wait for.
	var othersTake time.Duration
	if s.others() {
		othersTake = c.gap() + 2*s.released
	}
	for id, b := range c.barred {
		if end := b.left.Add(othersTake); b.until.Before(end) {
			b.until = end
		}
		s.barred[id] = w.now.Before(b.until)
	}
	return s
}

// nextRound is when to look again, if nothing happens before.
func (c *coordinator) nextRound(d decision) time.Time {
	now := time.Now()
	next := c.renewAt // which is Poll by default
	if c.cfg.Poll < c.cfg.Renew {
		next = earlier(next, now.Add(jitter(c.cfg.Poll)))
	}
	if d.asking {
		next = earlier(next, now.Add(max(c.cfg.Renew/10, time.Millisecond, c.gap())))
	}
	if !d.again.IsZero() {
		next = earlier(next, d.again)
	}
	for _, b := range c.barred {
		if b.until.After(now) {
			next = earlier(next, b.until)
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// endStuck takes the partition from calls that ignore the end of their context: renewing
// a lease is for those who make progress.
func (c *coordinator) endStuck() {
	now := time.Now()
	for _, h := range c.held {
		if !h.pump.ownership.lost() && h.pump.calls.stuck(now, c.cfg.Lease) {
			h.pump.health.set(Stalled, ErrStalled)
			// The worker is not notified: it hangs, and this goroutine must not hang with it.
			c.reportError(&Error{h.pump.id, "wait for a call to end", ErrStalled})
			h.pump.ownership.lose(ErrStalled)
		}
	}
}

// sayHeld logs, once, that others had leases when we came: the living share, the dead cannot be
// distinguished from them before their leases have run out.
func (c *coordinator) sayHeld(w world) {
	if c.said {
		return
	}
	c.said = true
	n, last := 0, time.Duration(0)
	for _, l := range w.leases {
		if l.Owner != "" && l.Owner != c.id {
			n++
			last = max(last, l.since.Add(c.observer.lifetime(l.foreign)).Sub(w.now))
		}
	}
	if n > 0 {
		c.logWaiting("others hold leases: waiting for the living to share, and for leases of the dead to run out",
			"leases", n, "run_out_within", last)
	}
}
