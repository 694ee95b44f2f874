package groups

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: what operators change of a group is noted in each hub that it is about, and what its consumers do is not.
func TestWhatIsNotedOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 2)
		y.Hub(t, "bills", 1)
		var noted []string
		c, _ := y.start(func(c *Config) {
			c.Notes = func(_ context.Context, e activity.Entry) {
				noted = append(noted, string(e.Kind)+" "+e.Object+": "+e.Detail)
			}
		})
		wantNoted := func(want ...string) {
			t.Helper()
			slices.Sort(noted)
			testkit.Slices(t, noted, want, "noted")
			noted = nil
		}
		o := Operator{c}
		store(t, c, "night/readers", nobody, y.partition("orders", 0), 1)
		store(t, c, "night/readers", nobody, y.partition("bills", 0), 1)
		wantNoted()
		testkit.Must(t, o.SetOffsets(t.Context(), "night/readers", "orders", map[int32]int64{1: 5}))
		wantNoted("checkpoint.moved hubs/orders/kafka-groups/night%2Freaders: partition 1 to offset 5")
		testkit.Must(t, o.SetOffsets(t.Context(), "night/readers", "orders", map[int32]int64{0: 3, 1: 5}))
		wantNoted("checkpoint.moved hubs/orders/kafka-groups/night%2Freaders: 2 partitions")
		testkit.Must(t, testkit.Err(c.DeleteOffsets(t.Context(), "night/readers", []Partition{y.partition("orders", 0)})))
		wantNoted("checkpoint.forgotten hubs/orders/kafka-groups/night%2Freaders: partition 0")
		testkit.ErrorIs(t, o.Delete(t.Context(), "night/readers", func([]string) error { return ErrRights }), ErrRights)
		wantNoted()
		testkit.Must(t, o.Delete(t.Context(), "night/readers", anybody))
		wantNoted("group.deleted hubs/bills/kafka-groups/night%2Freaders: a Kafka group", "group.deleted hubs/orders/kafka-groups/night%2Freaders: a Kafka group")
		store(t, c, "night/readers", nobody, y.partition("bills", 0), 1)
		testkit.Must(t, o.Forget(t.Context(), "night/readers", "bills"))
		wantNoted("checkpoint.forgotten hubs/bills/kafka-groups/night%2Freaders: partition 0")
	})
}
