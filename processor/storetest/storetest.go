// Package storetest is the suite that every processor.Store passes: each sentence of the
// contract in package processor is a test of it.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) processor.Store { return memory.New() })
//	}
//
// Keys and values of entries can be checked with package internal/hubs/groupentry, within this
// project.
//
// The suite uses hubs and groups with names of its own that no other run has, so that
// stores may share one database, and the partitions "0" to "31".
package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// Partitions is how many partitions the suite uses of a hub: "0" to "31".
const Partitions = 32

// Options is what a store cannot do and may say so, and what it needs to be tested. The
// zero Options is a store that keeps the whole contract.
type Options struct {
	// NoHubID: checkpoints come back without their HubID.
	NoHubID bool
	// NoEpoch: checkpoints come back without their Epoch.
	NoEpoch bool
	// FirstSaveUnfenced: the very first Save of a partition may succeed under a lower
	// epoch although Begin has returned under a higher.
	FirstSaveUnfenced bool
	// AnyNamespace: groups that differ in their namespace alone share their records.
	AnyNamespace bool
	// NotifiesRenewals: who watches is also told of what changes nothing.
	NotifiesRenewals bool
	// EpochsByOne: an acquisition raises the epoch by one, whatever it asks for.
	EpochsByOne bool
	// LateWatch: a watch may begin at a replica that has yet to hear of the last writes, and so
	// report as new what was written just before it began.
	LateWatch bool

	// FewRaces: races are tried a fifth as often, for a store that passes the whole suite in
	// another set-up.
	FewRaces bool

	// Prepare makes the hub and the group, for stores where they have to exist; the hub
	// has at least 32 partitions. It is called once before a group is used. nil: nothing.
	Prepare func(t *testing.T, g processor.Group)
	// Peer opens the records of s anew, as another process would, for tests in
	// which several do something at once. nil: s is shared.
	Peer func(t *testing.T, s processor.Store) processor.Store
}

// Run tests a store that keeps the whole contract. Every subtest opens one of its own,
// whose cleanup is open's business.
func Run(t *testing.T, open func(t *testing.T) processor.Store) {
	t.Helper()
	RunWith(t, open, Options{})
}

// RunWith tests a store that says what it cannot do.
func RunWith(t *testing.T, open func(t *testing.T) processor.Store, opt Options) {
	t.Helper()
	for _, part := range []struct {
		name  string
		tests []test
	}{
		{"leases", leaseTests}, {"checkpoints", checkpointTests}, {"fences", fenceTests},
		{"entries", entryTests}, {"groups", groupTests}, {"contexts", contextTests},
		{"watch", watchTests}, {"presence", presenceTests}, {"races", raceTests},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, one := range part.tests {
				t.Run(one.name, func(t *testing.T) { one.run(newFixture(t, open, opt)) })
			}
		})
	}
}

// test is one sentence of the contract.
type test struct {
	name string
	run  func(f *fixture)
}

// patience bounds every wait. It is no measure of anything: a store that needs longer hangs.
const patience = 60 * time.Second

// fixture is what one test works with.
type fixture struct {
	*testing.T
	ctx   context.Context
	store processor.Store
	group processor.Group
	opt   Options
	peers []processor.Store // of races, one for each racer
}

func newFixture(t *testing.T, open func(t *testing.T) processor.Store, opt Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, store: open(t), opt: opt}
	f.group = f.newGroup("workers")
	return f
}

// newGroup prepares a group of a hub that nobody has used.
func (f *fixture) newGroup(name string) processor.Group {
	f.Helper()
	g := processor.Group{Namespace: "space.example.net", Hub: unique("hub-"), Group: name}
	f.prepare(g)
	return g
}

func (f *fixture) prepare(g processor.Group) {
	f.Helper()
	if f.opt.Prepare != nil {
		f.opt.Prepare(f.T, g)
	}
}

// peer is a store with the same records.
func (f *fixture) peer() processor.Store {
	f.Helper()
	if f.opt.Peer == nil {
		return f.store
	}
	return f.opt.Peer(f.T, f.store)
}

// unique gives a name that no other run has; in lower case, since some stores fold.
func unique(prefix string) string { return prefix + strings.ToLower(rand.Text()[:13]) }

// rounds gives how often a race is tried.
func (f *fixture) rounds(many int) int {
	if testing.Short() || f.opt.FewRaces {
		return max(1, many/5)
	}
	return many
}

func partition(i int) string { return fmt.Sprint(i) }
