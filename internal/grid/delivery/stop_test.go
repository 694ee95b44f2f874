package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/webhook"
)

func TestStoppingLetsRequestsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.says(func(context.Context, drop) webhook.Result {
			time.Sleep(4 * time.Second)
			return ok()
		})
		y.publish("orders", ids("e", 30)...)
		after(time.Second)
		began := time.Now()
		y.stop()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stopping took %v, want 3s", took)
		}
		if n := len(y.sender.delivered("")); n != 16 {
			t.Errorf("%d were delivered, want the 16 that were under way", n)
		}
		y.start()
		after(20 * time.Second)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		if n := len(y.sender.delivered("")); n != 30 {
			t.Errorf("%d deliveries of 30 events: what ended while stopping was repeated", n)
		}
	})
}

func TestStoppingCancelsWhatTakesTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.says(func(ctx context.Context, _ drop) webhook.Result {
			<-ctx.Done()
			return outcome(retry.Canceled)
		})
		y.publish("orders", ids("e", 30)...)
		wait()
		began := time.Now()
		y.stop()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("stopping took %v, want 5s", took)
		}
		y.sender.always(ok())
		y.start()
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		for _, d := range y.sender.all("") {
			if d.attempts[0] != 0 {
				t.Errorf("being cancelled used an attempt: %+v", d)
			}
		}
	})
}

// What fails while the yard stops is stored, or comes again.
func TestFailuresWhileStoppingAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver")
		y.sender.says(func(context.Context, drop) webhook.Result {
			time.Sleep(2 * time.Second)
			return status(500)
		})
		y.publish("orders", "a")
		after(time.Second)
		y.stop()
		y.sender.always(ok())
		y.start()
		after(9 * time.Second)
		drops := y.sender.all("")
		if len(drops) != 1 {
			t.Errorf("%d requests, want the retry to wait", len(drops))
		}
		after(time.Second)
		if drops = y.sender.all(""); len(drops) != 2 || drops[1].attempts[0] != 1 {
			t.Errorf("requests %+v, want a second one", drops)
		}
	})
}

// Started and stopped in a storm.
func TestStartAndStopStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.topic("orders")
		y.subscribe("orders", "receiver")
		y.subscribe("orders", "puller", pulled)
		for i := range 50 {
			y.publish("orders", ids(string(rune('A'+i)), 3)...)
			y.start()
			if i%3 == 0 {
				wait()
			}
			y.stop()
		}
		y.start()
		after(time.Minute)
		if n := len(y.sender.delivered("receiver")); n < 150 {
			t.Errorf("%d of 150 were delivered", n)
		}
		y.stop()
	})
}
