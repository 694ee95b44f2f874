package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/watermark"
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
	src := &source{id: sub.SourceID, label: labelOf(sub.Source), resource: resource, origin: o, lanes: make(map[string]*lane), stale: true}
	for p := range o.partitions() {
		src.feeds = append(src.feeds, &feed{
			s: r.s, origin: o, source: src.id, partition: p, log: r.s.log.With("source", src.label, "partition", p),
		})
	}
	return src, src.measure(ctx)
}

// measure finds where the partitions end. Nobody begins beyond: a mark there is of events that
// were lost, with the power and before they were synced, and new ones will have their numbers.
func (src *source) measure(ctx context.Context) error {
	var ends []int64
	for p := range src.feeds {
		_, next, err := src.origin.bounds(ctx, p)
		if err != nil {
			src.ends = nil
			return fmt.Errorf("look for the end of partition %d: %w", p, err)
		}
		ends = append(ends, next)
	}
	src.ends = ends
	return nil
}

func labelOf(s topics.Source) string {
	if s.Hub != "" {
		return "hub/" + s.Hub
	}
	return s.Topic
}

// newLane makes the lane of a subscription; nil if it is not known where it begins, or whether
// that exists.
func (r *reconciler) newLane(src *source, t *terms) *lane {
	s := r.s
	if len(src.ends) < len(src.feeds) {
		return nil
	}
	l := &lane{
		s: s, id: t.sub.ID, source: src, sub: t.sub, terms: t, parked: s.cfg.RetryLogs.Parked(t.sub.ID),
		memory: memory{budget: s.budget}, sending: sending{limiter: t.limiter()},
	}
	l.alarm.who = l
	l.stock.maybe = true
	l.memory.queue.order(t.ordered)
	for p, f := range src.feeds {
		start, ok := r.cursors.startOf(t.sub, src.id, p)
		if !ok {
			return nil
		}
		if start > src.ends[p] {
			start, r.ahead = src.ends[p], true
		}
		l.tracks = append(l.tracks, &track{lane: l, feed: f, mark: watermark.At(start), position: start})
	}
	for _, f := range src.feeds {
		f.note()
	}
	src.lanes[l.id] = l
	src.stale = true
	return l
}

// start lets the feeds read.
func (src *source) start(ctx context.Context, c *crew) {
	if src.stop != nil {
		return
	}
	ctx, src.stop = context.WithCancel(ctx)
	for _, f := range src.feeds {
		c.start(func(shift) { f.run(ctx) })
	}
}

// index makes a new one for the lanes there are.
func (src *source) index() {
	if !src.stale {
		return
	}
	src.stale = false
	var filters []*filter.Filter
	var in, aside []*lane
	for _, l := range src.lanes {
		if f := l.termsNow().filter; f != nil {
			filters, in = append(filters, f), append(in, l)
		} else {
			aside = append(aside, l)
		}
	}
	x := filter.NewIndex(filters)
	for p, f := range src.feeds {
		f.use(x, tracksOf(in, p), tracksOf(aside, p))
	}
	now := time.Now()
	for _, l := range in {
		l.poke(now)
	}
}

func tracksOf(lanes []*lane, partition int) []*track {
	tracks := make([]*track, len(lanes))
	for i, l := range lanes {
		tracks[i] = l.tracks[partition]
	}
	return tracks
}

// settle finds where the feeds of a new source begin: where most lanes stand. Those before it
// catch up by themselves, those beyond it have had what it brings them. It is done once: lanes
// join by it.
func (src *source) settle() {
	for p, f := range src.feeds {
		positions := make(map[int64]int)
		best := src.ends[p] // nobody has a place yet: there is nothing to be read for anybody
		for _, l := range src.lanes {
			position := l.tracks[p].position
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
