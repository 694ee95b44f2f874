//go:build linux

package interop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
)

// startTheirs starts a processor of the official library, as its documentation shows.
func (s *sharing) startTheirs(id string) *sharer {
	s.Helper()
	client, err := azeventhubs.NewConsumerClientFromConnectionString(s.listener(), sharedHub, sharedGroup,
		&azeventhubs.ConsumerClientOptions{InstanceID: id})
	if err != nil {
		s.Fatal(err)
	}
	running, stopRunning := context.WithCancel(context.WithoutCancel(s.Context()))
	reading, stopReading := context.WithCancel(running)
	store := &politeStore{BlobStore: s.official, stop: stopRunning}
	p, err := azeventhubs.NewProcessor(client, store, &azeventhubs.ProcessorOptions{
		UpdateInterval: time.Second, PartitionExpirationDuration: 20 * time.Second,
		StartPositions: azeventhubs.StartPositions{Default: azeventhubs.StartPosition{Earliest: to.Ptr(true)}},
	})
	if err != nil {
		s.Fatal(err)
	}
	var run, read sync.WaitGroup
	run.Go(func() {
		if err := p.Run(running); err != nil {
			s.Errorf("%s ended: %v", id, err)
		}
	})
	read.Go(func() { s.readAll(reading, p, id) })
	return newSharer(s.T, func() {
		stopReading() // first, so that nothing is saved of what is released already
		read.Wait()
		store.stopping.Store(true)
		run.Wait()
		_ = client.Close(context.WithoutCancel(s.Context()))
	})
}

// politeStore is the official store. It stops the processor right behind a claim: a stop that falls
// into the middle of one makes the processor forget what it has just written, so that it cannot
// release it.
type politeStore struct {
	*checkpoints.BlobStore
	stopping atomic.Bool
	stop     context.CancelFunc
}

func (p *politeStore) ClaimOwnership(ctx context.Context, list []azeventhubs.Ownership, o *azeventhubs.ClaimOwnershipOptions) ([]azeventhubs.Ownership, error) {
	won, err := p.BlobStore.ClaimOwnership(ctx, list, o)
	if p.stopping.Load() {
		p.stop()
	}
	return won, err
}

// readAll reads the partitions that the official processor is given.
func (s *sharing) readAll(ctx context.Context, p *azeventhubs.Processor, id string) {
	var partitions sync.WaitGroup
	defer partitions.Wait()
	for c := p.NextPartitionClient(ctx); c != nil; c = p.NextPartitionClient(ctx) {
		partitions.Go(func() {
			w := &theirWorker{sharing: s, client: c, tenure: s.begin(id, c.PartitionID(), ofOurs)}
			if err := w.read(ctx); err != nil && ctx.Err() == nil {
				s.Logf("%s leaves partition %s: %v", id, c.PartitionID(), err)
				_ = c.Close(context.WithoutCancel(ctx))
			} // else the processor closes it, and releases it after that
		})
	}
}

// theirWorker has one partition of the official processor.
type theirWorker struct {
	*sharing
	client *azeventhubs.ProcessorPartitionClient
	tenure *tenure
}

// read reads until the partition is lost, or ctx ends.
func (w *theirWorker) read(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		events, err := w.client.ReceiveEvents(wait, 100, nil)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			continue
		case err != nil:
			return err
		}
		if err := w.handle(context.WithoutCancel(ctx), events); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *theirWorker) handle(ctx context.Context, events []*azeventhubs.ReceivedEventData) error {
	for i, ev := range events {
		checkEvent(w.T, w.tenure.partition, ev.SequenceNumber, events[0].SequenceNumber+int64(i), ev.Body)
	}
	first, last := events[0].SequenceNumber, events[len(events)-1].SequenceNumber
	w.tenure.handle(first, last)
	at, ok := checkpointIn(first, last)
	if !ok {
		return nil
	}
	done := w.tenure.saving(at)
	err := w.client.UpdateCheckpoint(ctx, events[at-first], nil)
	done(false, err != nil)
	return err
}
