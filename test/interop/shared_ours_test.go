//go:build linux

package interop

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// startOurs starts a processor of ours.
func (s *sharing) startOurs(id string) *sharer {
	s.Helper()
	client, err := hub.Dial(s.Context(), s.listener(), hub.Config{Log: quietLog(s.T)})
	if err != nil {
		s.Fatal(err)
	}
	p := processor.New(client.Hub(sharedHub), processor.Config{
		Group: sharedGroup, Store: s.own, ID: id, Lease: 10 * time.Second, Renew: time.Second,
		Log:     quietLog(s.T),
		OnError: func(err error) { s.Logf("%s: %v", id, err) },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() {
		done <- p.RunHost(ctx, func(string) processor.Worker { return &ourWorker{sharing: s, id: id} })
	}()
	return newSharer(s.T, func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("%s ended: %v", id, err)
		}
		_ = client.Close()
	})
}

// ourWorker has one partition of ours.
type ourWorker struct {
	*sharing
	id     string
	tenure *tenure
}

func (w *ourWorker) Open(_ context.Context, p *processor.Partition) error {
	w.tenure = w.begin(w.id, p.ID(), ofTheirs)
	return nil
}

func (w *ourWorker) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	for i, ev := range b.Events {
		checkEvent(w.T, w.tenure.partition, ev.Sequence, b.Events[0].Sequence+int64(i), ev.Body)
	}
	first, last := b.Events[0].Sequence, b.Events[len(b.Events)-1].Sequence
	w.tenure.handle(first, last)
	at, ok := checkpointIn(first, last)
	if !ok {
		return nil
	}
	done := w.tenure.saving(at)
	err := b.CheckpointAt(ctx, b.Events[at-first])
	refused := errors.Is(err, processor.ErrFenced) || errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrMoved)
	done(refused, err != nil && !refused)
	return err
}

func (w *ourWorker) ProcessError(context.Context, *processor.Partition, error) {}

func (w *ourWorker) Close(context.Context, *processor.Partition, processor.Reason) error { return nil }

// quietLog is for what is worth a look.
func quietLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
