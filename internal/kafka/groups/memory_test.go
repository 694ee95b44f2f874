package groups

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: whatever makes groups take more memory is refused when they take as much as they may, and nothing else is: not
// the second step of a join alone, but neither a member that says what it has said before.
func TestTheMemoryOfMembersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		const limit = 16 << 10
		c, _ := y.start(func(c *Config) { c.MaxBytes = limit })
		large := func(id string) classic.Join {
			j := wants(id, "orders")
			j.Protocols[0].Metadata = append(j.Protocols[0].Metadata, make([]byte, limit)...)
			return j
		}
		first := wants("", "orders")
		first.TwoSteps = true
		given, err := c.Join(t.Context(), "steps", first, anything)
		testkit.ErrorIs(t, err, member.ErrIDRequired)
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "steps", large(given.Member), anything)), ErrBusy, "a second step")
		joined := testkit.Value(c.Join(t.Context(), "g", wants("", "orders"), anything))(t)
		assign := classic.Sync{Member: joined.Member, Generation: joined.Generation, Assignments: map[string][]byte{joined.Member: make([]byte, limit)}}
		testkit.ErrorIs(t, testkit.Err(c.Sync(t.Context(), "g", assign, anything)), ErrBusy, "assignments")
		assign.Assignments[joined.Member] = []byte("all")
		testkit.Must(t, testkit.Err(c.Sync(t.Context(), "g", assign, anything)))
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", large(joined.Member), anything)), ErrBusy, "a member that says more")
		names := func(n int) (all []string) {
			for range n {
				all = append(all, "orders"+member.NewID(""))
			}
			return all
		}
		h := consumer.Heartbeat{Member: "a", RebalanceTimeout: 0, Names: []string{"orders"}}
		answer := testkit.Value(c.ConsumerHeartbeat(t.Context(), "new", h, anything))(t)
		h.Epoch, h.Names = answer.Epoch, names(limit/32)
		testkit.ErrorIs(t, testkit.Err(c.ConsumerHeartbeat(t.Context(), "new", h, anything)), ErrBusy, "a heartbeat with names")
		c.mu.Lock()
		testkit.That(t, c.bytes <= limit && c.bytes > 0, "%d bytes are in use", c.bytes)
		c.cfg.MaxBytes = 1
		c.mu.Unlock()
		testkit.Must(t, testkit.Err(c.Join(t.Context(), "g", wants(joined.Member, "orders"), anything)), "a member that says what it has said")
		h.Names = []string{"orders"}
		testkit.Must(t, testkit.Err(c.ConsumerHeartbeat(t.Context(), "new", h, anything)))
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "other", wants("", "orders"), anything)), ErrBusy)
	})
}

// K6: the members of one account's groups have half of that memory, also after a restart and whoever had the groups
// loaded; the other half stays for others.
func TestOneAccountHasAShareOfTheMemoryOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		const limit, large = 96 << 10, 13 << 10 // of which, as it is counted, two are less than half, and three are more
		bounded := func(c *Config) { c.MaxBytes = limit }
		c, stop := y.start(bounded)
		join := func(account, group string) error {
			j := wants("", "orders")
			j.Protocols[0].Metadata = append(j.Protocols[0].Metadata, make([]byte, large)...)
			return testkit.Err(c.Join(For(t.Context(), account), group, j, anything))
		}
		testkit.Must(t, join("one", "a"))
		testkit.Must(t, join("one", "b"))
		refused := func(when string) {
			t.Helper()
			testkit.ErrorIs(t, join("one", "c"), ErrBusy, "by Join, %s", when)
			names := []string{}
			for range large / 16 {
				names = append(names, "orders"+member.NewID(""))
			}
			h := consumer.Heartbeat{Member: "m", Names: names}
			testkit.ErrorIs(t, testkit.Err(c.ConsumerHeartbeat(For(t.Context(), "one"), "d", h, anything)), ErrBusy, "by a heartbeat, %s", when)
		}
		refused("at first")
		stop()
		c, _ = y.start(bounded)
		synctest.Wait()
		refused("after a restart")
		testkit.Must(t, join("other", "e"))
		testkit.Must(t, testkit.Err(c.Join(For(t.Context(), "one"), "small", wants("", "orders"), anything)), "there is some room")
		c.mu.Lock()
		sums := map[string]int{}
		for _, g := range c.all {
			if g.bytes > 0 {
				sums[g.payer] += g.bytes
			}
		}
		testkit.Equal(t, fmt.Sprint(c.bytesBy), fmt.Sprint(sums), "bytes by account")
		testkit.That(t, sums["one"] > 2*large && sums["other"] > large, "%v", sums)
		c.mu.Unlock()
	})
}
