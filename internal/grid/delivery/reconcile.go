package delivery

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// reconcile makes sources, lanes and endpoints what the definitions say. What cannot be done
// now is tried again later. Before Run it starts nothing.
func (s *Service) reconcile(ctx context.Context) {
	snap := s.cfg.Topics.Snapshot()
	s.missing = 0
	for id, src := range s.sources {
		if len(snap.BySource[id]) == 0 {
			s.endSource(src)
		}
	}
	for id, subs := range snap.BySource {
		if len(subs) > 0 {
			s.reconcileSource(ctx, snap, id, subs)
		}
	}
	s.forget(ctx, snap)
	if s.ahead && s.saveAll(ctx) {
		s.ahead = false
		s.log.Error("logs of events end before the cursors of subscriptions: some that were not synced are lost")
	}
}

// wanting tells whether something could not be done.
func (s *Service) wanting() bool { return s.missing > 0 || len(s.unforgotten) > 0 || s.ahead }

func (s *Service) reconcileSource(ctx context.Context, snap *topics.Snapshot, id string, subs []*topics.Subscription) {
	src := s.sources[id]
	fresh := src == nil
	if fresh {
		var err error
		if src, err = s.openSource(ctx, snap, subs[0]); err != nil {
			s.unopened(subs[0], err)
			return
		}
		s.sources[id] = src
	} else if slices.ContainsFunc(subs, func(sub *topics.Subscription) bool { return src.lanes[sub.ID] == nil }) {
		if err := src.measure(ctx); err != nil {
			s.unopened(subs[0], err) // those who are new have to wait
		}
	}
	there := make(map[string]bool, len(subs))
	for _, sub := range subs {
		there[sub.ID] = true
		s.reconcileLane(src, sub)
	}
	for id, l := range src.lanes {
		if !there[id] {
			s.endLane(src, l)
		}
	}
	if fresh {
		src.settle()
	}
	src.index()
	if s.running {
		src.start(ctx, &s.crew)
	}
}

// unopened tells of a source that cannot be read. One that is gone takes its subscriptions with it.
func (s *Service) unopened(sub *topics.Subscription, err error) {
	if errors.Is(err, errGone) || ended(err) {
		return
	}
	s.missing++
	s.log.Warn("a source of subscriptions cannot be opened, trying again", "source", labelOf(sub.Source), "error", err)
}

func (s *Service) reconcileLane(src *source, sub *topics.Subscription) {
	l := src.lanes[sub.ID]
	switch {
	case l == nil:
		s.addLane(src, sub)
	case l.sub != sub:
		s.changeLane(src, l, sub)
	}
}

// addLane begins to deliver a subscription, if it is known where.
func (s *Service) addLane(src *source, sub *topics.Subscription) {
	t := newTerms(&s.cfg, sub, src.resource)
	l := src.newLane(s, t)
	if l == nil {
		return
	}
	if l.endpoint = s.endpointOf(t); l.endpoint != nil {
		l.endpoint.enter(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes[l.id] = l
}

// changeLane gives a lane new terms.
func (s *Service) changeLane(src *source, l *lane, sub *topics.Subscription) {
	t := newTerms(&s.cfg, sub, src.resource)
	e := s.endpointOf(t)
	if e != nil && e != l.endpointNow() {
		e.enter(l)
	}
	old, had := l.adopt(t, e, time.Now())
	if had != e {
		s.leave(l, had)
	}
	l.sub = sub
	src.stale = src.stale || !reflect.DeepEqual(old.sub.Filter, sub.Filter) || (old.filter == nil) != (t.filter == nil)
	if t.hold != old.hold {
		s.log.Info("subscription is held, or not any more", "subscription", sub.Name, "source", src.label, "why", t.hold)
	}
}

// endpointOf finds the endpoint that terms speak of, whose health all its lanes share; nil where
// nothing is sent.
func (s *Service) endpointOf(t *terms) *endpoint {
	if t.order == nil {
		return nil
	}
	e := s.endpoints[t.order.Identity]
	if e == nil {
		e = newEndpoint(s, t.order.Identity)
		s.endpoints[e.identity] = e
	}
	return e
}

// leave lets a lane leave an endpoint, which is forgotten with its last one.
func (s *Service) leave(l *lane, e *endpoint) {
	if e != nil && e.leave(l, time.Now()) {
		delete(s.endpoints, e.identity)
	}
}

// endLane stops delivering a subscription that was deleted. What is under way ends by itself.
func (s *Service) endLane(src *source, l *lane) {
	s.mu.Lock()
	delete(s.lanes, l.id)
	s.mu.Unlock()
	delete(src.lanes, l.id)
	src.stale = true
	s.leave(l, l.end())
	s.unforgotten[l.id] = src.id
	for _, f := range src.feeds {
		f.note()
	}
}

// endSource stops reading a source that has no subscriptions any more.
func (s *Service) endSource(src *source) {
	if src.stop != nil {
		src.stop()
	}
	for _, l := range src.lanes {
		s.endLane(src, l)
	}
	delete(s.sources, src.id)
}

// findDeparted finds subscriptions that were deleted, and may have left something.
func (s *Service) findDeparted() {
	known := s.cfg.Topics.Snapshot().Subscriptions
	for position, record := range s.records {
		for id := range record.marks {
			if known[id] == nil {
				s.unforgotten[id] = position.source
			}
		}
	}
}

// forget removes what deleted subscriptions leave: their parked logs first, then the cursors that
// tell of them.
func (s *Service) forget(ctx context.Context, snap *topics.Snapshot) {
	left := make(map[string]bool)
	for id, source := range s.unforgotten {
		if err := s.cfg.RetryLogs.Forget(ctx, id); err != nil {
			s.log.Warn("the parked log of a deleted subscription cannot be removed, trying again", "id", id, "error", err)
			left[source] = true
			continue
		}
		delete(s.unforgotten, id)
		if src := s.sources[source]; src != nil {
			src.feeds[0].note()
		}
	}
	for position, record := range s.records {
		if left[position.source] || s.sources[position.source] != nil || len(snap.BySource[position.source]) > 0 {
			continue
		}
		err := s.cfg.Meta.Delete(ctx, cursorKey(position.source, position.partition), record.revision)
		if err == nil || errors.Is(err, meta.ErrNotFound) {
			delete(s.records, position)
		}
	}
}
