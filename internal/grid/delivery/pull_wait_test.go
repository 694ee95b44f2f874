package delivery

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Receivers who may hold no more wait quietly: they do not wake each other.
func TestReceiversWaitWhenTooMuchIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", pulled)
		l := y.lane(id)
		y.publish("orders", ids("e", 5)...)
		held := y.receive(id, 1, time.Second)
		l.mu.Lock()
		for i := range maxHeld - 1 {
			it := *l.pull.held[held[0].Token].item
			it.track, it.body = nil, it.body.share()
			l.s.budget.charge(itemBytes)
			l.memory.bytes += it.bytes()
			l.pull.hold(hold{fmt.Sprint("fake", i), &it, time.Now().Add(time.Hour)})
		}
		l.mu.Unlock()
		ended := make(chan []Received, 2)
		for range 2 {
			go func() { ended <- y.receive(id, 10, 10*time.Second) }()
		}
		after(5 * time.Second) // never comes where they keep each other busy
		y.settle(id, Acknowledge, 0, held[0].Token)
		after(10 * time.Second)
		if n := len(<-ended) + len(<-ended); n == 0 {
			t.Error("nothing was received once there was room")
		}
	})
}

// A subscription that is pushed from now on gives its receivers nothing more.
func TestAReceiverHearsThatItsSubscriptionIsPushed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", pulled)
		ended := make(chan error, 1)
		go func() {
			got, err := y.service.Receive(t.Context(), id, 10, time.Minute)
			if len(got) > 0 {
				t.Errorf("received %v", idsOf(got))
			}
			ended <- err
		}()
		wait()
		y.change("orders", "receiver", func(s *topics.Settings) {
			s.Pull, s.Webhook = nil, &egress.Endpoint{URL: "https://receiver.example"}
		})
		wait()
		y.publish("orders", ids("e", 40)...)
		wait()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrNotPull) {
				t.Errorf("receiving ended with %v, want ErrNotPull", err)
			}
		default:
			t.Error("the receiver still waits")
		}
		wantIDs(t, "pushed", y.sender.delivered("receiver"), ids("e", 40))
	})
}
