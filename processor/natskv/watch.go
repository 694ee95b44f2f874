package natskv

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// Watch is a consumer of the group's leases and facts. If the server that has it is lost, the client makes it anew where
// it had come to.
func (s *store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if ctx.Err() != nil {
		return nil
	}
	filters := []string{folder(g) + "lease.*", folder(g) + "fact.>"}
	w, err := s.kv.WatchFiltered(ctx, filters, jetstream.UpdatesOnly(), jetstream.MetaOnly())
	if err != nil {
		return fmt.Errorf("watch group %s of hub %s: %w", g.Group, g.Hub, err)
	}
	defer stop(w)
	ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-w.Updates():
			if !open {
				return closed(ctx, g)
			}
			select {
			case changed <- struct{}{}:
			default: // it has yet to hear of an earlier one and will read both
			}
		}
	}
}

// closed tells why there is nothing more to come.
func closed(ctx context.Context, g processor.Group) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch group %s of hub %s: %w", g.Group, g.Hub, nats.ErrConnectionClosed)
}

// stop ends a watcher and waits for it: its goroutine may be about to give us something.
func stop(w jetstream.KeyWatcher) {
	w.Stop() // an error means that the connection is gone, and this with it
	for range w.Updates() {
	}
}
