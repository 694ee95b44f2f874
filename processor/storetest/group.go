package storetest

import (
	"strings"

	"github.com/eventyard/eventyard/processor"
)

var groupTests = []test{
	{"groups of one hub do not see each other's records", groupsApart},
	{"groups of one name in two hubs do not see each other's records", hubsApart},
	{"groups in two namespaces do not see each other's records", namespacesApart},
	{"$Default is a group like others", defaultGroup},
	{"a hub spelled in another case is the same", oneHub},
	{"$Default is found whatever its case", oneDefault},
}

func groupsApart(f *fixture) {
	for _, name := range []string{"workers2", "workers-2", "work", "workers.a"} {
		other := f.group
		other.Group = name
		f.prepare(other)
		f.wantApart(other)
	}
}

func hubsApart(f *fixture) {
	other := f.group
	other.Hub += "2" // so that one is the other's beginning
	f.prepare(other)
	f.wantApart(other)
}

func namespacesApart(f *fixture) {
	if f.opt.AnyNamespace {
		f.Skip("the store has one namespace")
	}
	other := f.group
	other.Namespace = "other." + other.Namespace
	f.prepare(other)
	f.wantApart(other)
}

func defaultGroup(f *fixture) {
	f.group.Group = "$Default"
	f.prepare(f.group)
	other := f.group
	other.Group = "default"
	f.prepare(other)
	f.wantApart(other)
}

func oneHub(f *fixture) {
	f.wantOne(processor.Group{
		Namespace: strings.ToUpper(f.group.Namespace), Hub: strings.ToUpper(f.group.Hub), Group: f.group.Group,
	})
}

func oneDefault(f *fixture) {
	f.group.Group = "$Default"
	f.prepare(f.group)
	other := f.group
	other.Group = "$default"
	f.wantOne(other)
}

// wantOne wants two spellings to be one group, or a partition would have an owner for each.
func (f *fixture) wantOne(other processor.Group) {
	f.Helper()
	l := f.claim(lease("0", "us", 1))
	c := f.begin(l)
	c.Sequence = 10
	c = f.save(l, c)
	entry := f.put(processor.Entry{Key: "presence/us"})
	w := f.watchIfCan()
	f.group = other
	f.wantLeases(l)
	f.wantCheckpoints(c)
	f.wantEntries("", entry)
	f.claimLost(lease("0", "them", 1))
	l.Owner, l.Epoch = "them", 2
	f.begin(f.claim(l))
	if w != nil {
		f.await(w.changed, "a change in another spelling was not told")
	}
}

// wantApart writes in one group, finds nothing in the other, and the other way round.
func (f *fixture) wantApart(other processor.Group) {
	f.Helper()
	here := f.group
	before := f.leases()
	f.group = other
	l := f.claim(lease("0", "them", 3))
	c := f.begin(l)
	c.Sequence = 30
	c = f.save(l, c)
	entry := f.put(processor.Entry{Key: "presence/them", Value: []byte("x")})

	f.group = here
	if len(before) == 0 {
		f.wantLeases()
		f.wantEntries("")
		if got := f.checkpoints(); len(got) != 0 {
			f.Fatalf("group %+v has %+v of %+v", here, got, other)
		}
		mine := f.claim(lease("0", "us", 1))
		mineC := f.begin(mine)
		mineC.Sequence = 10
		f.save(mine, mineC)
		f.put(processor.Entry{Key: "presence/us"})
	}
	f.wantLease(f.leases()["0"], "0", "us", 1)
	f.wantPosition(f.checkpoints()["0"], 10, "")

	f.group = other
	f.wantLeases(l)
	f.wantCheckpoints(c)
	f.wantEntries("", entry)
	f.group = here
}
