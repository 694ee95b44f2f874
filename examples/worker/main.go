// Command worker shares the partitions of a hub with every other worker of its group and
// prints what it gets. Start it several times, kill some, and watch the table move:
//
//	eventyard hub create homes --partitions 16
//	go run ./examples/worker -hub homes            # in several shells
//	eventyard group show homes '$Default' --watch
//	eventyard send homes --count 100000
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

const development = "Endpoint=sb://127.0.0.1/;SharedAccessKeyName=RootManageSharedAccessKey;" +
	"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"

func main() {
	connection := flag.String("connection-string", development, "of the yard, or of an Event Hubs namespace")
	name := flag.String("hub", "homes", "the hub to read")
	group := flag.String("group", "$Default", "the consumer group")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := work(ctx, *connection, *name, *group); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context, connection, name, group string) error {
	client, err := hub.Dial(ctx, connection, hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	p := processor.New(client.Hub(name), processor.Config{
		Group:   group,
		OnError: func(err error) { log.Print(err) },
		OnState: func(s processor.Status) { log.Printf("partition %s: %s", s.Partition, s.State) },
	})
	log.Printf("working as %s; Ctrl-C hands everything over", p.ID())
	return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
		for _, ev := range b.Events {
			fmt.Printf("%s/%d %s\n", ev.Partition, ev.Sequence, ev.Body)
		}
		return b.Checkpoint(ctx) // everything up to here is done
	})
}
