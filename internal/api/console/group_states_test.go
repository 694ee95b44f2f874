package console

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// P6, H6: what is odd about a partition is said in words, whoever reads it, and for how long that has been so.
func TestSmallStatesOfPartitions(t *testing.T) {
	lease := admin.OwnedPartition{Partition: "0", Owner: "one", Alive: true, Epoch: 11, Renewed: apiTime(time.Second)}
	with := func(change func(*admin.OwnedPartition)) admin.OwnedPartition {
		p := lease
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		p    admin.OwnedPartition
		left time.Time
		want rowState
	}{
		"all is well":                  {p: lease},
		"nobody's, with nothing to do": {p: admin.OwnedPartition{Partition: "0"}, want: rowState{"", "", "No instance has it."}},
		"nobody's for a while":         {p: admin.OwnedPartition{Partition: "0", LagEvents: new(int64(3))}, left: before(18 * time.Second), want: rowState{"bad", "for 18 s", "Nobody reads it, and events wait."}},
		"a lease that has run out":     {p: with(func(p *admin.OwnedPartition) { p.Alive, p.Renewed = false, apiTime(72*time.Second) }), want: rowState{"bad", "not seen for 1 min 12 s", "Its owner has not renewed it: any other instance may take it over."}},
		"its own reader":               {p: with(func(p *admin.OwnedPartition) { p.Readers = []admin.Reader{{Name: "one", Epoch: new(int64(11))}} })},
		"a reader with a higher epoch": {p: with(func(p *admin.OwnedPartition) { p.Readers = []admin.Reader{{Name: "old", Epoch: new(int64(40))}} }),
			want: rowState{"bad", "kept out by epoch 40", "A reader with epoch 40 is connected, and the lease has 11: its owner is refused until that one leaves. Release disconnects it."}},
	} {
		testkit.Equal(t, stateOf(c.p, nil, c.left, noon), c.want, name)
	}
}

// H6, P6: readers of other libraries are named, have a lane, and are taken for no missing owner; a lag that nobody
// knows is a question mark.
func TestForeignReadersOfAGroup(t *testing.T) {
	answers, o := fixed(), fixedOwnership()
	for i := range o.Partitions {
		o.Partitions[i] = admin.OwnedPartition{Partition: o.Partitions[i].Partition, Last: 10, Readers: []admin.Reader{{Name: "java-7", Epoch: new(int64(0))}}}
	}
	o.Partitions[2].Readers = []admin.Reader{{}}
	o.Instances = nil
	answers["GET /api/v1/hubs/{hub}/groups/{group}/ownership"] = o
	_, _, h := newFixture(answers)
	page := get(h, base+"hubs/sensors/groups/aggregator").Body.String()
	for _, says := range []string{`data-instance="java-7"`, "of another library", namelessReader, "reads without an epoch", lagMeans, "2 instances alive, each partition has an owner."} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
	testkit.That(t, !strings.Contains(page, "No instance reads") && !strings.Contains(page, "beside the owner"), "the page misses who is there")
}

// P6: a lane says what it hands over, what comes, and what one that is gone had; a group that nobody reads says since
// when.
func TestSmallStatesOfInstances(t *testing.T) {
	answers, o := fixed(), fixedOwnership()
	o.Partitions[1].Readers = []admin.Reader{{Name: "old", Epoch: new(int64(7))}}
	answers["GET /api/v1/hubs/{hub}/groups/{group}/ownership"] = o
	_, _, h := newFixture(answers)
	page := get(h, base+"hubs/sensors/groups/aggregator").Body.String()
	for _, says := range []string{"hands over 0", "1 comes", "had 1; taken over", "kept out by epoch 7", "keeps the owner out of partition 1.", "Add a worker"} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
	o.Instances = nil
	for i := range o.Partitions {
		o.Partitions[i].Owner, o.Partitions[i].Readers = "", nil
	}
	answers["GET /api/v1/hubs/{hub}/groups/{group}/ownership"] = o
	page = get(h, base+"hubs/sensors/groups/aggregator").Body.String()
	testkit.That(t, strings.Contains(page, "No instance reads this group since "), "the page does not say since when")
}

// V4: what is read aloud of a group is the same at each step of a rebalance.
func TestOneRebalanceHasOneState(t *testing.T) {
	states := map[string]bool{}
	for moving := 1; moving <= 16; moving++ {
		states[groupView{Attended: true, Alive: 3, Moving: moving}.sentence()] = true
		states[groupView{Attended: true, Alive: 3, Free: moving}.sentence()] = true
	}
	testkit.Equal(t, len(states), 2, "states")
}
