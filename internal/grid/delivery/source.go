package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// source is a topic or hub that has subscriptions: a feed for each partition, and the lanes
// they serve. It is Run's goroutine's; feeds and lanes guard themselves.
type source struct {
	id       string
	label    string // for metrics and the log
	resource string
	origin   origin
	feeds    []*feed
	lanes    map[string]*lane
	// subs are the definitions that it was last made to fit.
	subs []*topics.Subscription
	// stale: the index does not fit the lanes any more.
	stale bool
	// ends are where the partitions ended when they were last looked at; none: that failed.
	ends []int64
	// stop ends the feeds; nil: they have not been started.
	stop context.CancelFunc
}

func (r *reconciler) openSource(ctx context.Context, snap *topics.Snapshot, sub *topics.Subscription) (*source, error) {
	o, resource, err := openOrigin(&r.s.cfg, snap, sub)
	if err != nil {
		return nil, err
	}
	src := &source{id: sub.SourceID, label: labelOf(topics.Source{Topic: sub.Source.Topic, Hub: sub.Source.Hub}), resource: resource, origin: o, lanes: make(map[string]*lane), stale: true}
	for p := range o.partitions() {
		src.feeds = append(src.feeds, &feed{
			s: r.s, origin: o, source: src.id, label: src.label, partition: p, log: r.s.log.With("source", src.label, "partition", p),
		})
	}
	return src, src.measure(ctx)
}

// measure finds where the partitions end. Nobody begins beyond: a mark there is of events that
// were lost, with the power and before they were synced, and new ones will have their numbers. So
// the ends have to be proven.
func (src *source) measure(ctx context.Context) error {
	var ends []int64
	for p := range src.feeds {
		end, err := src.origin.end(ctx, p)
		if err != nil {
			src.ends = nil
			return fmt.Errorf("look for the end of partition %d: %w", p, err)
		}
		ends = append(ends, end)
	}
	src.ends = ends
	return nil
}

func labelOf(s topics.Source) string {
	if s.Hub != "" {
		return "hub/" + s.Hub
	}
	if s.DomainTopic != "" {
		return s.Topic + ":" + s.DomainTopic
	}
	return s.Topic
}

// index makes a new one for the lanes there are. Those that have moved stand by themselves from then
// on.
func (src *source) index(moved ...*lane) {
	if !src.stale {
		return
	}
	src.stale = false
	var filters []*filter.Filter
	in, aside := []*lane(nil), moved
	for _, l := range src.lanes {
		if f := l.terms.filter; f != nil {
			filters, in = append(filters, f), append(in, l)
		} else {
			aside = append(aside, l)
		}
	}
	x := filter.NewIndex(filters)
	for _, f := range src.feeds {
		f.use(x, in, aside)
	}
	now := time.Now()
	for _, l := range in {
		l.poke(now)
	}
}

// is reports whether the source fits its definitions already, so that of many sources only those are looked at
// which have changed. Lists of definitions are never changed within their length: one that begins at the same place
// and is as long is the same.
func (src *source) is(subs []*topics.Subscription) bool {
	return !src.stale && len(src.lanes) == len(subs) && len(src.subs) == len(subs) && len(subs) > 0 && &src.subs[0] == &subs[0]
}

// settle finds where the feeds of a new source begin: where most lanes stand. Those before it
// catch up by themselves, those beyond it have had what it brings them. It is done once: lanes
// join by it. Pumps may have begun to fill them: what falls due finds a lane as soon as it is made.
func (src *source) settle() {
	for p, f := range src.feeds {
		positions := make(map[int64]int)
		best := src.ends[p] // nobody has a position yet: there is nothing to be read for anybody
		for _, l := range src.lanes {
			position := l.position(p)
			positions[position]++
			if n := positions[position] - positions[best]; n > 0 || n == 0 && position > best {
				best = position
			}
		}
		f.mu.Lock()
		f.next = best
		f.position.Store(best)
		f.mu.Unlock()
	}
}
