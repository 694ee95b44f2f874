package nodes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
)

// remote is the hub as an instance reaches it.
type remote struct{ *instance }

func (h remote) Namespace() string { return "sim" }
func (h remote) Name() string      { return hubName }

func (h remote) Info(ctx context.Context) (hub.Info, error) {
	return over(ctx, h.instance, nil, func(ctx context.Context, n *node) (hub.Info, error) { return n.hubs.Hub(hubName).Info(ctx) })
}

func (h remote) Partition(ctx context.Context, id string) (hub.PartitionInfo, error) {
	return over(ctx, h.instance, nil, func(ctx context.Context, n *node) (hub.PartitionInfo, error) {
		return n.hubs.Hub(hubName).Partition(ctx, id)
	})
}

func (h remote) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	r := &reader{instance: h.instance, cfg: cfg}
	return r, r.open(ctx)
}

// reader reads a partition at one node, and at another when that is gone.
type reader struct {
	*instance
	cfg    hub.ReadConfig       // From is behind what was given
	link   atomic.Pointer[link] // nil: not connected
	closed atomic.Bool
}

// link is a reader at a node.
type link struct {
	hub.Reader
	n *node
}

// close frees the slot of a reader that nobody uses any more. A node frees those of clients that are
// gone.
func (l *link) close() { _ = l.Reader.Close(context.Background()) }

func (r *reader) open(ctx context.Context) error {
	l, err := over(ctx, r.instance, (*link).close, func(ctx context.Context, n *node) (*link, error) {
		inner, err := n.hubs.Hub(hubName).Open(ctx, r.cfg)
		return &link{inner, n}, err
	})
	if err == nil {
		r.link.Store(l)
		context.AfterFunc(r.dead, l.close) // the node notices that the connection is gone
		if r.closed.Load() && r.link.CompareAndSwap(l, nil) {
			go l.close()
		}
	}
	return err
}

// Next is hub.Reader's: it goes on at another node behind what was given.
func (r *reader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		if r.closed.Load() {
			return dst, hub.ErrClosed
		}
		l := r.link.Load()
		if l == nil {
			switch err := r.open(ctx); {
			case final(err):
				return dst, err
			case err != nil:
				rests(ctx, time.Second)
			}
			continue
		}
		events, err := call(ctx, l.n, func(ctx context.Context) ([]event.Event, error) { return l.Next(ctx, nil, most) }, nil)
		switch {
		case errors.Is(err, errGone):
			r.leaves(l.n, err)
			if r.link.CompareAndSwap(l, nil) {
				go l.close()
			}
		case err != nil:
			return dst, err
		default:
			r.cfg.From = hub.After(events[len(events)-1].Sequence)
			return append(dst, events...), nil
		}
	}
}

// final: waiting does not help.
func final(err error) bool {
	for _, what := range []error{hub.ErrEvicted, hub.ErrRefused, hub.ErrNotFound, hub.ErrOutOfRange} {
		if errors.Is(err, what) {
			return true
		}
	}
	return false
}

// LastEnqueued is what the node knows, if it is there.
func (r *reader) LastEnqueued() (hub.LastEnqueued, bool) { return hub.LastEnqueued{}, false }

// Close is hub.Reader's. It may come while Next waits.
func (r *reader) Close(ctx context.Context) error {
	r.closed.Store(true)
	if l := r.link.Swap(nil); l != nil {
		_, err := call(ctx, l.n, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Reader.Close(ctx) }, nil)
		return err
	}
	return nil
}
