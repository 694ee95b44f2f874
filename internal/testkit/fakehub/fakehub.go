// Package fakehub is a hub in memory for tests of those who read hubs: processors and functions. It
// keeps time by channels only, so that it runs inside a synctest bubble, and honours epochs and
// producers' numbers as a yard does. Tests of the hub itself use a real yard.
package fakehub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
)

// Hub is one hub.
type Hub struct {
	// Waits counts the calls of readers' Next.
	Waits atomic.Int64

	name string

	mu      sync.Mutex
	created time.Time        // guarded by mu, like all below
	parts   []*partition     // by number
	opens   []hub.ReadConfig // of all readers, also of those refused
	down    error            // what producers fail with
	infoErr error            // what Info fails with
	openErr func(cfg hub.ReadConfig) error
}

type partition struct {
	id        string
	first     int64
	events    []event.Event // from first on
	readers   []*reader
	news      chan struct{}   // closed and replaced when something comes
	mute      bool            // readers get nothing, as over a dead link
	broken    map[int64]bool  // events that cannot be decoded
	producers map[int64]int32 // the next number of each
}

type reader struct {
	hub    *Hub
	part   *partition
	group  string
	epoch  hub.Epoch
	at     int64
	muted  bool
	err    error         // why it is closed
	closed chan struct{} // closed with err set
}

// New makes a hub.
func New(name string, partitions int) *Hub {
	h := &Hub{name: name, created: time.Now()}
	h.Grow(partitions)
	return h
}

func newPartition(id string) *partition {
	return &partition{id: id, news: make(chan struct{}), broken: map[int64]bool{}, producers: map[int64]int32{}}
}

// Grow adds partitions.
func (h *Hub) Grow(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.parts = append(h.parts, newPartition(strconv.Itoa(len(h.parts))))
	}
}

func (h *Hub) Namespace() string { return "space.example" }
func (h *Hub) Name() string      { return h.name }

func (h *Hub) Info(context.Context) (hub.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return hub.Info{Name: h.name, Created: h.created, Partitions: h.ids()}, h.infoErr
}

// Created is when the hub was made, or made anew.
func (h *Hub) Created() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.created
}

// IDs are the partitions' names.
func (h *Hub) IDs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids()
}

func (h *Hub) ids() (ids []string) {
	for _, p := range h.parts {
		ids = append(ids, p.id)
	}
	return ids
}

func (h *Hub) part(id string) *partition {
	i, err := strconv.Atoi(id)
	if err != nil || i >= len(h.parts) {
		return nil
	}
	return h.parts[i]
}

// with calls fn with a partition that must exist, and the lock held.
func (h *Hub) with(id string, fn func(*partition)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn(h.part(id))
}

func (p *partition) next() int64 { return p.first + int64(len(p.events)) }

func (h *Hub) Partition(_ context.Context, id string) (hub.PartitionInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(id)
	if p == nil {
		return hub.PartitionInfo{}, hub.ErrNotFound
	}
	info := hub.PartitionInfo{Partition: id, First: p.first, Last: p.next() - 1, Empty: len(p.events) == 0}
	if !info.Empty {
		last := p.events[len(p.events)-1]
		info.LastOffset, info.LastEnqueued = last.Offset, last.Enqueued
	}
	return info, nil
}

// Send appends events with these texts at once; a text like "key:text" is also its event's key's.
func (h *Hub) Send(id string, texts ...string) {
	h.with(id, func(p *partition) {
		for _, text := range texts {
			ev := event.Text(text)
			if key, _, found := strings.Cut(text, ":"); found {
				ev.Key = key
			}
			p.append(ev)
		}
	})
}

// SendN appends n events at once that have their numbers as texts, with these keys in turn.
func (h *Hub) SendN(id string, n int, keys ...string) {
	h.with(id, func(p *partition) {
		for i := range n {
			ev := event.Text(strconv.Itoa(i))
			if len(keys) > 0 {
				ev.Key = keys[i%len(keys)]
			}
			p.append(ev)
		}
	})
}

// SendAll appends n events to each partition.
func (h *Hub) SendAll(n int) {
	for _, id := range h.IDs() {
		h.SendN(id, n)
	}
}

func (p *partition) append(ev event.Event) {
	n := p.next()
	ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = p.id, n, "o"+strconv.FormatInt(n, 10), time.Now()
	p.events = append(p.events, ev)
	close(p.news)
	p.news = make(chan struct{})
}

// Produce stores each number of a producer once, in order.
func (h *Hub) Produce(cfg hub.ProducerConfig, number int32, ev event.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(cfg.Partition)
	if p == nil {
		return hub.ErrNotFound
	}
	switch next := p.producers[cfg.ID]; {
	case h.down != nil:
		return h.down
	case number == next:
		p.producers[cfg.ID]++
		p.append(ev)
	case number > next:
		return hub.ErrOutOfOrder
	}
	return nil // a lower number is there
}

// FailInfo lets Info fail; nil ends that.
func (h *Hub) FailInfo(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.infoErr = err
}

// FailOpen asks fail before a reader is opened; nil ends that.
func (h *Hub) FailOpen(fail func(cfg hub.ReadConfig) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openErr = fail
}

// SetDown lets producers fail; nil ends that.
func (h *Hub) SetDown(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = err
}

// Next is the sequence number that the next event of a partition gets.
func (h *Hub) Next(id string) (n int64) {
	h.with(id, func(p *partition) { n = p.next() })
	return n
}

// All are the events of a partition.
func (h *Hub) All(id string) (all []event.Event) {
	h.with(id, func(p *partition) { all = slices.Clone(p.events) })
	return all
}

// Change changes the events of a partition.
func (h *Hub) Change(id string, change func(events []event.Event)) {
	h.with(id, func(p *partition) { change(p.events) })
}

// Trim removes the events before first.
func (h *Hub) Trim(id string, first int64) {
	h.with(id, func(p *partition) { p.events, p.first = p.events[first-p.first:], first })
}

// Recreate makes another hub of the same name.
func (h *Hub) Recreate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.created = time.Now()
	for i, p := range h.parts {
		for _, r := range slices.Clone(p.readers) {
			r.endLocked(errors.New("gone"))
		}
		h.parts[i] = newPartition(p.id)
	}
}

// Shrink makes the hub anew with fewer partitions.
func (h *Hub) Shrink(n int) {
	h.Recreate()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = h.parts[:n]
}

// Garble lets events be none that can be decoded.
func (h *Hub) Garble(id string, sequences ...int64) {
	h.with(id, func(p *partition) {
		p.broken = map[int64]bool{}
		for _, n := range sequences {
			p.broken[n] = true
		}
	})
}

// Mute lets the readers that are open now get nothing more, and new ones nothing where that is
// said.
func (h *Hub) Mute(id string, newOnes bool) {
	h.with(id, func(p *partition) {
		p.mute = newOnes
		for _, r := range p.readers {
			r.muted = true
		}
	})
}

// Cut ends the readers of a partition, as a broken link does.
func (h *Hub) Cut(id string, why error) {
	h.with(id, func(p *partition) {
		for _, r := range slices.Clone(p.readers) {
			r.endLocked(why)
		}
	})
}

// Readers is how many readers of a partition are open.
func (h *Hub) Readers(id string) (n int) {
	h.with(id, func(p *partition) { n = len(p.readers) })
	return n
}

// Opened is what readers were opened with.
func (h *Hub) Opened() []hub.ReadConfig {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.opens)
}

func (h *Hub) Open(_ context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opens = append(h.opens, cfg)
	if h.openErr != nil {
		if err := h.openErr(cfg); err != nil {
			return nil, err
		}
	}
	p := h.part(cfg.Partition)
	if p == nil {
		return nil, hub.ErrNotFound
	}
	at, err := p.find(cfg.From)
	if err != nil {
		return nil, err
	}
	group := cmp.Or(cfg.Group, "$Default")
	epoch, wanted := cfg.Epoch.Number()
	for _, old := range slices.Clone(p.readers) {
		had, exclusive := old.epoch.Number()
		switch {
		case old.group != group, !exclusive && !wanted:
		case !wanted || exclusive && had > epoch:
			return nil, hub.ErrRefused
		default:
			old.endLocked(hub.ErrEvicted)
		}
	}
	r := &reader{hub: h, part: p, group: group, epoch: cfg.Epoch, at: at, muted: p.mute, closed: make(chan struct{})}
	p.readers = append(p.readers, r)
	return r, nil
}

// find turns a position into a sequence number.
func (p *partition) find(pos hub.Position) (int64, error) {
	switch pos {
	case hub.Earliest:
		return p.first, nil
	case hub.Latest:
		return p.next(), nil
	}
	n, inclusive, ok := pos.Sequence()
	if offset, in, is := pos.Offset(); is {
		var err error
		n, err = strconv.ParseInt(strings.TrimPrefix(offset, "o"), 10, 64)
		inclusive, ok = in, err == nil
	}
	if !ok || n < -1 || n >= p.next() {
		return 0, hub.ErrOutOfRange
	}
	if !inclusive {
		n++
	}
	return max(n, p.first), nil
}

func (r *reader) endLocked(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	close(r.closed)
	r.part.readers = slices.DeleteFunc(r.part.readers, func(o *reader) bool { return o == r })
}

func (r *reader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	r.hub.Waits.Add(1)
	for {
		if err := context.Cause(ctx); err != nil {
			return dst, err
		}
		r.hub.mu.Lock()
		news, err, n := r.part.news, r.err, len(dst)
		for err == nil && !r.muted && r.at < r.part.next() && len(dst)-n < most {
			if r.part.broken[r.at] {
				if len(dst) == n {
					err = fmt.Errorf("%w: sequence number %d", hub.ErrUnreadable, r.at)
					r.at++
				}
				break
			}
			dst = append(dst, r.part.events[r.at-r.part.first])
			r.at++
		}
		r.hub.mu.Unlock()
		if err != nil || len(dst) > n {
			return dst, err
		}
		select {
		case <-news:
		case <-r.closed:
		case <-ctx.Done():
		}
	}
}

func (r *reader) LastEnqueued() (hub.LastEnqueued, bool) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.at == 0 || len(r.part.events) == 0 {
		return hub.LastEnqueued{}, false
	}
	last := r.part.events[len(r.part.events)-1]
	return hub.LastEnqueued{Sequence: last.Sequence, Offset: last.Offset, Enqueued: last.Enqueued}, true
}

func (r *reader) Close(context.Context) error {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.endLocked(hub.ErrClosed)
	return nil
}
