package natskv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// Watch is a consumer of the group's leases and entries. If the server that has it is lost, the
// client makes it anew where it had come to.
func (s *store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if ctx.Err() != nil {
		return nil
	}
	filters := []string{folder(g) + "lease.*", folder(g) + "fact.>"}
	w, err := s.kv.WatchFiltered(ctx, filters)
	if err != nil {
		return fmt.Errorf("watch group %s of hub %s: %w", g.Group, g.Hub, err)
	}
	defer stop(w)
	seen := watched{leases: folder(g) + "lease.", values: map[string][]byte{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.Updates():
			switch {
			case !open && ctx.Err() != nil:
				return nil
			case !open:
				return fmt.Errorf("watch group %s of hub %s: %w", g.Group, g.Hub, nats.ErrConnectionClosed)
			case e == nil: // all that were there before
				seen.ready = true
				ready()
			case seen.changes(e):
				stores.Notify(changed)
			}
		}
	}
}

// watched is what a watcher has seen of the group's keys.
type watched struct {
	leases string // what their keys begin with
	ready  bool
	values map[string][]byte
}

// changes takes a key in and reports whether that is a change: not what was there before, nor where
// nothing is new but the revision.
func (w *watched) changes(e jetstream.KeyValueEntry) bool {
	had, known := w.values[e.Key()]
	if e.Operation() != jetstream.KeyValuePut {
		delete(w.values, e.Key())
		return w.ready && known
	}
	now := e.Value()
	var r leaseRecord
	if strings.HasPrefix(e.Key(), w.leases) && json.Unmarshal(now, &r) == nil {
		now = fmt.Appendf(nil, "%d %s", r.Epoch, r.Owner) // without what a renewal changes
	}
	w.values[e.Key()] = now
	return w.ready && (!known || !bytes.Equal(had, now))
}

// stop ends a watcher and waits for it: its goroutine may be about to give us something.
func stop(w jetstream.KeyWatcher) {
	w.Stop() // an error means that the connection is gone, and this with it
	for range w.Updates() {
	}
}
