package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

func pulled(s *topics.Settings) { s.Webhook, s.Pull = nil, &topics.Pull{} }

// receive gets events, and fails the test if it cannot.
func (y *yard) receive(id string, most int, wait time.Duration) []Received {
	y.t.Helper()
	got, err := y.service.Receive(y.t.Context(), id, most, wait)
	testkit.Must(y.t, err)
	return got
}

func (y *yard) settle(id string, how Settlement, delay time.Duration, tokens ...string) {
	y.t.Helper()
	settled, err := y.service.Settle(y.t.Context(), id, how, delay, tokens)
	testkit.Must(y.t, err)
	for _, s := range settled {
		testkit.Check(y.t, s.Err, "%s", s.Token)
	}
}

func idsOf(got []Received) (ids []string) {
	for _, r := range got {
		ids = append(ids, eventID(&item{Delivery: pending.Delivery{Form: r.Form, Event: r.Event}}))
	}
	return ids
}

func tokensOf(got []Received) (tokens []string) {
	for _, r := range got {
		tokens = append(tokens, r.Token)
	}
	return tokens
}

func TestReceiveAndAcknowledge(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		y.publish("orders", ids("e", 5)...)
		wait()
		first := y.receive(id, 3, time.Minute)
		rest := y.receive(id, 100, time.Minute)
		if len(first) != 3 || len(rest) != 2 {
			t.Fatalf("received %d and %d, want 3 and 2", len(first), len(rest))
		}
		wantIDs(t, "received", append(idsOf(first), idsOf(rest)...), ids("e", 5))
		if r := first[0]; r.Delivery != 1 || !strings.HasSuffix(r.Topic, "/topics/orders") {
			t.Errorf("received %+v", r)
		}
		testkit.Equal(t, y.stats(id).InFlight, 5, "are in flight")
		y.settle(id, Acknowledge, 0, tokensOf(append(first, rest...))...)
		after(2 * time.Second)
		y.restart()
		wait()
		testkit.Equal(t, len(y.receive(id, 100, 10*time.Minute)), 0, "came again")
	})
}

func TestReceiveWaitsForEvents(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		began := time.Now()
		if got := y.receive(id, 1, 20*time.Second); len(got) != 0 || time.Since(began) != 20*time.Second {
			t.Errorf("received %d after %v, want none after 20s", len(got), time.Since(began))
		}
		time.AfterFunc(5*time.Second, func() { y.publish("orders", "a") })
		began = time.Now()
		if got := y.receive(id, 1, time.Minute); len(got) != 1 || time.Since(began) != 5*time.Second {
			t.Errorf("received %d after %v, want one after 5s", len(got), time.Since(began))
		}
		ctx, cancel := context.WithTimeout(y.t.Context(), time.Second)
		defer cancel()
		testkit.ErrorIs(t, testkit.Err(y.service.Receive(ctx, id, 1, time.Minute)), context.DeadlineExceeded)
	})
}

func TestALockThatExpiresGivesTheEventBack(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		y.publish("orders", "a")
		lost := y.receive(id, 1, time.Minute)
		after(time.Minute - 1)
		testkit.Equal(t, len(y.receive(id, 1, 0)), 0, "received while it was locked")
		after(1)
		again := y.receive(id, 1, time.Minute)
		if len(again) != 1 || again[0].Delivery != 2 || again[0].Token == lost[0].Token {
			t.Fatalf("received %+v, want the same event for the second time", again)
		}
		settled, err := y.service.Settle(y.t.Context(), id, Acknowledge, 0, []string{lost[0].Token, "rubbish", again[0].Token})
		testkit.Must(t, err)
		if !errors.Is(settled[0].Err, ErrLockLost) || !errors.Is(settled[1].Err, ErrToken) || settled[2].Err != nil {
			t.Errorf("settled %+v", settled)
		}
		y.wantStats(id, func(st Stats) bool { return st.Delivered == 1 && st.InFlight == 0 })
	})
}

func TestLocksCanBeRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		y.publish("orders", "a")
		got := y.receive(id, 1, time.Minute)
		for range 5 {
			after(50 * time.Second)
			y.settle(id, Renew, 0, got[0].Token)
		}
		y.settle(id, Acknowledge, 0, got[0].Token)
		testkit.Equal(t, len(y.receive(id, 1, time.Hour)), 0, "received again")
	})
}

// The count of deliveries survives a crash once a delivery has ended.
func TestTooManyDeliveriesAreADeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled, func(s *topics.Settings) { s.Pull.MaxDeliveries = 3 })
		y.publish("orders", "a")
		for n := 1; n <= 3; n++ {
			got := y.receive(id, 1, time.Hour)
			if len(got) != 1 || got[0].Delivery != n {
				t.Fatalf("received %+v, want delivery %d", got, n)
			}
			switch n {
			case 1:
				after(time.Minute)
			case 2:
				y.settle(id, Release, 0, got[0].Token)
			case 3:
				y.settle(id, Release, time.Hour, got[0].Token)
			}
			after(2 * time.Second)
			y.restart()
			wait()
		}
		y.wantLetter(retry.ReasonAttempts, 3)
	})
}

func TestReleaseAfterADelay(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		y.publish("orders", "a")
		got := y.receive(id, 1, time.Minute)
		y.settle(id, Release, 10*time.Minute, got[0].Token)
		began := time.Now()
		if got = y.receive(id, 1, time.Hour); len(got) != 1 || time.Since(began) != 10*time.Minute || got[0].Delivery != 2 {
			t.Errorf("received %+v after %v, want it after ten minutes", got, time.Since(began))
		}
	})
}

func TestRejectedEventsAreDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled)
		y.publish("orders", "a", "b")
		got := y.receive(id, 2, time.Minute)
		y.settle(id, Reject, 0, got[0].Token)
		wantIDs(t, "dead", y.dead.ids(retry.ReasonRefused), idsOf(got[:1]))
		y.dead.refuses(errors.New("the test wants it so"))
		if _, err := y.service.Settle(y.t.Context(), id, Reject, 0, []string{got[1].Token}); err == nil {
			t.Error("an event was rejected though it could not be kept")
		}
		y.dead.refuses(nil)
		y.settle(id, Reject, 0, got[1].Token)
		wantIDs(t, "dead", y.dead.ids(retry.ReasonRefused), idsOf(got))
	})
}

// G6
func TestTimeToLiveOfEventsThatNobodyReceives(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("puller", pulled, func(s *topics.Settings) { s.Retry.TimeToLive = 10 * time.Minute })
		y.publish("orders", ids("e", 2000)...)
		after(time.Minute)
		y.wantNoMemory("in use while nobody receives")
		got := y.receive(id, 3, time.Minute) // the others leave memory again
		y.settle(id, Acknowledge, 0, tokensOf(got[:1])...)
		after(10 * time.Minute)
		wantIDs(t, "dead", append(y.dead.ids(retry.ReasonAge), idsOf(got[:1])...), ids("e", 2000))
		y.wantStats(id, func(st Stats) bool { return st.DeadLettered[retry.ReasonAge] == 1999 && st.Behind+st.Parked == 0 })
	})
}

func TestOnlyPullSubscriptionsAreReceivedFrom(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("pushed")
		testkit.ErrorIs(t, testkit.Err(y.service.Receive(y.t.Context(), id, 1, time.Minute)), ErrNotPull)
		testkit.ErrorIs(t, testkit.Err(y.service.Settle(y.t.Context(), id, Acknowledge, 0, nil)), ErrNotPull)
		testkit.ErrorIs(t, testkit.Err(y.service.Receive(y.t.Context(), "nobody", 1, time.Minute)), ErrNotFound)
	})
}

// G1: several receivers that lose locks, release and crash with the yard lose no event.
func TestPullersGetEverything(t *testing.T) {
	for seed := range 10 {
		bubble(t, func(t *testing.T, y *yard) {
			y.reconfigure(func(c *Config) { c.QueueEvents = 9 })
			y.topic("orders")
			id := y.subscribe("orders", "puller", pulled, func(s *topics.Settings) { s.Pull.Lock = 5 * time.Second })
			dice := rand.New(rand.NewPCG(uint64(seed), 3))
			wait()
			all := ids("e", 150)
			var acknowledged []string
			for batch := range slices.Chunk(all, 10) {
				y.publish("orders", batch...)
				for range dice.IntN(4) {
					got := y.receive(id, 1+dice.IntN(8), time.Duration(dice.IntN(3))*time.Second)
					for _, r := range got {
						switch dice.IntN(6) {
						case 0:
							y.settle(id, Release, time.Duration(dice.IntN(2))*10*time.Second, r.Token)
						case 1: // forgotten
						default:
							y.settle(id, Acknowledge, 0, r.Token)
							acknowledged = append(acknowledged, idsOf([]Received{r})...)
						}
					}
				}
				if dice.IntN(4) == 0 {
					y.restart()
					wait()
				}
			}
			for {
				got := y.receive(id, 100, time.Minute)
				if len(got) == 0 {
					break
				}
				y.settle(id, Acknowledge, 0, tokensOf(got)...)
				acknowledged = append(acknowledged, idsOf(got)...)
			}
			wantIDs(t, "acknowledged", append(acknowledged, y.dead.ids("")...), all)
		})
	}
}

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
