// Command function handles the events of a hub with retries, a hub for poison events and a circuit
// breaker that all its instances share. An event is text: "bad" always fails, "panic" panics, and
// while the file down exists every event fails:
//
//	eventyard hub create shop --partitions 4
//	eventyard group create shop receipts
//	eventyard hub create receipts-poison --partitions 1 --retention-age 0
//	go run ./examples/function                     # in several shells
//	eventyard send shop one two bad three panic
//	eventyard poison list receipts-poison
//	touch down; eventyard send shop --count 100    # the circuit opens in all of them
//	eventyard circuit show receipts
//	rm down; eventyard circuit close receipts      # they resume where they stopped
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
)

// development is valid for every yard on loopback at its default port.
const development = "Endpoint=sb://127.0.0.1/;SharedAccessKeyName=RootManageSharedAccessKey;" +
	"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"

func main() {
	connection := flag.String("connection-string", os.Getenv("EVENTYARD_CONNECTION_STRING"),
		"of a yard or an Event Hubs namespace; $EVENTYARD_CONNECTION_STRING, or a yard on this machine")
	name := flag.String("hub", "shop", "the hub to read")
	group := flag.String("group", "receipts", "the consumer group, which has to exist")
	flag.Parse()
	// SIGTERM stops containers; ending ctx hands the partitions over.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *connection, *name, *group); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, connection, name, group string) error {
	connection = cmp.Or(connection, development)
	client, err := hub.Dial(ctx, strings.TrimSpace(connection), hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	host := functions.NewHost(client, functions.Config{
		OnError:   func(err error) { log.Print(err) },
		OnCircuit: func(c functions.Circuit) { log.Printf("the circuit of %s is %s: %s", c.Function, c.State, c.Reason) },
	})
	host.Handle("receipts", functions.Each(receipt), functions.Binding{
		Hub: name, Group: group,
		Retry:   functions.Exponential(3, 200*time.Millisecond),
		Breaker: functions.Breaker{Failures: 10, Within: 30 * time.Second},
	})
	return host.Run(ctx)
}

// receipt handles one event. Its id is the same at every attempt: use it to make side effects
// idempotent.
func receipt(ctx context.Context, ev event.Event) error {
	text := string(ev.Body)
	fmt.Printf("%s, attempt %d: %.40q\n", functions.ID(ctx), functions.Attempt(ctx), text)
	if _, err := os.Stat("down"); err == nil {
		return errors.New("what is behind this function is down")
	}
	switch text {
	case "bad":
		return errors.New("nobody can handle this event")
	case "panic":
		panic("a bug")
	}
	return nil
}
