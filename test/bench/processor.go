package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

const (
	processorPartitions = 4
	processorBatch      = 100
)

// measureProcessor reads a filled hub with the plain reader, with our processor and with
// Event Hubs' own, all with handlers that do nothing: what a processor costs.
func measureProcessor(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("processor: %d partitions, events of 1 KiB, handlers that do nothing", processorPartitions)
	events := b.during(100_000) / processorPartitions
	filled := func(work func(context.Context, *amqpServer, *consumed) error) amqpWork {
		return func(ctx context.Context, s *amqpServer, _ limit) (tally, error) {
			if err := fillOverAMQP(ctx, s, processorPartitions, eventBytes, events); err != nil {
				return tally{}, err
			}
			c := newConsumed(int64(events) * processorPartitions)
			err := work(ctx, s, c)
			return c.tally(), err
		}
	}
	r, err := b.compare(ctx, limit{period: b.period},
		onYard("plain readers", program, "os", processorPartitions, filled(readPlain)),
		onYard("processor", program, "os", processorPartitions, filled(processOurs)),
		onYard("azeventhubs' processor", program, "os", processorPartitions, filled(processTheirs)))
	if err != nil {
		return err
	}
	b.report.goal("processor with a handler that does nothing / plain readers", r[1].rate().Over(r[0].rate()), "×", atLeast(0.90))
	b.report.goal("processor / azeventhubs' own processor", r[1].rate().Over(r[2].rate()), "×", atLeast(1))
	b.report.rates(fmt.Sprintf("Processing: %d partitions, events of 1 KiB, handlers that do nothing", processorPartitions), r,
		"Allocations are the clients'. The time counts from the first event, so without the taking of partitions.")
	return nil
}

// consumed counts events until there are enough, from the first on.
type consumed struct {
	total  int64
	count  atomic.Int64
	first  sync.Once
	began  time.Time
	before uint64
	last   sync.Once
	took   time.Duration
	after  uint64
	done   chan struct{}
}

func newConsumed(total int64) *consumed { return &consumed{total: total, done: make(chan struct{})} }

func (c *consumed) add(n int) {
	c.first.Do(func() { c.before, c.began = memory().Mallocs, time.Now() })
	if c.count.Add(int64(n)) >= c.total {
		c.last.Do(func() {
			c.took, c.after = time.Since(c.began), memory().Mallocs
			close(c.done)
		})
	}
}

func (c *consumed) tally() tally {
	return tally{events: c.total, bytes: c.total * eventBytes, took: c.took, allocations: c.after - c.before}
}

// until gives a context that ends when enough was consumed.
func (c *consumed) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func readPlain(ctx context.Context, s *amqpServer, c *consumed) error {
	client, err := hub.Dial(ctx, s.connectionString(), hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := c.until(ctx)
	defer cancel()
	return each(processorPartitions, func(i int) error {
		r, err := client.Hub(hubName).Open(ctx, hub.ReadConfig{Partition: fmt.Sprint(i)})
		if err != nil {
			return err
		}
		defer r.Close(context.WithoutCancel(ctx))
		var events []event.Event
		for {
			if events, err = r.Next(ctx, events[:0], processorBatch); err != nil {
				return unlessEnded(ctx, err)
			}
			c.add(len(events))
		}
	})
}

// unlessEnded forgives what went wrong because there was enough.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func processOurs(ctx context.Context, s *amqpServer, c *consumed) error {
	client, err := hub.Dial(ctx, s.connectionString(), hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := c.until(ctx)
	defer cancel()
	p := processor.New(client.Hub(hubName), processor.Config{MaxBatch: processorBatch, Log: quiet()})
	return p.Run(ctx, func(_ context.Context, b *processor.Batch) error {
		c.add(len(b.Events))
		return nil
	})
}

func processTheirs(ctx context.Context, s *amqpServer, c *consumed) error {
	client, err := azeventhubs.NewConsumerClientFromConnectionString(s.connectionString(), hubName, azeventhubs.DefaultConsumerGroup, nil)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	p, err := azeventhubs.NewProcessor(client, &memoryCheckpoints{}, &azeventhubs.ProcessorOptions{
		LoadBalancingStrategy: azeventhubs.ProcessorStrategyGreedy,
		StartPositions:        azeventhubs.StartPositions{Default: azeventhubs.StartPosition{Earliest: to.Ptr(true)}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := c.until(ctx)
	defer cancel()
	var readers sync.WaitGroup
	defer readers.Wait()
	readers.Go(func() {
		for part := p.NextPartitionClient(ctx); part != nil; part = p.NextPartitionClient(ctx) {
			readers.Go(func() { receiveTheirs(ctx, part, c) })
		}
	})
	return unlessEnded(ctx, p.Run(ctx))
}

// receiveTheirs is the loop of that library's own example.
func receiveTheirs(ctx context.Context, part *azeventhubs.ProcessorPartitionClient, c *consumed) {
	defer part.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		turn, cancel := context.WithTimeout(ctx, time.Second)
		events, err := part.ReceiveEvents(turn, processorBatch, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return
		}
		c.add(len(events))
	}
}

// memoryCheckpoints is a store for one process of azeventhubs, whose own is not exported.
type memoryCheckpoints struct {
	mu    sync.Mutex
	owned map[string]azeventhubs.Ownership // guarded by mu
}

func (m *memoryCheckpoints) ClaimOwnership(_ context.Context, wanted []azeventhubs.Ownership, _ *azeventhubs.ClaimOwnershipOptions) ([]azeventhubs.Ownership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owned == nil {
		m.owned = map[string]azeventhubs.Ownership{}
	}
	for i := range wanted {
		wanted[i].LastModifiedTime, wanted[i].ETag = time.Now(), to.Ptr(azcore.ETag(fmt.Sprint(time.Now().UnixNano())))
		m.owned[wanted[i].PartitionID] = wanted[i]
	}
	return wanted, nil
}

func (m *memoryCheckpoints) ListOwnership(context.Context, string, string, string, *azeventhubs.ListOwnershipOptions) ([]azeventhubs.Ownership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []azeventhubs.Ownership
	for _, o := range m.owned {
		all = append(all, o)
	}
	return all, nil
}

func (m *memoryCheckpoints) ListCheckpoints(context.Context, string, string, string, *azeventhubs.ListCheckpointsOptions) ([]azeventhubs.Checkpoint, error) {
	return nil, nil
}

func (m *memoryCheckpoints) SetCheckpoint(context.Context, azeventhubs.Checkpoint, *azeventhubs.SetCheckpointOptions) error {
	return nil
}
