package processor_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

// A processor takes all the partitions there are, as it is alone, and stops when its context ends.
func Example() {
	orders := fakehub.New("orders", 1) // in a program: client.Hub("orders")
	orders.SendN("0", 3)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := processor.New(orders, processor.Config{Store: memory.New(), Log: slog.New(slog.DiscardHandler)}) // a yard needs no Store
	err := p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		for _, ev := range b.Events {
			fmt.Println("partition", ev.Partition, "event", ev.Sequence)
		}
		if b.Events[len(b.Events)-1].Sequence == 2 {
			cancel() // enough for an example
		}
		return b.Checkpoint(ctx)
	})
	fmt.Println("stopped:", err)
	// Output:
	// partition 0 event 0
	// partition 0 event 1
	// partition 0 event 2
	// stopped: <nil>
}

// The pull form leaves the looping to you.
func ExampleProcessor_Partitions() {
	orders := fakehub.New("orders", 1)
	orders.SendN("0", 3)

	p := processor.New(orders, processor.Config{Store: memory.New(), Log: slog.New(slog.DiscardHandler), Checkpoints: processor.Checkpoints{Auto: true}})
	for part, err := range p.Partitions(context.Background()) {
		if err != nil {
			fmt.Println(err)
			break
		}
		// With more than one partition each gets a goroutine of its own.
		for b, err := range part.Batches(context.Background()) {
			if err != nil {
				break
			}
			fmt.Println("partition", part.ID(), "has", len(b.Events), "events")
			if b.Events[len(b.Events)-1].Sequence == 2 {
				break
			}
		}
		break
	}
	// Output:
	// partition 0 has 3 events
}
