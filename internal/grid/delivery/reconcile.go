package delivery

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/watermark"
)

// reconciler keeps sources, lanes and endpoints what the definitions say they should be, and
// saves where lanes stand. All of it is Run's goroutine's, and Open's before.
type reconciler struct {
	s         *Service
	sources   map[string]*source
	endpoints map[string]*endpoint
	// holdings are what is delivered here: one of all subscriptions, or some of a shard each.
	holdings []*holding
	// ahead: a mark was found beyond the end of its log, and put right. That has to be stored
	// before new events have those numbers.
	ahead bool
	// missing counts sources that could not be opened; running: Run has begun.
	missing int
	running bool
}

func newReconciler(s *Service) *reconciler {
	return &reconciler{s: s, sources: make(map[string]*source), endpoints: make(map[string]*endpoint)}
}

// adopt has the subscriptions of a holding delivered from the next look at the definitions on.
func (r *reconciler) adopt(h *holding) {
	r.holdings = append(r.holdings, h)
	// Subscriptions that were deleted may have left something.
	known := r.s.cfg.Topics.Snapshot().Subscriptions
	for position, record := range h.cursors.records {
		for id := range record.marks {
			if known.Get(id) == nil {
				h.unforgotten[id] = position.source
			}
		}
	}
}

// holdingOf gives that of a subscription; nil: it is not delivered here.
func (r *reconciler) holdingOf(subscription string) *holding {
	shard := shards.Of(subscription)
	for _, h := range r.holdings {
		if h.held == nil || h.held.Shard == shard {
			return h
		}
	}
	return nil
}

// ours are the subscriptions that are delivered here, by source: of one machine all.
func (r *reconciler) ours(snap *topics.Snapshot) map[string][]*topics.Subscription {
	if len(r.holdings) == 1 && r.holdings[0].held == nil {
		return snap.BySource
	}
	var held [shards.Count]bool
	for _, h := range r.holdings {
		held[h.held.Shard] = true
	}
	ours := make(map[string][]*topics.Subscription)
	for id, subs := range snap.BySource {
		for _, sub := range subs {
			if held[shards.Of(sub.ID)] {
				ours[id] = append(ours[id], sub)
			}
		}
	}
	return ours
}

// reconcile makes sources, lanes and endpoints what the definitions say. What cannot be done
// now is tried again later. Before Run it starts nothing.
func (r *reconciler) reconcile(ctx context.Context) {
	snap := r.s.cfg.Topics.Snapshot()
	ours := r.ours(snap)
	r.missing = 0
	for id, src := range r.sources {
		if len(ours[id]) > 0 {
			continue
		}
		for _, l := range src.lanes {
			r.endLane(src, l)
		}
		r.closeSource(src)
	}
	for id, subs := range ours {
		r.reconcileSource(ctx, snap, id, subs)
	}
	for _, h := range r.holdings { // from now on what has no lane is not known
		r.s.note(h.held, true)
	}
	r.forget(ctx, snap)
	if r.ahead && r.saveAll(ctx, time.Time{}) {
		r.ahead = false
		r.s.log.Error("logs of events end before the cursors of subscriptions: some that were not synced are lost")
	}
}

func (r *reconciler) reconcileSource(ctx context.Context, snap *topics.Snapshot, id string, subs []*topics.Subscription) {
	src := r.sources[id]
	if src != nil && src.is(subs) && (src.stop != nil || !r.running) {
		return
	}
	fresh := src == nil
	if fresh {
		var err error
		if src, err = r.openSource(ctx, snap, subs[0]); err != nil {
			r.unopened(subs[0], err)
			return
		}
		r.sources[id] = src
	} else if slices.ContainsFunc(subs, func(sub *topics.Subscription) bool { return src.lanes[sub.ID] == nil }) {
		if err := src.measure(ctx); err != nil {
			r.unopened(subs[0], err) // those who are new have to wait
		}
	}
	there := make(map[string]bool, len(subs))
	for _, sub := range subs {
		there[sub.ID] = true
		if l := src.lanes[sub.ID]; l == nil {
			r.addLane(src, sub)
		} else if l.terms.sub != sub {
			r.changeLane(src, l, sub)
		}
	}
	for id, l := range src.lanes {
		if !there[id] {
			r.endLane(src, l)
		}
	}
	if fresh {
		src.settle()
	}
	src.index()
	src.subs = subs
	if r.running && src.stop == nil {
		ctx, src.stop = context.WithCancel(ctx)
		for _, f := range src.feeds {
			r.s.crew.start(func(shift) { f.run(ctx) })
		}
	}
}

// unopened reports a source that cannot be read. One that is gone takes its subscriptions with it.
func (r *reconciler) unopened(sub *topics.Subscription, err error) {
	if errors.Is(err, errGone) || ended(err) {
		return
	}
	r.missing++
	r.s.log.Warn("a source of subscriptions cannot be opened, trying again", "source", labelOf(sub.Source), "error", err)
}

// addLane begins to deliver a subscription, if it is known where in the source that is.
func (r *reconciler) addLane(src *source, sub *topics.Subscription) {
	s, h := r.s, r.holdingOf(sub.ID)
	if len(src.ends) < len(src.feeds) {
		return
	}
	t := newTerms(&s.cfg, sub, src.resource)
	l := &lane{
		s: s, holding: h, id: sub.ID, source: src, terms: t, parked: h.logs.Parked(sub.ID),
		memory: memory{budget: s.budget}, sending: sending{limiter: t.limiter()}, began: time.Now(),
	}
	l.alarm.who = l
	l.stock.maybe = true
	l.memory.queue.order(t.ordered)
	for p, f := range src.feeds {
		start, ok := h.cursors.startOf(sub, src.id, p)
		if !ok {
			return
		}
		if start > src.ends[p] {
			start, r.ahead = src.ends[p], true
		}
		l.tracks = append(l.tracks, &track{lane: l, feed: f, mark: watermark.At(start), position: start})
	}
	for _, f := range src.feeds {
		f.note()
	}
	h.cursors.taken(src.id, l.id)
	delete(h.unforgotten, l.id) // its definition came after its cursor
	src.lanes[l.id] = l
	src.stale = true
	if l.endpoint = r.endpointOf(t); l.endpoint != nil {
		l.endpoint.enter(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes[l.id] = l
	s.laneCount.Store(int64(len(s.lanes)))
}

func (r *reconciler) changeLane(src *source, l *lane, sub *topics.Subscription) {
	t := newTerms(&r.s.cfg, sub, src.resource)
	e := r.endpointOf(t)
	if e != nil && e != l.endpoint {
		e.enter(l)
	}
	old, had := l.adopt(t, e, time.Now())
	if had != e {
		r.leave(l, had)
	}
	src.stale = src.stale || !reflect.DeepEqual(old.sub.Filter, sub.Filter) || (old.filter == nil) != (t.filter == nil)
	if t.hold != old.hold {
		r.s.log.Info("subscription is held, or not any more", "subscription", sub.Name, "source", src.label, "why", t.hold)
	}
}

// endpointOf finds the endpoint that terms speak of, whose health all its lanes share; nil where
// nothing is sent.
func (r *reconciler) endpointOf(t *terms) *endpoint {
	if t.order == nil {
		return nil
	}
	e := r.endpoints[t.order.Identity]
	if e == nil {
		e = &endpoint{s: r.s, identity: t.order.Identity}
		e.alarm.who = e
		e.well.Store(true)
		r.endpoints[e.identity] = e
		r.s.shared.enter(e, time.Now())
	}
	return e
}

// leave lets a lane leave an endpoint, which is forgotten with its last one.
func (r *reconciler) leave(l *lane, e *endpoint) {
	if e != nil && e.leave(l, time.Now()) {
		delete(r.endpoints, e.identity)
		r.s.shared.leave(e)
	}
}

// endLane stops delivering a subscription that was deleted. What is under way ends by itself.
func (r *reconciler) endLane(src *source, l *lane) {
	r.s.mu.Lock()
	delete(r.s.lanes, l.id)
	r.s.laneCount.Store(int64(len(r.s.lanes)))
	r.s.mu.Unlock()
	delete(src.lanes, l.id)
	src.stale = true
	r.leave(l, l.end())
	l.holding.unforgotten[l.id] = src.id
	for _, f := range src.feeds {
		f.note()
	}
}

// closeSource stops reading a source that has no lanes any more.
func (r *reconciler) closeSource(src *source) {
	if src.stop != nil {
		src.stop()
	}
	delete(r.sources, src.id)
}

// forget removes what deleted subscriptions leave: their parked logs first, then the cursors that
// name them.
func (r *reconciler) forget(ctx context.Context, snap *topics.Snapshot) {
	for _, h := range r.holdings {
		left := make(map[string]bool)
		for id, source := range h.unforgotten {
			if err := r.forgetOne(ctx, h, id); err != nil {
				r.s.log.Warn("the parked log of a deleted subscription cannot be removed, trying again", "id", id, "error", err)
				left[source] = true
				continue
			}
			delete(h.unforgotten, id)
			if src := r.sources[source]; src != nil {
				src.feeds[0].note()
			}
		}
		for position, record := range h.cursors.records {
			if len(record.marks) == 0 && !left[position.source] && r.sources[position.source] == nil && len(snap.BySource[position.source]) == 0 {
				h.cursors.remove(ctx, position)
			}
		}
	}
}

// forgetOne removes the parked log of a subscription, and its marks, if it was deleted.
func (r *reconciler) forgetOne(ctx context.Context, h *holding, id string) error {
	deleted, err := h.deleted(ctx, id)
	if err != nil || !deleted {
		return err // one that was not is delivered once its definition is here
	}
	if err := h.logs.Forget(ctx, id); err != nil {
		return err
	}
	h.cursors.taken(h.unforgotten[id], id)
	return nil
}
