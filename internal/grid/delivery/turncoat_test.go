package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G5: a parked log that cannot be written holds up its own subscription, not what is due for
// others.
func TestAParkedLogInTroubleHoldsUpNoOthersRetries(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "broken")
		y.subscribe("orders", "receiver")
		y.stop()
		y.disk = &fullDisk{prefix: "shelf-" + id}
		y.disk.full.Store(true)
		y.config = func(c *Config) { c.QueueEvents = 5 } // less than is due at once
		y.start()
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if d.sub == "broken" || d.ids[0] == "x" && d.attempts[0] == 0 {
				return outcome(retry.SocketError)
			}
			return ok()
		})
		wait()
		y.publish("orders", ids("e", 40)...)
		after(time.Minute)
		y.publish("orders", "x")
		after(time.Minute)
		wantIDs(t, "the other", y.sender.delivered("receiver"), append(ids("e", 40), "x"))
		y.disk.full.Store(false)
		y.sender.always(ok())
		after(4 * time.Hour)
		wantIDs(t, "the one in trouble", y.sender.delivered("broken"), append(ids("e", 40), "x"))
	})
}

// turncoat is a subscription that becomes everything a subscription can be, while its yard dies
// and comes back and its endpoint and receivers are unreliable.
type turncoat struct {
	*life
	id    string
	sub   string
	acked []string
	holds []Received
	there bool // a neighbour
}

// G1: whatever a subscription is made to be, it gets everything.
func TestATurncoatLosesNothing(t *testing.T) {
	for seed := range max(*seeds/8, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &turncoat{life: newLife(t, uint64(1000+seed)), sub: "turncoat"}
				c.lead()
			})
		})
	}
}

func (c *turncoat) lead() {
	c.topic("orders")
	c.start()
	c.join(c.sub)
	sub, err := c.topics.Find(topics.Source{Topic: "orders"}, c.sub)
	testkit.Must(c.t, err)
	c.id = sub.ID
	for range 60 {
		c.turn()
	}
	c.weather.Store(0)
	c.become(func(s *topics.Settings) { s.Paused = false; c.pushed(s) })
	after(30 * time.Hour)
	wantIDs(c.t, c.sub, slices.Concat(c.sender.delivered(c.sub), c.deadOf(c.sub), c.acked), c.want[c.sub])
	testkit.Equal(c.t, c.service.budget.used.Load(), 0, "bytes are in use at the end")
	if l, err := c.service.lane(c.id); err != nil || l.memory.bytes != 0 || l.sending.busy != 0 || l.sending.starting != 0 || l.sending.inFlight != 0 {
		c.t.Errorf("the lane holds %d bytes, %d workers (%v)", l.memory.bytes, l.sending.busy, err)
	}
	if st := c.stats(c.id); st.Behind+st.Parked != 0 || st.Queued+st.InFlight+len(st.Waiting) != 0 || !st.Oldest.IsZero() {
		c.t.Errorf("something is left: %+v", st)
	}
	if testing.Verbose() {
		c.t.Logf("%d published, %d pushed, %d acknowledged, %d dead", len(c.want[c.sub]), len(c.sender.delivered(c.sub)), len(c.acked), len(c.deadOf(c.sub)))
	}
	c.stop()
}

func (c *turncoat) pushed(s *topics.Settings) {
	s.Pull, s.Webhook = nil, &egress.Endpoint{URL: fmt.Sprintf("https://%d.example", c.dice.IntN(2))}
}

func (c *turncoat) become(change func(*topics.Settings)) { c.change("orders", c.sub, change) }

func (c *turncoat) turn() {
	switch n := c.dice.IntN(13); {
	case n < 4:
		c.step()
	case n == 10: // another filter that lets everything pass
		c.become(func(s *topics.Settings) { s.Filter.EventTypes = [][]string{nil, {"a", "b", "c"}}[c.dice.IntN(2)] })
	case n == 11:
		c.neighbour()
	case n == 12:
		c.setState(c.id, topics.Disabled)
		after(time.Duration(c.dice.IntN(3000)) * time.Millisecond)
		c.publishSome(1 + c.dice.IntN(30))
		c.setState(c.id, topics.Active)
	case n == 4:
		c.become(func(s *topics.Settings) { s.OrderBy = []string{"", "subject"}[c.dice.IntN(2)]; c.pushed(s) })
	case n == 5:
		c.become(func(s *topics.Settings) {
			s.OrderBy, s.MaxEvents = "", 0
			s.Output, s.Webhook, s.Pull = "", nil, &topics.Pull{Lock: 20 * time.Second, MaxDeliveries: 3}
		})
		for range c.dice.IntN(8) {
			c.consume()
		}
	case n == 6:
		c.become(func(s *topics.Settings) { s.Paused = !s.Paused })
	case n == 7:
		c.become(func(s *topics.Settings) { c.pushed(s); s.MaxEvents = 1 + c.dice.IntN(5) })
	default:
		c.consume()
	}
}

// neighbour comes or goes, so that the index changes.
func (c *turncoat) neighbour() {
	if c.there = !c.there; c.there {
		id := c.subscribe("orders", "neighbour", []func(*topics.Settings){pulled, ordered, batched(3, 0)}[c.dice.IntN(3)])
		c.publishSome(1 + c.dice.IntN(30))
		wait()
		_, _ = c.service.Receive(c.t.Context(), id, 5, time.Second) // held when it goes, if it is one to receive from
		return
	}
	testkit.Must(c.t, c.topics.Delete(c.t.Context(), topics.Source{Topic: "orders"}, "neighbour"))
}

// consume does what receivers do.
func (c *turncoat) consume() {
	got, err := c.service.Receive(c.t.Context(), c.id, 1+c.dice.IntN(20), time.Duration(c.dice.IntN(3000))*time.Millisecond)
	if err != nil {
		return // it is pushed just now, or not there
	}
	c.holds = append(c.holds, got...)
	rand.Shuffle(len(c.holds), func(i, j int) { c.holds[i], c.holds[j] = c.holds[j], c.holds[i] })
	n := c.dice.IntN(len(c.holds) + 1)
	how := []Settlement{Acknowledge, Acknowledge, Release, Reject, Renew}[c.dice.IntN(5)]
	settled, err := c.service.Settle(c.t.Context(), c.id, how, time.Duration(c.dice.IntN(2))*10*time.Second, tokensOf(c.holds[:n]))
	if err != nil {
		return
	}
	for i, s := range settled {
		if s.Err == nil && how == Acknowledge {
			c.acked = append(c.acked, idsOf(c.holds[i:i+1])...)
		}
	}
	c.holds = c.holds[n:]
}
