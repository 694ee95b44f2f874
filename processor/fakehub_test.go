package processor_test

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

// fakeHub is a hub in memory that honours epochs, for use inside a synctest bubble.
type fakeHub struct {
	mu      sync.Mutex
	created time.Time
	parts   []*fakePartition
	opens   []hub.ReadConfig
	// openErr, where it is set, is asked before a reader is opened.
	openErr func(cfg hub.ReadConfig) error
	infoErr error
	waits   atomic.Int64 // calls of readers' Next
}

type fakePartition struct {
	id      string
	first   int64
	events  []event.Event // from first on
	next    int64
	readers []*fakeReader
	news    chan struct{}  // closed and replaced when something comes
	mute    bool           // readers get nothing, as over a dead link
	broken  map[int64]bool // events that cannot be decoded
}

type fakeReader struct {
	hub    *fakeHub
	part   *fakePartition
	at     int64
	epoch  hub.Epoch
	err    error         // why it is closed
	closed chan struct{} // closed with err set
	muted  bool
}

func newFakeHub(partitions int) *fakeHub {
	h := &fakeHub{created: time.Now()}
	h.grow(partitions)
	return h
}

func (h *fakeHub) grow(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.parts = append(h.parts, &fakePartition{id: strconv.Itoa(len(h.parts)), news: make(chan struct{})})
	}
}

func (h *fakeHub) Namespace() string { return "space.example" }
func (h *fakeHub) Name() string      { return "orders" }

func (h *fakeHub) Info(context.Context) (hub.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	info := hub.Info{Name: "orders", Created: h.created}
	for _, p := range h.parts {
		info.Partitions = append(info.Partitions, p.id)
	}
	return info, h.infoErr
}

func (h *fakeHub) part(id string) *fakePartition {
	i, err := strconv.Atoi(id)
	if err != nil || i >= len(h.parts) {
		return nil
	}
	return h.parts[i]
}

func (h *fakeHub) Partition(_ context.Context, id string) (hub.PartitionInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(id)
	if p == nil {
		return hub.PartitionInfo{}, hub.ErrNotFound
	}
	info := hub.PartitionInfo{Partition: id, First: p.first, Last: p.next - 1, Empty: len(p.events) == 0}
	if !info.Empty {
		last := p.events[len(p.events)-1]
		info.LastOffset, info.LastEnqueued = last.Offset, last.Enqueued
	}
	return info, nil
}

// send appends n events, with these keys in turn.
func (h *fakeHub) send(partition string, n int, keys ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(partition)
	for i := range n {
		ev := event.Text("event")
		ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = partition, p.next, "o"+strconv.FormatInt(p.next, 10), time.Now()
		if len(keys) > 0 {
			ev.Key = keys[i%len(keys)]
		}
		p.events = append(p.events, ev)
		p.next++
	}
	p.notify()
}

// sendAll appends n events to each partition.
func (h *fakeHub) sendAll(n int) {
	for _, p := range h.parts {
		h.send(p.id, n)
	}
}

func (p *fakePartition) notify() {
	close(p.news)
	p.news = make(chan struct{})
}

// trim removes the events before first.
func (h *fakeHub) trim(partition string, first int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(partition)
	p.events = p.events[first-p.first:]
	p.first = first
}

// recreate makes another hub of the same name.
func (h *fakeHub) recreate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.created = time.Now()
	for i, p := range h.parts {
		for _, r := range p.readers {
			r.endLocked(errors.New("gone"))
		}
		h.parts[i] = &fakePartition{id: p.id, news: make(chan struct{})}
	}
}

// garble lets events be none that can be decoded.
func (h *fakeHub) garble(partition string, seqs ...int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(partition)
	p.broken = map[int64]bool{}
	for _, seq := range seqs {
		p.broken[seq] = true
	}
}

// mute lets the readers that are open now hear nothing more.
func (h *fakeHub) mute(partition string, newOnes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(partition)
	p.mute = newOnes
	for _, r := range p.readers {
		r.muted = true
	}
}

// cut ends the readers of a partition, as a broken link does.
func (h *fakeHub) cut(partition string, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range slices.Clone(h.part(partition).readers) {
		r.endLocked(why)
	}
}

// shrink makes the hub anew with fewer partitions.
func (h *fakeHub) shrink(n int) {
	h.recreate()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = h.parts[:n]
}

func (h *fakeHub) readers(partition string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.part(partition).readers)
}

func (h *fakeHub) opened() []hub.ReadConfig {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.opens)
}

func (h *fakeHub) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
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
	for _, old := range slices.Clone(p.readers) {
		had, exclusive := old.epoch.Number()
		epoch, wanted := cfg.Epoch.Number()
		switch {
		case !exclusive && !wanted:
		case !wanted || exclusive && had > epoch:
			return nil, hub.ErrRefused
		default:
			old.endLocked(hub.ErrEvicted)
		}
	}
	r := &fakeReader{hub: h, part: p, at: at, epoch: cfg.Epoch, closed: make(chan struct{}), muted: p.mute}
	p.readers = append(p.readers, r)
	return r, nil
}

// find turns a position into a sequence number.
func (p *fakePartition) find(pos hub.Position) (int64, error) {
	switch pos {
	case hub.Earliest:
		return p.first, nil
	case hub.Latest:
		return p.next, nil
	}
	seq, inclusive, ok := pos.Sequence()
	if offset, in, is := pos.Offset(); is {
		var err error
		seq, err = strconv.ParseInt(strings.TrimPrefix(offset, "o"), 10, 64)
		inclusive, ok = in, err == nil
	}
	if !ok || seq < -1 || seq >= p.next {
		return 0, hub.ErrOutOfRange
	}
	if !inclusive {
		seq++
	}
	return max(seq, p.first), nil
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
	r.hub.waits.Add(1)
	for {
		if err := context.Cause(ctx); err != nil {
			return dst, err
		}
		r.hub.mu.Lock()
		news, err := r.part.news, r.err
		n := len(dst)
		for err == nil && !r.muted && r.at < r.part.next && len(dst)-n < max {
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
