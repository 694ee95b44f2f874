package console

import (
	"context"
	"os"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// P6, H6, V4: the small states of a group come and go on its page: a reader of another library, with a lag that nobody
// knows; that reader keeping an owner out by its epoch; and no instance any more.
func TestSmallStatesOfAGroup(t *testing.T) {
	y := newYard(t)
	testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, "one"), Partition: "0"})))
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	t.Cleanup(func() { leave(); <-gone })
	orders := y.Dial(t).Hub("orders")
	// An owner that is refused doubles its epoch: it does not come to this one before a slow page has shown it.
	const epoch = 1_000_000_000_000
	go func() {
		defer close(gone)
		for range orders.Read(ctx, hub.ReadConfig{Partition: "0", Group: "billing", Epoch: hub.Exclusive(epoch), Name: "java-7"}) {
		}
	}()
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/hubs/orders/groups/billing")
	p.await("a reader of another library", `document.querySelectorAll('[data-instance="java-7"] .chip').length === 1 && `+contains("of another library"))
	p.await("a lag that is not known", `document.getElementById("p0-lag").textContent === "?"`)
	worker := y.worker(t, "one")
	p.await("an owner that is kept out", contains("kept out by epoch 1,000,000,000,000")+" && "+contains("keeps the owner out of partition 0."))
	checkPages(t, y, "hubs/orders/groups/billing")
	leave()
	p.await("all partitions with their owner", shows("#part-head .badge.good")+` && document.querySelectorAll('[data-instance="one"] .chip').length === 4 && !`+contains("kept out"))
	testkit.Must(t, worker.Process.Signal(os.Interrupt))
	p.await("no instance, and since when", contains("No instance reads this group since"))
}
