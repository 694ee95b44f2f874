package groups

import (
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
