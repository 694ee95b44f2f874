package eventhubs

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// attacked is a yard with an instance at work in $Default of orders, and strangers who may listen
// there: with a secret of their own, and without one.
type attacked struct {
	*yard
	victim    *yardCalls
	strangers map[string]*yardCalls
	lease     groupwire.Lease
	presence  groupwire.Entry
}

const victimsLease = 30 * time.Second

func newAttacked(t *testing.T, change ...func(*setup)) *attacked {
	t.Helper()
	a := &attacked{yard: newYard(t, change...), strangers: map[string]*yardCalls{}}
	a.hub("orders", 4, "billing")
	a.policy("orders", "listens", auth.Listen)
	a.victim = a.caller("the victim's own secret")
	a.strangers["with a secret"] = a.caller("a secret that is another")
	a.strangers["without a secret"] = a.caller("")
	a.presence = a.victim.write(groupwire.Entry{Key: "presence/victim", Value: []byte(`{"nonce":"n"}`)})
	a.lease = a.victim.claim(lease("0", "victim", 1))
	return a
}

// caller is a connection of its own that may listen.
func (a *attacked) caller(secret string) *yardCalls {
	c := newYardCalls(a.t, a.sessionAs("listens"))
	c.secret, c.lasts = secret, victimsLease
	return c
}

// claim gives a lease as it is written; without a version if it is not.
func (c *yardCalls) claim(l groupwire.Lease) groupwire.Lease {
	c.t.Helper()
	written := good[groupwire.ClaimReply](c.t, c.call(groupwire.OpClaim, "orders", groupwire.ClaimRequest{About: inDefault, Leases: []groupwire.Lease{l}})).Leases
	if len(written) == 0 {
		return groupwire.Lease{}
	}
	return written[0]
}

func (c *yardCalls) tryPut(e groupwire.Entry) *goamqp.Message {
	c.t.Helper()
	return c.call(groupwire.OpPut, "orders", groupwire.PutRequest{About: inDefault, Entry: e})
}

func (c *yardCalls) tryRemove(e groupwire.Entry) *goamqp.Message {
	c.t.Helper()
	e.Value = nil
	return c.call(groupwire.OpRemove, "orders", groupwire.RemoveRequest{About: inDefault, Entry: e})
}

func (c *yardCalls) write(e groupwire.Entry) groupwire.Entry {
	c.t.Helper()
	e.Version = good[groupwire.EntryReply](c.t, c.tryPut(e)).Entry.Version
	return e
}

// refused wants a change to take more than the right to listen.
func refused(t testing.TB, m *goamqp.Message) {
	t.Helper()
	wantStatus(t, m, groupwire.StatusUnauthorized, "")
}

// R1: a lease is not stolen from an instance that lives, and nothing is saved under it.
func TestAttackStealALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttacked(t)
		begun := good[groupwire.CheckpointReply](t, a.victim.call(groupwire.OpBegin, "orders",
			groupwire.BeginRequest{About: inDefault, Lease: a.lease})).Checkpoint
		for what, c := range a.strangers {
			for _, l := range []groupwire.Lease{
				{Owner: "thief", Epoch: 2}, {Owner: "victim", Epoch: 2}, {Owner: "victim", Epoch: 1}, {Owner: "", Epoch: 1}, {Owner: "thief", Epoch: math.MaxInt64},
			} {
				l.Partition, l.Version = "0", a.lease.Version
				testkit.Equal(t, c.claim(l).Version, "", "%s claims %+v", what, l)
			}
			for _, version := range []string{a.lease.Version, "", "9223372036854775807"} {
				l := a.lease
				l.Version = version
				begun.Sequence, begun.Offset = 1000, "1000"
				wantStatus(t, c.call(groupwire.OpBegin, "orders", groupwire.BeginRequest{About: inDefault, Lease: l}), groupwire.StatusFenced, "")
				wantStatus(t, c.call(groupwire.OpSave, "orders", groupwire.SaveRequest{About: inDefault, Lease: l, Checkpoint: begun}), groupwire.StatusFenced, "")
			}
			for range 5 { // the victim goes on over another connection
				time.Sleep(victimsLease / 3)
				a.victim = a.caller("the victim's own secret")
				a.lease = a.victim.claim(a.lease)
				testkit.Equal(t, a.lease.Epoch, 1, "the victim renews")
			}
		}
		time.Sleep(victimsLease) // dead, it is another's
		taken := a.strangers["with a secret"].claim(groupwire.Lease{Partition: "0", Owner: "thief", Epoch: 9, Version: a.lease.Version})
		testkit.Equal(t, taken.Epoch, 2, "the epoch rises by one")
		testkit.Equal(t, a.victim.claim(a.lease).Version, "", "the victim has lost it")
	})
}

// R1: nobody keeps others from a partition by an epoch that cannot be raised.
func TestAttackClaimTheHighestEpoch(t *testing.T) {
	a := newAttacked(t)
	for _, c := range a.strangers {
		l := groupwire.Lease{Partition: "3", Owner: "thief", Epoch: math.MaxInt64}
		if before := c.leases(); before["3"].Version != "" {
			l.Version = before["3"].Version
		}
		before := c.leases()["3"].Epoch
		l = c.claim(l)
		testkit.Equal(t, l.Epoch, before+1)
		l.Owner = ""
		testkit.That(t, c.claim(l).Version != "", "it is not released")
	}
	free := a.victim.leases()["3"]
	taken := a.victim.claim(groupwire.Lease{Partition: "3", Owner: "victim", Epoch: free.Epoch + 1, Version: free.Version})
	testkit.Equal(t, taken.Epoch, free.Epoch+1)
}

func (c *yardCalls) leases() map[string]groupwire.Lease {
	c.t.Helper()
	all := map[string]groupwire.Lease{}
	for _, l := range good[groupwire.LeasesReply](c.t, c.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: inDefault})).Leases {
		all[l.Partition] = l
	}
	return all
}

// R1, P1: an instance is not silenced by its presence.
func TestAttackSilenceAnInstance(t *testing.T) {
	a := newAttacked(t)
	wish := a.victim.write(groupwire.Entry{Key: "next/2", Value: []byte(`{"instance":"victim"}`)})
	for _, c := range a.strangers {
		for _, value := range []string{`{"nonce":"n","leaving":true}`, `{"nonce":"another"}`, ``} {
			e := a.presence
			e.Value = []byte(value)
			refused(t, c.tryPut(e))
		}
		refused(t, c.tryRemove(a.presence))
		refused(t, c.tryPut(groupwire.Entry{Key: "next/1", Value: []byte(`{"instance":"victim"}`)}))
		refused(t, c.tryRemove(wish))
	}
	a.victim.write(a.presence)
}

// R1, F7: what operators decide about circuits stands, and so does what an instance has recorded of
// its work.
func TestAttackCircuitsAndWork(t *testing.T) {
	a := newAttacked(t, func(s *setup) { s.circuit = circuit.ByInstance })
	g := processor.Group{Hub: "orders", Group: "$Default"}
	held, _ := breaker.Hold(breaker.Record{}, "incident", "operator", "", time.Now())
	put := testkit.Value(a.groups.Put(t.Context(), g, processor.Entry{Key: "circuit/held", Value: breaker.EncodeRecord(held)}))(t)
	entry := groupwire.Entry{Key: put.Key, Version: string(put.Version)}
	work := a.victim.write(groupwire.Entry{Key: "work/f/0", Value: []byte("{}")})
	for _, c := range a.strangers {
		resumed, _ := breaker.Resume(held, "stranger", "", time.Now())
		for _, value := range [][]byte{breaker.EncodeRecord(resumed), breaker.EncodeRecord(held), []byte("{}"), nil} {
			entry.Value = value
			refused(t, c.tryPut(entry))
		}
		refused(t, c.tryRemove(entry))
		refused(t, c.tryPut(groupwire.Entry{Key: "circuit/other", Value: breaker.EncodeRecord(held)}))
		refused(t, c.tryPut(groupwire.Entry{Key: "work/f/0", Value: []byte(`{"away":[[0,99]]}`), Version: work.Version}))
		refused(t, c.tryPut(groupwire.Entry{Key: "work/f/1", Value: []byte(`{}`)})) // whose partition nobody has
	}
	// What instances find out they write.
	open, _ := breaker.Decide(breaker.Policy{Failures: 1}, breaker.View{Failures: 5, Self: "victim", Incident: "i", Now: time.Now()})
	a.victim.write(groupwire.Entry{Key: "circuit/f", Value: breaker.EncodeRecord(open)})
	a.victim.write(work)
}

// R1: what each right is enough for, operation by operation: Listen, and for what another holds
// Manage; in a group of a function that the yard runs nothing is.
func TestYardOperationsByRight(t *testing.T) {
	a := newAttacked(t, func(s *setup) {
		s.handler.Reserved = func(hub, group string) bool { return hub == "orders" && group == "billing" }
	})
	a.policy("orders", "sends", auth.Send)
	a.policy("orders", "manages", auth.Manage)
	requests := func(about groupwire.About) map[string]any {
		entry := groupwire.Entry{Key: "k"}
		versioned := groupwire.Entry{Key: "k", Version: "1"}
		l := lease("1", "x", 1)
		return map[string]any{
			groupwire.OpLeases: groupwire.LeasesRequest{About: about}, groupwire.OpCheckpoints: groupwire.CheckpointsRequest{About: about},
			groupwire.OpEntries: groupwire.EntriesRequest{About: about}, groupwire.OpWatch: groupwire.WatchRequest{About: about},
			groupwire.OpClaim: groupwire.ClaimRequest{About: about, Leases: []groupwire.Lease{l}},
			groupwire.OpBegin: groupwire.BeginRequest{About: about, Lease: l}, groupwire.OpSave: groupwire.SaveRequest{About: about, Lease: l},
			groupwire.OpPut: groupwire.PutRequest{About: about, Entry: entry}, groupwire.OpRemove: groupwire.RemoveRequest{About: about, Entry: versioned},
		}
	}
	writes := []string{groupwire.OpBegin, groupwire.OpClaim, groupwire.OpPut, groupwire.OpRemove, groupwire.OpSave}
	testkit.Slices(t, slices.Sorted(maps.Keys(operations)), slices.Sorted(slices.Values(groupwire.Operations())))
	for operation, o := range operations {
		testkit.Equal(t, o.writes, slices.Contains(writes, operation), "%s writes", operation)
	}
	for _, policy := range []string{"sends", "listens", "manages", auth.RootPolicy} {
		c := newYardCalls(t, a.sessionAs(policy))
		for _, group := range []string{"$Default", "billing"} {
			for operation, q := range requests(groupwire.About{Group: group}) {
				status := c.call(operation, "orders", q).ApplicationProperties["statusCode"]
				want := policy == "sends" || group == "billing" && slices.Contains(writes, operation)
				testkit.Equal(t, status == int32(groupwire.StatusUnauthorized), want, "%s %s in %s is %v", policy, operation, group, status)
			}
		}
	}
	// What another holds.
	for policy, may := range map[string]bool{"listens": false, "manages": true} {
		c := newYardCalls(t, a.sessionAs(policy))
		l := a.lease
		l.Owner, l.Epoch = "operator", 5
		testkit.Equal(t, c.claim(l).Version != "", may, "%s takes the lease", policy)
		status := c.tryRemove(a.presence).ApplicationProperties["statusCode"]
		testkit.Equal(t, status == int32(groupwire.StatusOK), may, "%s removes the presence", policy)
	}
}

// R1: a token that is good for one group reaches what $yard keeps of that group, and of no other.
func TestGroupTokenReachesYard(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1, "billing", "billing2")
	y.policy("orders", "listens", auth.Listen)
	s := newSession(t, y.dial(nil))
	resource := "sb://localhost/orders/ConsumerGroups/billing"
	claims := newRPC(t, s, wordClaims)
	wantStatus(t, claims.ask(putToken(resource, sasToken(resource, "listens", time.Hour))), 202, "")
	c := newYardCalls(t, s)
	for group, code := range map[string]int32{"billing": 200, "billing2": 401, "$Default": 401} {
		m := c.call(groupwire.OpLeases, "orders", groupwire.LeasesRequest{About: groupwire.About{Group: group}})
		testkit.Equal(t, m.ApplicationProperties["statusCode"], any(code), "%s", group)
	}
	good[groupwire.ClaimReply](t, c.call(groupwire.OpClaim, "orders",
		groupwire.ClaimRequest{About: groupwire.About{Group: "billing"}, Leases: []groupwire.Lease{lease("0", "a", 1)}}))
}

// A secret that could be guessed is none, and what is no time either.
func TestYardSecretsThatAreNone(t *testing.T) {
	y := newOrders(t, 1)
	c := newYardCalls(t, y.session())
	body := testkit.Value(json.Marshal(groupwire.LeasesRequest{About: inDefault}))(t)
	for _, p := range []map[string]any{
		{groupwire.PropertySecret: "short"}, {groupwire.PropertySecret: strings.Repeat("x", 257)}, {groupwire.PropertyLasts: "-1"}, {groupwire.PropertyLasts: "soon"},
	} {
		p["operation"], p["name"] = groupwire.OpLeases, "orders"
		wantStatus(t, c.reply(c.startMessage(&goamqp.Message{Data: [][]byte{body}, ApplicationProperties: p})), 400, "Malformed")
	}
}

var _ Groups = (*groups.Registry)(nil)
