package hub_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// dialExample gives a client of a yard inside this program, which has a hub "orders" with one
// partition. With a connection string it is hub.Dial(ctx, connectionString, hub.Config{}).
func dialExample(ctx context.Context) (client *hub.Client, stop func()) {
	dir, err := os.MkdirTemp("", "yard")
	if err != nil {
		panic(err)
	}
	yard, err := server.New(server.Config{
		DataDir: dir, Sync: "os", AMQP: server.Off, AMQPS: server.Off, HTTP: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Hubs: []server.Hub{{Name: "orders", Partitions: 1}}, Log: testkit.Quiet(),
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- yard.Run(ctx) }()
	if client, err = yard.Dial(ctx, hub.Config{}); err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close()
		cancel()
		<-ended
		_ = os.RemoveAll(dir)
	}
}

// Send an event, and read it.
func Example() {
	ctx := context.Background()
	client, stop := dialExample(ctx)
	defer stop()
	orders := client.Hub("orders")

	placed, err := event.JSON("order.placed", map[string]any{"total": 1999})
	if err != nil {
		panic(err)
	}
	placed.Key = "customer-42"                       // same key, same partition, same order
	if err := orders.Send(ctx, placed); err != nil { // nil means durable
		panic(err)
	}

	for ev, err := range orders.Read(ctx, hub.ReadConfig{Partition: "0"}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(ev.Sequence, ev.Key, ev.Subject, string(ev.Body))
		break // it would wait for the next
	}
	// Output: 0 customer-42 order.placed {"total":1999}
}

// Gather events into batches as large as the hub takes.
func ExampleHub_NewBatch() {
	ctx := context.Background()
	client, stop := dialExample(ctx)
	defer stop()
	orders := client.Hub("orders")

	batch, err := orders.NewBatch(ctx, hub.BatchConfig{MaxBytes: 1000})
	if err != nil {
		panic(err)
	}
	for i := range 100 {
		ev := event.Text(fmt.Sprintf("order %d", i))
		err := batch.Add(ev)
		if errors.Is(err, hub.ErrTooLarge) { // it is full
			if err := orders.SendBatch(ctx, batch); err != nil {
				panic(err)
			}
			if batch, err = orders.NewBatch(ctx, hub.BatchConfig{MaxBytes: 1000}); err != nil {
				panic(err)
			}
			err = batch.Add(ev)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := orders.SendBatch(ctx, batch); err != nil {
		panic(err)
	}

	info, err := orders.Partition(ctx, "0")
	fmt.Println(info.Last+1, "events", err)
	// Output: 100 events <nil>
}

// Read in larger pieces, as the only one, from where the last reader has ended.
func ExampleHub_Open() {
	ctx := context.Background()
	client, stop := dialExample(ctx)
	defer stop()
	orders := client.Hub("orders")
	if err := orders.Send(ctx, event.Text("a"), event.Text("b"), event.Text("c")); err != nil {
		panic(err)
	}

	done := int64(0) // everything up to this sequence number was done before
	r, err := orders.Open(ctx, hub.ReadConfig{Partition: "0", From: hub.After(done), Epoch: hub.Exclusive(7)})
	if err != nil {
		panic(err)
	}
	defer r.Close(ctx)
	var events []event.Event
	for len(events) < 2 {
		if events, err = r.Next(ctx, events, 100); err != nil {
			panic(err) // errors.Is(err, hub.ErrEvicted): another has taken over
		}
	}
	fmt.Printf("%s %s\n", events[0].Body, events[1].Body)
	// Output: b c
}

// Send so that what is sent again after a crash, or by another program, is stored once.
func ExampleHub_Producer() {
	ctx := context.Background()
	client, stop := dialExample(ctx)
	defer stop()
	orders := client.Hub("orders")

	// ID and number are kept where the program finds them again.
	p := orders.Producer(hub.ProducerConfig{Partition: "0", ID: 4711})
	for range 2 { // the answer may have been lost
		if err := p.Send(ctx, 0, event.Text("paid")); err != nil {
			panic(err)
		}
	}
	info, err := orders.Partition(ctx, "0")
	if err != nil {
		panic(err)
	}
	fmt.Println("stored:", info.Last+1)
	fmt.Println("too far:", errors.Is(p.Send(ctx, 7, event.Text("what?")), hub.ErrOutOfOrder))
	// Output:
	// stored: 1
	// too far: true
}
