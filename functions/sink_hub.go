package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// hubTarget is a hub that knows producers' numbers, as a yard's: a poison event is stored once.
type hubTarget struct {
	hub Source
	// kept has a place for each producer that stays open. All others are opened for each poison
	// event: connections have a limit, and so many partitions may be a function's.
	kept chan struct{}

	mu         sync.Mutex
	partitions []string // guarded by mu
}

// keptProducers is how many of a function's partitions can have a producer open while they write
// nothing.
const keptProducers = 8

func (p *hubTarget) String() string { return "hub " + p.hub.Name() }

func (p *hubTarget) writer(partition string) writer { return &hubWriter{target: p, from: partition} }

// to is where the poison events of one source partition go, always the same, so that their order
// is kept.
func (p *hubTarget) to(partition string) string {
	n, err := strconv.ParseUint(partition, 10, 32)
	if err != nil {
		n = 0 // partitions are numbered; whatever this is, it is somewhere
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.partitions[n%uint64(len(p.partitions))]
}

// hubWriter is used by one goroutine at a time.
type hubWriter struct {
	target   *hubTarget
	from     string
	producer Producer // nil: none is open
	open     hub.ProducerConfig
	keeps    bool // it has one of the places
}

func (w *hubWriter) partition() string { return w.target.to(w.from) }

func (w *hubWriter) put(ctx context.Context, in triage.Intent, l PoisonEvent) error {
	// The intent's producer, for the partition that stands there while there is one.
	cfg := hub.ProducerConfig{Partition: in.Partition, ID: in.Producer}
	w.target.mu.Lock()
	there := slices.Contains(w.target.partitions, in.Partition)
	w.target.mu.Unlock()
	if !there {
		cfg.Partition = w.partition()
	}
	if w.producer == nil || w.open != cfg {
		w.end(ctx)
		w.producer, w.open = w.target.hub.Producer(cfg), cfg
	}
	err := w.producer.Send(ctx, in.Number, l.full().Message())
	if !w.keeps { // it is left open if there is a place for it
		select {
		case w.target.kept <- struct{}{}:
			w.keeps = true
		default:
			w.end(ctx)
		}
	}
	if !errors.Is(err, hub.ErrNotFound) {
		return err
	}
	// The hub is gone, or was made anew with fewer partitions.
	name := w.target.hub.Name()
	info, gone := w.target.hub.Info(ctx)
	if errors.Is(gone, hub.ErrNotFound) {
		return &plainError{fmt.Sprintf("hub %s does not exist: create it with: eventyard hub create %s --partitions 1", name, name), err}
	}
	if gone == nil {
		w.target.mu.Lock()
		w.target.partitions = info.Partitions
		w.target.mu.Unlock()
	}
	return err
}

func (w *hubWriter) end(ctx context.Context) {
	if w.producer != nil {
		_ = w.producer.Close(ctx) // its link ends with the connection at the latest
		w.producer = nil
	}
}

func (w *hubWriter) close(ctx context.Context) {
	w.end(ctx)
	if w.keeps {
		w.keeps = false
		<-w.target.kept
	}
}

// Hub is a target of poison events in any hub, such as one in another namespace. A poison event is
// there at least once: after a crash it may be there again with the same ID. For a hub of the
// function's own namespace Binding.Poison is better, as a yard stores each poison event once.
func Hub(h *hub.Hub) Sink { return plainHub{h} }

type plainHub struct{ *hub.Hub }

func (p plainHub) Put(ctx context.Context, l PoisonEvent) error {
	return p.Send(ctx, l.full().Message())
}

func (p plainHub) String() string { return "hub " + p.Name() }
