package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/server"
)

// dialExample gives a client of a yard inside this program, which has a hub "images" with one
// partition and one for poison. With a connection string it is hub.Dial(ctx, connectionString,
// hub.Config{}).
func dialExample(ctx context.Context, bodies ...string) (client *hub.Client, stop func()) {
	dir, err := os.MkdirTemp("", "yard")
	if err != nil {
		panic(err)
	}
	yard, err := server.New(server.Config{
		DataDir: dir, Sync: "os", AMQP: server.Off, AMQPS: server.Off, HTTP: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Hubs: []server.Hub{{Name: "images", Partitions: 1}, {Name: "resize-poison", Partitions: 1}}, Log: slog.New(slog.DiscardHandler),
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
	for _, body := range bodies {
		if err := client.Hub("images").Send(ctx, event.Text(body)); err != nil {
			panic(err)
		}
	}
	return client, func() {
		_ = client.Close()
		cancel()
		<-ended
		_ = os.RemoveAll(dir)
	}
}

// A function for single events. One of them cannot be handled: it is tried again in place, then put
// away, and the stream goes on.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, stop := dialExample(context.Background(), "cat.png", "broken.png", "dog.png")
	defer stop()

	resize := func(ctx context.Context, ev event.Event) error {
		if string(ev.Body) == "broken.png" {
			return errors.New("no image")
		}
		fmt.Println("resized", string(ev.Body), "as", functions.ID(ctx))
		if string(ev.Body) == "dog.png" {
			cancel() // enough for an example
		}
		return nil
	}
	host := functions.NewHost(client, functions.Config{Log: slog.New(slog.DiscardHandler)})
	host.Handle("resize", functions.Each(resize), functions.Binding{
		Hub:     "images",
		Retry:   functions.Exponential(4, time.Millisecond),
		Breaker: functions.Breaker{Failures: 100, Within: 30 * time.Second},
	})
	if err := host.Run(ctx); err != nil {
		fmt.Println(err)
	}

	for ev := range client.Hub("resize-poison").Read(context.Background(), hub.ReadConfig{Partition: "0"}) {
		fmt.Printf("put away %s after %d attempts: %s\n", ev.Body, ev.Properties["poison-attempts"], ev.Properties["poison-reason"])
		break
	}
	// Output:
	// resized cat.png as resize/images/0/0
	// resized dog.png as resize/images/0/2
	// put away broken.png after 5 attempts: no image
}

// A handler for batches that knows which of its events have failed.
func ExampleResults() {
	handle := func(ctx context.Context, b *functions.Batch) error {
		r := &functions.Results{Failed: map[int]error{}}
		for i, ev := range b.Events {
			var order struct{ Total int }
			if err := json.Unmarshal(ev.Body, &order); err != nil {
				r.Failed[i] = functions.Poison(err) // no retry can help
			} else if order.Total == 0 {
				r.Failed[i] = functions.Skip("nothing to bill")
			}
		}
		return r
	}
	err := handle(context.Background(), &functions.Batch{Events: []event.Event{event.Text(`{"total":1999}`), event.Text("<order/>")}})
	fmt.Println(err)
	// Output: 1 failed, the first at index 1: invalid character '<' looking for beginning of value
}

// The error says what becomes of the events.
func ExampleHandler() {
	var handle functions.Handler = func(ctx context.Context, b *functions.Batch) error {
		switch {
		case b.Attempt > 10:
			return functions.Skip("nobody wants it any more") // done with them, in a way
		case b.Epoch == 0:
			return functions.RetryAfter(time.Minute, errors.New("the shop is closed")) // again, but not so soon
		case len(b.Events) == 0:
			return functions.Poison(errors.New("no events")) // never again
		}
		return nil // done
	}
	fmt.Println(handle(context.Background(), &functions.Batch{Attempt: 11}))
	fmt.Println(handle(context.Background(), &functions.Batch{Attempt: 1}))
	// Output:
	// skipped: nobody wants it any more
	// the shop is closed
}

// Middleware is put around handlers: here one that says how long they take.
func ExampleChain() {
	timed := func(next functions.Handler) functions.Handler {
		return func(ctx context.Context, b *functions.Batch) error {
			began := time.Now()
			err := next(ctx, b)
			fmt.Println("took less than a minute:", time.Since(began) < time.Minute)
			return err
		}
	}
	handle := functions.Chain(func(context.Context, *functions.Batch) error { return nil }, timed) // or Binding.Middleware
	fmt.Println(handle(context.Background(), &functions.Batch{}))
	// Output:
	// took less than a minute: true
	// <nil>
}
