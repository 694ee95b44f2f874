package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var smallGroup = processor.Group{Hub: "small", Group: "resizer"}

// passOver is a work record by which the first thousand events count as put away.
const passOver = `{"epoch":1,"instance":"evil","clean":true,"begun":-1,"away":"0-1000"}`

// plant writes a function's records as a client can while the group is no function's: its work with
// the right to listen, under a lease that it releases, and all of them with the right to manage.
func (y *yard) plant() {
	y.t.Helper()
	if _, err := y.broker.CreateGroup(y.t.Context(), "small", "resizer"); !errors.Is(err, broker.ErrGroupExists) {
		testkit.Must(y.t, err)
	}
	listens, manages := groups.Caller{Hash: groups.HashOf("a secret of some length")}, groups.Caller{Operator: true}
	had := testkit.Value(y.groups.Leases(y.t.Context(), smallGroup))(y.t)
	claim := processor.Lease{Partition: "0", Owner: "evil", Epoch: 1}
	if len(had) > 0 {
		claim.Epoch, claim.Version = had[0].Epoch+1, had[0].Version
	}
	leases := testkit.Value(y.groups.ClaimBy(y.t.Context(), listens, smallGroup, []processor.Lease{claim}))(y.t)
	testkit.Equal(y.t, len(leases), 1, "leases")
	for _, one := range []struct {
		by         groups.Caller
		key, value string
	}{
		{listens, "work/resize/0", passOver},
		{listens, "failures/resize/evil", `{"term":1,"buckets":[{"age":0,"n":1000}],"total":1000}`},
		{manages, "circuit/resize", `{"state":"open","term":1,"incident":"x"}`},
		{manages, "circuit/others", `{"state":"open","term":1,"incident":"x"}`},
	} {
		version := processor.Version("")
		for _, f := range testkit.Value(y.groups.Entries(y.t.Context(), smallGroup, ""))(y.t) {
			if f.Key == one.key {
				version = f.Version
			}
		}
		testkit.Must(y.t, testkit.Err(y.groups.PutBy(y.t.Context(), one.by, smallGroup,
			processor.Entry{Key: one.key, Value: []byte(one.value), Version: version})), "%s", one.key)
	}
	leases[0].Owner = ""
	testkit.Must(y.t, testkit.Err(y.groups.ClaimBy(y.t.Context(), listens, smallGroup, leases)))
}

// R1: what clients wrote into the group before it was the function's is not believed, and removed:
// no event is passed over, however the function is made, and however late they wrote.
func TestRecordsThatClientsLeftAreNotBelieved(t *testing.T) {
	create := func(y *yard, k *Registry) { y.create(k, small()) }
	for what, make := range map[string]func(*yard, *Registry){
		"a group from before": func(y *yard, k *Registry) {
			y.plant()
			create(y, k)
		},
		"configured": func(y *yard, k *Registry) {
			y.plant()
			testkit.Must(y.t, k.Ensure(y.t.Context(), small()))
		},
		"between two functions": func(y *yard, k *Registry) {
			create(y, k)
			settle(15 * time.Second)
			testkit.Must(y.t, k.Delete(y.t.Context(), "resize"))
			y.plant()
			create(y, k)
		},
		"written when the function was there, by who had asked before": func(y *yard, k *Registry) {
			create(y, k)
			y.plant()
		},
		"configured at every start, and changed": func(y *yard, k *Registry) {
			create(y, k)
			testkit.Must(y.t, k.Ensure(y.t.Context(), small(func(d *Definition) { d.Batch = 7 })))
			y.plant()
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				y.hub("small", 1)
				k := y.open()
				stop := func() {}
				if strings.HasPrefix(what, "between") {
					stop = y.run(k)
				}
				make(y, k)
				stop() // as if it had crashed before anything ran
				k = y.open()
				y.run(k)
				y.send("small", "0", "1", "2", "3")
				settle(2 * time.Minute)
				f := y.show(k, "resize")
				testkit.Equal(t, y.program.got("/resize"), "1 2 3", "it is %s: %s", f.State, f.Problem)
				got := strings.Join(y.entries(smallGroup), " ")
				testkit.That(t, !strings.Contains(got, "evil") && strings.Contains(got, "circuit/others"), "there are %s", got)
			})
		})
	}
}

// R1: what the yard itself wrote outlives restarts, changes and takeover by configuration; and a
// function from before its records were marked keeps them, too.
func TestAFunctionKeepsItsOwnRecords(t *testing.T) {
	for _, marked := range []bool{true, false} {
		inBubble(t, func(t *testing.T, y *yard) {
			y.hub("small", 1)
			k := y.open()
			y.create(k, small())
			by := (*groups.Registry).Put
			if !marked {
				e := testkit.Value(k.get(t.Context(), "resize"))(t)
				e.OwnRecords = false
				testkit.Must(t, testkit.Err(k.put(t.Context(), e)))
				by = func(r *groups.Registry, ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
					return r.PutBy(ctx, groups.Caller{Operator: true}, g, f)
				}
			}
			testkit.Must(t, testkit.Err(by(y.groups, t.Context(), smallGroup,
				processor.Entry{Key: "work/resize/0", Value: []byte(`{"epoch":0,"instance":"x","clean":true,"begun":-1,"away":"0-1"}`)})))
			testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Batch = 7 })))
			y.send("small", "0", "1", "2", "3")
			for range 2 {
				k = y.open()
				stop := y.run(k)
				settle(time.Minute)
				stop()
			}
			testkit.Equal(t, y.program.got("/resize"), "3", "marked: %v", marked)
		})
	}
}
