//go:build linux

package interop

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestGridLateAnswer has a receiver answer after its time is over, but well: its event is not sent
// again. The other one answers late and badly: its event is. // G5
func TestGridLateAnswer(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders := y.topic(t, "orders", "eventgrid")
	slow := func(status int) *hook {
		var once sync.Once
		return newHook(t, func(w http.ResponseWriter, r *http.Request, d delivered) {
			once.Do(func() {
				select { // a receiver that takes its time
				case <-time.After(1700 * time.Millisecond):
					w.WriteHeader(status)
				case <-r.Context().Done():
				}
			})
		})
	}
	well, badly := slow(200), slow(500)
	// The second attempt has to be answered in time by a busy machine, too.
	flags := []string{"--timeout", "1s", "--retry-schedule", "4s", "--attempts", "2", "--dead-letter", "yard"}
	y.subscribe(t, "orders", "well", well.URL, flags...)
	y.subscribe(t, "orders", "badly", badly.URL, flags...)
	y.publish(t, orders, "application/json", gridEvents("1"))
	done := func(s admin.Subscription) bool { return s.Stats.Delivered == 1 }
	y.eventuallyShown(t, "badly", done)
	shown := y.eventuallyShown(t, "well", done) // which is counted when its retry falls due
	if n := len(well.all()); n != 1 || shown.Stats.Requests != 1 || shown.DeadLetters.Kept != 0 || shown.Stats.Matched != 1 {
		t.Errorf("%d requests came to the one that answered well; the counts are %+v", n, *shown.Stats)
	}
	if got := badly.all(); len(got) != 2 || got[1].at.Sub(got[0].at) < 4*time.Second {
		t.Errorf("%d requests came to the one that answered badly", len(got))
	}
}

// TestGridProbation has an endpoint fail until it is left alone, and come back by an operator's
// word. Others do not notice. // G7
func TestGridProbation(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders := y.topic(t, "orders", "eventgrid")
	var well atomic.Bool
	ill := newHook(t, func(w http.ResponseWriter, _ *http.Request, _ delivered) {
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	healthy := newHook(t, nil)
	y.subscribe(t, "orders", "ill", ill.URL, "--retry-schedule", "1s", "--concurrency", "1", "--dead-letter", "yard")
	y.subscribe(t, "orders", "healthy", healthy.URL)
	var ids []string
	for i := range 30 {
		ids = append(ids, fmt.Sprint(i))
	}
	y.publish(t, orders, "application/json", gridEvents(ids...))
	shown := y.eventuallyShown(t, "ill", func(s admin.Subscription) bool {
		return s.Stats.Endpoint.State == "probation" && s.Stats.Failed["Busy"] == 10 // which is counted a moment later
	})
	healthy.await(t, len(ids))
	if n := len(ill.all()); n != 10 || shown.Stats.Endpoint.Last != "Busy" || shown.Stats.Endpoint.Until == nil {
		t.Errorf("%d requests came; the endpoint is shown as %+v", n, shown.Stats.Endpoint)
	}
	well.Store(true)
	y.do(t, "subscription", "resume", "ill")
	shown = y.eventuallyShown(t, "ill", func(s admin.Subscription) bool { return s.Stats.Delivered == int64(len(ids)) })
	if shown.Stats.Endpoint.State != "healthy" || shown.DeadLetters.Kept > 0 {
		t.Errorf("it ended as %+v", *shown.Stats)
	}
	// Waiting has used no attempt: each event failed once at most.
	for _, d := range ill.all() {
		if count := d.header.Get("aeg-delivery-count"); count > "1" {
			t.Errorf("an event came with the delivery count %s", count)
		}
	}
}

// TestGridRedrive sends dead letters out again, to the one subscription that they are of, after its
// receiver was mended. // G8
func TestGridRedrive(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders := y.topic(t, "orders", "eventgrid")
	var mended atomic.Bool
	broken := newHook(t, func(w http.ResponseWriter, _ *http.Request, _ delivered) {
		if !mended.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	other := newHook(t, nil)
	y.subscribe(t, "orders", "broken", broken.URL, "--dead-letter", "yard")
	y.subscribe(t, "orders", "other", other.URL)
	y.publish(t, orders, "application/json", gridEvents("1", "2", "3"))
	y.eventuallyShown(t, "broken", func(s admin.Subscription) bool { return s.DeadLetters.Kept == 3 })
	dead := y.dead(t, "broken")
	letter := read[admin.DeadLetter](t, []byte(y.do(t, "dead", "show", "broken", fmt.Sprint(dead[0].Number))))
	if e := read[object](t, letter.Event); e["id"] != dead[0].EventID || fmt.Sprint(e["data"]) != "map[total:42]" || e["topic"] != orders.Resource {
		t.Errorf("the dead letter's event is %s", letter.Event)
	}
	mended.Store(true)
	if dry := ask[admin.Redriven](t, y, "dead", "redrive", "broken", "--dry-run"); dry.Redriven != 3 || len(broken.all()) != 3 {
		t.Errorf("dry: %+v", dry)
	}
	if done := ask[admin.Redriven](t, y, "dead", "redrive", "broken", fmt.Sprint(dead[1].Number)); done.Redriven != 1 {
		t.Errorf("one: %+v", done)
	}
	if got := broken.await(t, 4)[3]; read[[]object](t, got.body)[0]["id"] != dead[1].EventID || got.header.Get("aeg-delivery-count") != "0" {
		t.Errorf("what came again is %s, with the delivery count %s", got.body, got.header.Get("aeg-delivery-count"))
	}
	if done := ask[admin.Redriven](t, y, "dead", "redrive", "broken"); done.Redriven != 2 {
		t.Errorf("the rest: %+v", done)
	}
	broken.await(t, 6)
	testkit.Equal(t, len(other.await(t, 3)), 3, "the other subscription")
	y.do(t, "dead", "purge", "broken", "--yes")
	if left := y.dead(t, "broken"); len(left) > 0 {
		t.Errorf("left after a purge: %+v", left)
	}
}
