//go:build linux

package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
	"github.com/eventyard/eventyard/servertest"
)

// setting is where an application runs. It is all that differs.
type setting struct {
	client *hub.Client
	store  processor.Store // nil: the yard's own
}

// TestSameCodeEverywhere runs one application, unchanged, with a yard in its process and with one
// over the network, its checkpoints in the yard, in Azurite, and in the yard's blobs. // P8, P12
func TestSameCodeEverywhere(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(*testing.T) setting{
		"in the process":                                 inProcess,
		"in the process, checkpoints in Azurite":         inProcessWithAzurite,
		"over TCP":                                       overTCP,
		"over WebSockets":                                overWebSockets,
		"over TCP, checkpoints in Azurite":               overTCPWithAzurite,
		"over TCP, checkpoints in the same yard's blobs": overTCPWithBlobs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := where(t)
			useApplication(t, p.client.Hub("orders"), p.store)
		})
	}
}

func inProcess(t *testing.T) setting {
	y := servertest.Start(t)
	y.Hub(t, "orders", 4, "readers")
	return setting{client: y.Dial(t)}
}

func inProcessWithAzurite(t *testing.T) setting {
	p := inProcess(t)
	p.store = inContainer(t, startAzurite(t).Connection())
	return p
}

func ordersYard(t *testing.T) *yard {
	t.Helper()
	return startYard(t, layout{hubs: map[string]int{"orders": 4}})
}

func overTCP(t *testing.T) setting { return setting{client: dialListener(t, ordersYard(t), "amqp")} }

func overWebSockets(t *testing.T) setting {
	return setting{client: dialListener(t, ordersYard(t), "http")}
}

func overTCPWithAzurite(t *testing.T) setting {
	p := overTCP(t)
	p.store = inContainer(t, startAzurite(t).Connection())
	return p
}

func overTCPWithBlobs(t *testing.T) setting {
	y := ordersYard(t)
	return setting{client: dialListener(t, y, "amqp"), store: inContainer(t, y.blobs(t))}
}

func dialListener(t *testing.T, y *yard, listener string) *hub.Client {
	t.Helper()
	to := connection(y.hostPort(t, listener), rootPolicy, "", "UseDevelopmentEmulator=true")
	client, err := hub.Dial(t.Context(), to, hub.Config{WebSockets: listener == "http", Log: quietLog(t)})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func inContainer(t *testing.T, blobs string) processor.Store {
	t.Helper()
	c, err := container.NewClientFromConnectionString(blobs, "checkpoints", nil)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(c.Create(t.Context(), nil)))
	return azblob.New(c, azblob.Config{})
}

// useApplication has two instances of the application count orders, stops them, and has another one
// go on where they stopped.
func useApplication(t *testing.T, orders *hub.Hub, store processor.Store) {
	const first, second = 400, 100
	sendOrders(t, orders, 0, first)
	books := newBooks()
	stop := runInstances(t, books, orders, store, 2)
	books.await(t, first)
	stop()
	sendOrders(t, orders, first, second)
	stop = runInstances(t, books, orders, store, 1)
	books.await(t, first+second)
	stop()
	testkit.Equal(t, books.repeated, 0, "orders came again, though every instance was stopped in good order")
}

func sendOrders(t *testing.T, orders *hub.Hub, from, n int) {
	t.Helper()
	for i := from; i < from+n; i += 10 {
		key := fmt.Sprint("customer-", i%70)
		var events []event.Event
		for j := range 10 {
			ev := event.Text(fmt.Sprintf("%s order %06d", key, i+j))
			ev.Key = key
			events = append(events, ev)
		}
		testkit.Must(t, orders.Send(t.Context(), events...))
	}
}

// runInstances runs instances of the application until stop is called.
func runInstances(t *testing.T, b *books, orders *hub.Hub, store processor.Store, n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for range n {
		p := processor.New(orders, processor.Config{
			Group: "readers", Store: store, Lease: 10 * time.Second, Renew: time.Second, Log: quietLog(t),
		})
		running.Go(func() {
			testkit.Check(t, p.Run(ctx, b.enter), "run")
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// books is the application: it enters each order. Nothing in it knows where the orders come from,
// nor where checkpoints go.
type books struct {
	mu       sync.Mutex
	last     map[string]string // order by customer; guarded by mu
	orders   map[string]bool   // guarded by mu
	repeated int               // guarded by mu
	grown    *sync.Cond
	disorder []string // guarded by mu
}

func newBooks() *books {
	b := &books{last: map[string]string{}, orders: map[string]bool{}}
	b.grown = sync.NewCond(&b.mu)
	return b
}

// enter is the handler.
func (b *books) enter(ctx context.Context, batch *processor.Batch) error {
	b.mu.Lock()
	for _, ev := range batch.Events {
		b.enterLocked(ev.Key, string(ev.Body))
	}
	b.grown.Broadcast()
	b.mu.Unlock()
	return batch.Checkpoint(ctx)
}

func (b *books) enterLocked(customer, order string) {
	switch {
	case b.orders[order]:
		b.repeated++
	case order < b.last[customer]:
		b.disorder = append(b.disorder, order+" after "+b.last[customer])
	}
	b.orders[order], b.last[customer] = true, order
}

// await waits until so many orders are entered; the test's own time is the bound.
func (b *books) await(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), moveTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.grown.Broadcast()
	})()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.orders) < n && ctx.Err() == nil {
		b.grown.Wait()
	}
	if len(b.orders) != n || len(b.disorder) > 0 {
		t.Fatalf("%d of %d orders; out of order: %v", len(b.orders), n, b.disorder)
	}
}
