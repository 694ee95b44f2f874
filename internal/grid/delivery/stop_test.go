package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
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
		testkit.Equal(t, time.Since(began), 3*time.Second, "stopping took")
		testkit.Equal(t, len(y.sender.delivered("")), 16, "were delivered")
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
		testkit.Equal(t, time.Since(began), 5*time.Second, "stopping took")
		y.sender.always(ok())
		y.start()
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 30))
		for _, d := range y.sender.all("") {
			testkit.Equal(t, d.attempts[0], 0, "being cancelled used an attempt: %+v", d)
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
		testkit.Equal(t, len(drops), 1, "requests")
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
