package functions

import (
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

// fakeSpace is a namespace in memory whose hubs honour epochs and producers' numbers, for use inside a synctest bubble.
type fakeSpace struct {
	mu   sync.Mutex
	hubs map[string]*fakeHub // guarded by mu

	producers atomic.Int64 // that are open
}

func newFakeSpace() *fakeSpace { return &fakeSpace{hubs: map[string]*fakeHub{}} }

// make makes a hub, or makes it anew.
func (s *fakeSpace) make(name string, partitions int) *fakeHub {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &fakeHub{name: name, created: time.Now()}
	for i := range partitions {
		h.parts = append(h.parts, &fakePartition{id: strconv.Itoa(i), news: make(chan struct{}), producers: map[int64]int32{}})
	}
	s.hubs[name] = h
	return h
}

func (s *fakeSpace) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hubs, name)
}

// view is one host's way to the hubs; it can be cut.
func (s *fakeSpace) view(l *life) Namespace { return fakeView{s, l} }

type fakeView struct {
	space *fakeSpace
	life  *life
}

func (v fakeView) Hub(name string) Source { return fakeAccess{v, name} }

// fakeAccess finds the hub by its name each time, as it may be made anew.
type fakeAccess struct {
	fakeView
	name string
}

func (a fakeAccess) hub() (*fakeHub, error) {
	a.space.mu.Lock()
	defer a.space.mu.Unlock()
	h := a.space.hubs[a.name]
	if h == nil {
		return nil, fmt.Errorf("hub %s: %w", a.name, hub.ErrNotFound)
	}
	return h, a.life.alive()
}

func (a fakeAccess) Namespace() string { return "space.example" }
func (a fakeAccess) Name() string      { return a.name }

func (a fakeAccess) Info(context.Context) (hub.Info, error) {
	h, err := a.hub()
	if err != nil {
		return hub.Info{}, err
	}
	return h.info()
}

func (a fakeAccess) Partition(_ context.Context, id string) (hub.PartitionInfo, error) {
	h, err := a.hub()
	if err != nil {
		return hub.PartitionInfo{}, err
	}
	return h.partitionInfo(id)
}

func (a fakeAccess) Open(_ context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	h, err := a.hub()
	if err != nil {
		return nil, err
	}
	return h.open(cfg, a.life)
}

func (a fakeAccess) Producer(cfg hub.ProducerConfig) Producer {
	a.space.producers.Add(1)
	return &fakeProducer{a, cfg}
}

// fakeProducer stores each number once, in order.
type fakeProducer struct {
	fakeAccess
	cfg hub.ProducerConfig
}

func (p *fakeProducer) Close(context.Context) error { p.space.producers.Add(-1); return nil }

func (p *fakeProducer) Send(ctx context.Context, number int32, ev event.Event) error {
	return p.life.do("send", func() error {
		h, err := p.hub()
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return h.produce(p.cfg, number, ev)
	})
}

type fakeHub struct {
	name    string
	created time.Time

	mu    sync.Mutex
	parts []*fakePartition
	down  error // guarded by mu: what producers are told
}

type fakePartition struct {
	id        string
	events    []event.Event
	readers   []*fakeReader
	news      chan struct{}   // closed and replaced when something comes
	producers map[int64]int32 // the next number of each
}

func (h *fakeHub) info() (hub.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	info := hub.Info{Name: h.name, Created: h.created}
	for _, p := range h.parts {
		info.Partitions = append(info.Partitions, p.id)
	}
	return info, nil
}

func (h *fakeHub) part(id string) *fakePartition {
	i, err := strconv.Atoi(id)
	if err != nil || i >= len(h.parts) {
		return nil
	}
	return h.parts[i]
}

func (h *fakeHub) partitionInfo(id string) (hub.PartitionInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(id)
	if p == nil {
		return hub.PartitionInfo{}, hub.ErrNotFound
	}
	info := hub.PartitionInfo{Partition: id, Last: int64(len(p.events)) - 1, Empty: len(p.events) == 0}
	if !info.Empty {
		last := p.events[len(p.events)-1]
		info.LastOffset, info.LastEnqueued = last.Offset, last.Enqueued
	}
	return info, nil
}

// send appends events with these texts, and keys where a text is "key:text".
func (h *fakeHub) send(partition string, texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range texts {
		ev := event.Text(text)
		if key, _, found := strings.Cut(text, ":"); found {
			ev.Key = key
		}
		h.appendLocked(h.part(partition), ev)
	}
}

// sendN appends n events that are called by their numbers.
func (h *fakeHub) sendN(partition string, n int) {
	for i := range n {
		h.send(partition, strconv.Itoa(i))
	}
}

func (h *fakeHub) appendLocked(p *fakePartition, ev event.Event) {
	n := int64(len(p.events))
	ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = p.id, n, "o"+strconv.FormatInt(n, 10), time.Now()
	p.events = append(p.events, ev)
	close(p.news)
	p.news = make(chan struct{})
}

func (h *fakeHub) setDown(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = err
}

func (h *fakeHub) produce(cfg hub.ProducerConfig, number int32, ev event.Event) error {
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
		h.appendLocked(p, ev)
		return nil
	case number < next:
		return nil // it is there
	}
	return hub.ErrOutOfOrder
}

// all gives what a partition holds.
func (h *fakeHub) all(partition string) []event.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.part(partition).events)
}

func (h *fakeHub) open(cfg hub.ReadConfig, l *life) (hub.Reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(cfg.Partition)
	if p == nil {
		return nil, hub.ErrNotFound
	}
	at, err := p.find(cfg.From)
	if err != nil {
		return nil, err
	}
	for _, old := range slices.Clone(p.readers) {
		if old.group != cfg.Group {
			continue
		}
		had, _ := old.epoch.Number()
		if epoch, _ := cfg.Epoch.Number(); had > epoch {
			return nil, hub.ErrRefused
		}
		old.endLocked(hub.ErrEvicted)
	}
	r := &fakeReader{hub: h, part: p, at: at, group: cfg.Group, epoch: cfg.Epoch, closed: make(chan struct{}), life: l}
	p.readers = append(p.readers, r)
	return r, nil
}

// find turns a position into a sequence number.
func (p *fakePartition) find(pos hub.Position) (int64, error) {
	switch pos {
	case hub.Earliest:
		return 0, nil
	case hub.Latest:
		return int64(len(p.events)), nil
	}
	seq, inclusive, ok := pos.Sequence()
	if !ok || seq < -1 || seq >= int64(len(p.events)) {
		return 0, hub.ErrOutOfRange
	}
	if !inclusive {
		seq++
	}
	return max(seq, 0), nil
}

type fakeReader struct {
	hub    *fakeHub
	part   *fakePartition
	life   *life
	at     int64
	group  string
	epoch  hub.Epoch
	err    error         // why it is closed
	closed chan struct{} // closed with err set
}

func (r *fakeReader) endLocked(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	close(r.closed)
	r.part.readers = slices.DeleteFunc(r.part.readers, func(o *fakeReader) bool { return o == r })
}

func (r *fakeReader) Next(ctx context.Context, dst []event.Event, max int) ([]event.Event, error) {
	for {
		if err := errors.Join(context.Cause(ctx), r.life.alive()); err != nil {
			return dst, err
		}
		r.hub.mu.Lock()
		news, err, n := r.part.news, r.err, len(dst)
		for err == nil && r.at < int64(len(r.part.events)) && len(dst)-n < max {
			dst = append(dst, r.part.events[r.at])
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

func (r *fakeReader) LastEnqueued() (hub.LastEnqueued, bool) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.at == 0 || len(r.part.events) == 0 {
		return hub.LastEnqueued{}, false
	}
	last := r.part.events[len(r.part.events)-1]
	return hub.LastEnqueued{Sequence: last.Sequence, Offset: last.Offset, Enqueued: last.Enqueued}, true
}

func (r *fakeReader) Close(context.Context) error {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.endLocked(hub.ErrClosed)
	return nil
}
