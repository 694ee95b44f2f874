package delivery

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G7: what becomes of an endpoint's health when another node's is heard of.
func TestNodesAgreeOnProbation(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	aside := func(d time.Duration) retry.Health {
		return retry.Health{Failures: 10, Trips: 1, Until: now.Add(d), Since: now.Add(-time.Hour), Last: retry.Busy}
	}
	failing := retry.Health{Failures: 3, Last: retry.TimedOut}
	for name, c := range map[string]struct{ own, heard, want retry.Health }{
		"well, and it is put aside":             {retry.Health{}, aside(time.Minute), aside(time.Minute)},
		"failing, and it is put aside":          {failing, aside(time.Minute), aside(time.Minute)},
		"well, and a probation was over before": {retry.Health{}, aside(-time.Minute), retry.Health{}},
		"well, and it has ended":                {retry.Health{}, retry.Health{}, retry.Health{}},
		"failing, and it has ended":             {failing, retry.Health{}, failing},
		"aside, and it is prolonged":            {aside(time.Minute), aside(time.Hour), aside(time.Hour)},
		"aside, and it is the same":             {aside(time.Minute), aside(time.Minute), aside(time.Minute)},
		"aside for longer than another":         {aside(time.Hour), aside(time.Minute), aside(time.Hour)},
		"aside, and it has ended":               {aside(time.Minute), retry.Health{}, retry.Health{}},
		"probing, and it is prolonged":          {aside(-time.Minute), aside(time.Minute), aside(time.Minute)},
		"probing, and it has ended":             {aside(-time.Minute), retry.Health{}, retry.Health{}},
	} {
		t.Run(name, func(t *testing.T) { testkit.Equal(t, agree(c.own, c.heard, now), c.want) })
	}
}

// twins makes two subscriptions of one endpoint, which two nodes deliver: of events of type a and b.
func (f *fleet) twins() (a, b string) {
	f.topic("orders")
	ids := map[int]string{}
	for i := 0; ids[0] == "" || ids[1] == ""; i++ {
		kind := []string{"a", "b"}[min(len(ids), 1)]
		name := fmt.Sprint("sub-", kind, i)
		id := f.subscribe("orders", name, func(s *topics.Settings) {
			s.Webhook, s.Filter = &egress.Endpoint{URL: "https://one.example"}, filter.Config{EventTypes: []string{kind}}
		})
		// One that the wrong node would have is not wanted.
		if n := shards.Of(id) % 2; ids[n] == "" && (n == 0) == (kind == "a") {
			ids[n] = id
		} else {
			f.unsubscribe("orders", name)
		}
	}
	f.spread()
	return ids[0], ids[1]
}

// G7, C2: an endpoint that one node has put on probation gets nothing from the others, but a probe
// each when its time has come; a probe that succeeds, or an operator, ends it for all.
func TestProbationIsShared(t *testing.T) {
	for name, end := range map[string]func(f *fleet, a string){
		"by a probe": func(f *fleet, _ string) { f.sender.always(ok()); after(time.Minute) },
		"by an operator": func(f *fleet, a string) {
			f.sender.always(ok())
			testkit.Must(f.t, f.nodes[0].service.Probe(f.t.Context(), a))
			wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2)
				a, b := f.twins()
				f.sender.always(status(503))
				f.publish("orders", ids("a/", 12)...)
				after(time.Second)
				state := func(n int, id string) retry.State {
					return testkit.Value(f.nodes[n].service.Stats(t.Context(), id))(t).Endpoint.State
				}
				testkit.Equal(t, state(0, a), retry.Waiting, "where it has failed")
				testkit.Equal(t, state(1, b), retry.Waiting, "where nothing was sent yet")
				f.sender.forget()
				f.publish("orders", "b/1")
				after(5 * time.Second)
				testkit.Equal(t, len(f.sender.all("")), 0, "requests while it is aside")
				after(6 * time.Second) // ten seconds, and the first probes fail
				if n := len(f.sender.all("")); n < 1 || n > 2 {
					t.Errorf("%d probes of two nodes", n)
				}
				testkit.Equal(t, state(1, b), retry.Waiting, "after the probe")
				entries := testkit.Value(f.Memory.List(t.Context(), sharedPrefix))(t)
				testkit.Equal(t, len(entries), 1, "entries of one endpoint")
				end(f, a)
				testkit.Equal(t, state(0, a), retry.Well)
				testkit.Equal(t, state(1, b), retry.Well)
				after(time.Minute)
				testkit.Equal(t, len(testkit.Value(f.Memory.List(t.Context(), sharedPrefix))(t)), 0, "entries at the end")
				wantIDs(t, "delivered", f.sender.delivered(""), append(ids("a/", 12), "b/1"))
				f.end()
			})
		})
	}
}

// G7: a node that starts, or gets its first subscription of an endpoint, knows what was told before.
func TestProbationIsKnownToNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		a, _ := f.twins()
		f.sender.always(status(503))
		f.publish("orders", ids("a/", 12)...)
		after(time.Second)
		f.sender.forget()
		shard := shards.Of(a)
		third := f.open(2)
		f.nodes = append(f.nodes, third)
		wait()
		f.move(shard, third)
		after(time.Second)
		testkit.Equal(t, testkit.Value(third.service.Stats(t.Context(), a))(t).Endpoint.State, retry.Waiting)
		testkit.Equal(t, len(f.sender.all("")), 0, "requests of the newcomer")
		f.end()
	})
}

// An entry of an endpoint that nobody sends to any more is removed in the end.
func TestOldProbationsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0)
		value := testkit.Value(json.Marshal(retry.Health{Until: time.Now()}))(t)
		testkit.Must(t, testkit.Err(f.Memory.CompareAndSet(t.Context(), sharedKey("gone"), 0, value)))
		testkit.Must(t, testkit.Err(f.Memory.CompareAndSet(t.Context(), sharedPrefix+"nonsense", 0, []byte("?"))))
		f.nodes = append(f.nodes, f.open(0))
		wait()
		testkit.Equal(t, len(testkit.Value(f.Memory.List(t.Context(), sharedPrefix))(t)), 2, "entries after a moment")
		time.Sleep(2 * sharedLife)
		f.nodes = append(f.nodes, f.open(1))
		wait()
		testkit.Equal(t, len(testkit.Value(f.Memory.List(t.Context(), sharedPrefix))(t)), 1, "entries after days")
		for _, n := range f.nodes {
			n.stop()
		}
	})
}
