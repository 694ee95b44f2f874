// Command worker shares the partitions of a hub with the other workers of its group and prints
// what it receives. Start it several times, kill some, and watch the partitions move:
//
//	eventyard hub create homes --partitions 16
//	go run ./examples/worker -hub homes            # in several shells
//	eventyard group show homes '$Default' --watch
//	eventyard send homes --count 100000
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// development is valid for every yard on loopback at its default port.
const development = "Endpoint=sb://127.0.0.1/;SharedAccessKeyName=RootManageSharedAccessKey;" +
	"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"

func main() {
	connection := flag.String("connection-string", os.Getenv("EVENTYARD_CONNECTION_STRING"),
		"of a yard or an Event Hubs namespace, or @FILE with one in it; $EVENTYARD_CONNECTION_STRING, or a yard on this machine")
	name := flag.String("hub", "homes", "the hub to read")
	group := flag.String("group", "$Default", "the consumer group, which has to exist")
	flag.Parse()
	// SIGTERM stops containers; ending ctx hands the partitions over.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := work(ctx, *connection, *name, *group); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context, connection, name, group string) error {
	client, err := dial(ctx, connection)
	if err != nil {
		return err
	}
	defer client.Close()
	p := processor.New(client.Hub(name), processor.Config{Group: group, OnError: func(err error) { log.Print(err) }})
	log.Printf("working as %s; Ctrl-C hands everything over", p.ID())
	var events atomic.Int64
	err = p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		first := b.Events[0]
		fmt.Printf("partition %s: %d events from %d: %.40q\n", first.Partition, len(b.Events), first.Sequence, first.Body)
		events.Add(int64(len(b.Events)))
		return b.Checkpoint(ctx) // everything up to here is done
	})
	log.Printf("ended after %d events", events.Load())
	return err
}

func dial(ctx context.Context, connection string) (*hub.Client, error) {
	if file, ok := strings.CutPrefix(connection, "@"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		connection = strings.TrimSpace(string(text))
	}
	connection = cmp.Or(connection, development)
	client, err := hub.Dial(ctx, connection, hub.Config{})
	if err != nil {
		return nil, fmt.Errorf("%w\n  is the yard elsewhere? give what eventyard connection-string prints with -connection-string", err)
	}
	return client, nil
}
