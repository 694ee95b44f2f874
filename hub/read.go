package hub

import (
	"context"
	"iter"

	"github.com/eventyard/eventyard/event"
)

// readChunk is how many events the iterator takes from its reader at once.
const readChunk = 100

// Read opens a reader and gives its events one by one until ctx ends or the loop does. After an error there
// is nothing more. When ctx ends that is its error.
func (h *Hub) Read(ctx context.Context, cfg ReadConfig) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r, err := h.Open(ctx, cfg)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer leave(ctx, r)
		if err := readAll(ctx, r, yield); err != nil {
			yield(event.Event{}, err)
		}
	}
}

// readAll gives events until the loop ends, which is no error.
func readAll(ctx context.Context, r Reader, yield func(event.Event, error) bool) (err error) {
	events := make([]event.Event, 0, readChunk)
	for {
		if events, err = r.Next(ctx, events[:0], readChunk); err != nil {
			return err
		}
		for i := range events {
			if !yield(events[i], nil) {
				return nil
			}
		}
	}
}

// leave closes a reader also when its context has ended.
func leave(ctx context.Context, r Reader) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	_ = r.Close(ctx) // the hub notices in any case
}
