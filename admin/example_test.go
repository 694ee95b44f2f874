package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/server"
)

// Define a topic and who gets its events, and change one thing about it later.
func Example() {
	address, stop := exampleYard()
	defer stop()
	ctx := context.Background()
	client, err := admin.New(admin.Config{Server: address}) // on loopback no key is needed
	if err != nil {
		panic(err)
	}
	defer client.Close()

	if _, err := client.CreateTopic(ctx, admin.TopicRequest{Name: "orders", Schema: "cloudevents"}); err != nil {
		panic(err)
	}
	worker, err := client.CreateSubscription(ctx, admin.SubscriptionRequest{
		Name: "worker", Topic: "orders",
		Pull:    &admin.Pull{Lock: "90s"},
		Filters: []admin.Filter{"data.total NumberGreaterThan 100"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(worker.State, worker.Retry.TTL, worker.Pull.Lock)

	// What a request does not mention stays as it is.
	worker, err = client.UpdateSubscription(ctx, admin.SubscriptionRef{Name: "worker"}, admin.SubscriptionRequest{TTL: new("2h")})
	if err != nil {
		panic(err)
	}
	fmt.Println(worker.State, worker.Retry.TTL, worker.Pull.Lock)

	_, err = client.Hub(ctx, "nowhere")
	fmt.Println(err)
	// Output:
	// active 24h 1m30s
	// active 2h 1m30s
	// hub "nowhere" does not exist: create it first, or check its spelling
}

// Send events and read them. Events are JSON in both directions; Event writes it.
func ExampleClient_Send() {
	address, stop := exampleYard()
	defer stop()
	ctx := context.Background()
	client, err := admin.New(admin.Config{Server: address})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	if _, err := client.CreateHub(ctx, admin.HubRequest{Name: "orders", Partitions: new(1)}); err != nil {
		panic(err)
	}

	var batch admin.Batch
	for _, text := range []string{"hello", "world"} {
		one, err := admin.Event{Body: []byte(text), Properties: map[string]any{"tone": "kind"}}.Encode()
		if err != nil {
			panic(err)
		}
		batch.Events = append(batch.Events, one)
	}
	sent, err := client.Send(ctx, "orders", batch) // nil means that all of them are stored
	if err != nil {
		panic(err)
	}
	fmt.Println(sent.Count, "events in partition", sent.Partition)

	for line, err := range client.Read(ctx, admin.Query{Hub: "orders"}, nil) {
		if err != nil {
			panic(err)
		}
		var ev struct {
			Sequence int64
			Body     string
		}
		if err := json.Unmarshal(line, &ev); err != nil {
			panic(err)
		}
		fmt.Println(ev.Sequence, ev.Body)
	}
	// Output:
	// 2 events in partition 0
	// 0 hello
	// 1 world
}

// exampleYard runs a yard and gives the address of its HTTP listener.
func exampleYard() (address string, stop func()) {
	dir, err := os.MkdirTemp("", "yard")
	if err != nil {
		panic(err)
	}
	yard, err := server.New(server.Config{
		DataDir: dir, HTTP: "127.0.0.1:0", AMQP: server.Off, AMQPS: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- yard.Run(ctx) }()
	select {
	case err := <-ended: // a port is in use, say
		panic(err)
	case <-yard.Started():
	}
	return yard.Addresses()["http"], func() {
		cancel()
		<-ended
		os.RemoveAll(dir)
	}
}
