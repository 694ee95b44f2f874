package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
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

// V5: who comes into a group and leaves it is noted once, in each hub that it reads, by its id; a generation of the same
// members is no news, nor are those whom another node finds there; of very many it is noted how many they are.
func TestWhoComesAndGoesIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 2)
		y.Hub(t, "bills", 1)
		var mu sync.Mutex
		var noted []string
		notes := func(c *Config) {
			c.Notes = func(_ context.Context, e activity.Entry) {
				mu.Lock()
				defer mu.Unlock()
				noted = append(noted, string(e.Kind)+" "+e.Object+": "+e.Detail)
			}
		}
		wantNoted := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(noted)
			testkit.Slices(t, noted, want, "noted")
			noted = nil
		}
		c, stop := y.start(notes)
		one := alone(t, c, "readers", "orders", "bills")
		came := func(what, hub, id string) string {
			return "instance." + what + " hubs/" + hub + "/kafka-groups/readers/" + activity.Path("instances", id) + ": a member of a Kafka group, by client "
		}
		synctest.Wait()
		mu.Lock()
		for i, n := range noted { // what tests call their client is no matter
			noted[i], _, _ = strings.Cut(n, "client ")
			noted[i] += "client "
		}
		mu.Unlock()
		wantNoted(came("came", "bills", one.Member), came("came", "orders", one.Member))
		store(t, c, "readers", as(one), y.partition("orders", 0), 1)
		again := testkit.Value(c.Join(t.Context(), "readers", wants(one.Member, "orders", "bills"), anything))(t)
		testkit.Must(t, testkit.Err(c.Sync(t.Context(), "readers", classic.Sync{Member: again.Member, Generation: again.Generation, Assignments: map[string][]byte{again.Member: []byte("less")}}, anything)))
		wantNoted()
		stop()
		c, _ = y.start(notes)
		testkit.Must(t, beat(t.Context(), c, "readers", again))
		wantNoted()
		testkit.Must(t, testkit.Err(c.Leave(t.Context(), "readers", []classic.Leaver{{Member: again.Member}}, anything)))
		synctest.Wait()
		mu.Lock()
		testkit.Equal(t, len(noted), 1, "notes of a member that left, in the hub of which offsets are kept")
		testkit.That(t, strings.HasPrefix(noted[0], "instance.went hubs/orders/kafka-groups/readers/instances/"), "noted is %s", noted[0])
		noted = nil
		mu.Unlock()
		many := entry{Classic: &classic.Stored{}}
		for i := range 2 * membersNoted {
			many.Classic.Members = append(many.Classic.Members, classic.Member{ID: fmt.Sprint("m", i)})
		}
		c.cfg.noteMembers("readers", entry{}, many, []string{"orders"})
		wantNoted("instance.came hubs/orders/kafka-groups/readers: 16 members of a Kafka group")
	})
}
