package functions

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
)

// fakeSpace is a namespace in memory whose hubs honour epochs and producers' numbers, for use
// inside a synctest bubble.
type fakeSpace struct {
	mu   sync.Mutex
	hubs map[string]*fakehub.Hub // guarded by mu

	producers atomic.Int64 // that are open
}

func newFakeSpace() *fakeSpace { return &fakeSpace{hubs: map[string]*fakehub.Hub{}} }

// make makes a hub, or makes it anew.
func (s *fakeSpace) make(name string, partitions int) *fakehub.Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hubs[name] = fakehub.New(name, partitions)
	return s.hubs[name]
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

func (a fakeAccess) hub() (*fakehub.Hub, error) {
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

func (a fakeAccess) Info(ctx context.Context) (hub.Info, error) {
	h, err := a.hub()
	if err != nil {
		return hub.Info{}, err
	}
	return h.Info(ctx)
}

func (a fakeAccess) Partition(ctx context.Context, id string) (hub.PartitionInfo, error) {
	h, err := a.hub()
	if err != nil {
		return hub.PartitionInfo{}, err
	}
	return h.Partition(ctx, id)
}

func (a fakeAccess) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	h, err := a.hub()
	if err != nil {
		return nil, err
	}
	r, err := h.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return fakeReader{r, a.life}, nil
}

// fakeReader reads nothing more once its host is cut off.
type fakeReader struct {
	hub.Reader
	life *life
}

func (r fakeReader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	if err := r.life.alive(); err != nil {
		return dst, err
	}
	got, err := r.Reader.Next(ctx, dst, most)
	if dead := r.life.alive(); dead != nil {
		return dst, dead
	}
	return got, err
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
		return h.Produce(p.cfg, number, ev)
	})
}
