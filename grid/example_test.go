package grid_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/eventyard/eventyard/grid"
)

// Publish an event, and take its delivery. Here the publisher talks to the receiver itself,
// which understands a publication as it does a delivery; a yard or Azure Event Grid stands in
// between, else.
func Example() {
	hook, err := grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
		for _, d := range batch {
			fmt.Println(d.Event.Type, d.Event.Subject, string(d.Event.Data))
		}
		return nil
	}, grid.HandlerConfig{})
	if err != nil {
		panic(err)
	}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()

	topic, err := grid.NewClient(grid.Config{Endpoint: receiver.URL, Schema: grid.CloudEvents, Source: "/shop"})
	if err != nil {
		panic(err)
	}
	placed, err := grid.JSON("order.placed", "orders/42", map[string]any{"total": 1999})
	if err != nil {
		panic(err)
	}
	if err := topic.Publish(context.Background(), placed); err != nil {
		panic(err)
	}
	// Output: order.placed orders/42 {"total":1999}
}

// Decide by the error that the function returns what becomes of a delivery.
func ExampleNewHandler() {
	hook, err := grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
		switch batch[0].Event.Subject {
		case "orders/42":
			return nil // done: 200
		case "orders/43":
			return grid.RetryAfter(2*time.Minute, nil) // not now: 503
		case "orders/44":
			return grid.Reject(errors.New("no such order")) // never again: 400
		}
		return errors.New("the mail server is down") // as the subscription's schedule has it: 500
	}, grid.HandlerConfig{OnError: func(error) {}})
	if err != nil {
		panic(err)
	}
	for _, subject := range []string{"orders/42", "orders/43", "orders/44", "orders/45"} {
		r := httptest.NewRequest(http.MethodPost, "/hook", nil)
		r.Header = http.Header{
			"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/shop"}, "Ce-Type": {"order.placed"}, "Ce-Subject": {subject},
		}
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 503 "120"
	// 400 ""
	// 500 ""
}

// Give events ids that are the same whenever they are published, so that receivers know repeats.
func ExampleContentID() {
	first, _ := grid.JSON("order.placed", "orders/42", map[string]any{"total": 1999})
	again, _ := grid.JSON("order.placed", "orders/42", map[string]any{"total": 1999})
	other, _ := grid.JSON("order.placed", "orders/43", map[string]any{"total": 1999})
	fmt.Println(grid.ContentID(first) == grid.ContentID(again), grid.ContentID(first) == grid.ContentID(other))
	// Output: true false
}

// Tell errors apart.
func ExampleClient_Publish() {
	topic := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":"Unauthorized","message":"The key is not this topic's."}}`)
	}))
	defer topic.Close()
	client, err := grid.NewClient(grid.Config{Endpoint: topic.URL + "/topics/orders/api/events", Key: "wrong"})
	if err != nil {
		panic(err)
	}
	err = client.Publish(context.Background(), grid.Event{Type: "order.placed"})
	answer := (*grid.CallError)(nil)
	fmt.Println(errors.Is(err, grid.ErrUnauthorized), errors.As(err, &answer))
	fmt.Println(answer)
	// Output:
	// true true
	// status 401 Unauthorized: The key is not this topic's: check that the key, signature or token is this topic's and not expired
}

// Ask for events, and say what became of each.
func ExamplePullClient() {
	namespace := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/topics/orders/eventsubscriptions/billing:receive" {
			_, _ = io.WriteString(w, `{"value":[{"brokerProperties":{"lockToken":"L1","deliveryCount":1},
				"event":{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","data":{"total":1999}}}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"succeededLockTokens":["L1"],"failedLockTokens":[]}`)
	}))
	defer namespace.Close()
	ctx := context.Background()

	queue, err := grid.NewPullClient(grid.PullConfig{Endpoint: namespace.URL, Topic: "orders", Subscription: "billing", Key: "…"})
	if err != nil {
		panic(err)
	}
	received, err := queue.Receive(ctx, grid.ReceiveConfig{MaxEvents: 50, MaxWait: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	for _, r := range received {
		var order struct{ Total int }
		if err := r.Event.Unmarshal(&order); err != nil {
			_ = queue.Reject(ctx, r.Lock) // it will never be readable
			continue
		}
		fmt.Println(r.Event.Type, order.Total, queue.Acknowledge(ctx, r.Lock))
	}
	// Output: order.placed 1999 <nil>
}
