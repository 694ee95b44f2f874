// Package grid is for programs that publish to grid topics and that receive what is delivered
// from them: a yard's, or Azure Event Grid's, which speak the same protocol.
//
// A publisher:
//
//	topic, err := grid.NewClient(grid.Config{
//		Endpoint: "http://localhost:8080/topics/orders/api/events",
//		Key:      key, // key1 or key2 of the topic
//	})
//	placed, err := grid.JSON("order.placed", "orders/42", order)
//	err = topic.Publish(ctx, placed) // nil means durable
//
// A receiver of webhooks, which answers the handshakes too:
//
//	hook, err := grid.NewHandler(func(ctx context.Context, batch []grid.Delivery) error {
//		for _, d := range batch {
//			if err := mail(ctx, d.Event); err != nil {
//				return err // the whole batch comes again
//			}
//		}
//		return nil
//	}, grid.HandlerConfig{})
//	http.Handle("/hook", hook)
//
// A receiver that asks for events itself, and so needs no address of its own:
//
//	queue, err := grid.NewPullClient(grid.PullConfig{
//		Endpoint: "http://localhost:8080", Topic: "orders", Subscription: "billing", Key: key,
//	})
//	received, err := queue.Receive(ctx, grid.ReceiveConfig{MaxEvents: 50})
//	for _, r := range received {
//		if err := bill(ctx, r.Event); err != nil {
//			continue // it comes again when its lock is over
//		}
//		if err := queue.Acknowledge(ctx, r.Lock); err != nil {
//			return err
//		}
//	}
//
// # What is promised
//
// Every event reaches every matching subscription at least once; order is not promised. So a
// receiver sees repeats, and knows them by Event.ID. A publisher keeps from making more of them:
// all attempts of one Publish carry the same ids, and where a program may publish the same
// event in another call as well (it crashed, it got an error and does not know) it sets
// Event.ID itself, or Config.NewID to ContentID.
package grid
