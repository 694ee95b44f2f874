package access

import (
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// nodes are registries over one store, each of them as late as it may be.
func nodes(t *testing.T, n int) []*Registry {
	t.Helper()
	entries := metatest.NewMemory()
	all := make([]*Registry, n)
	atOnce(n, func(i int) {
		k, err := Open(t.Context(), Config{Meta: metatest.NewLateNode(entries), Hub: newHubs().find, Log: testkit.Quiet()})
		testkit.Check(t, err)
		all[i] = k
	})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// sameKeys checks that all nodes let in by the same keys, and gives those.
func sameKeys(t *testing.T, all []*Registry) (root Policy, account Account) {
	t.Helper()
	for i, k := range all {
		p, a := testkit.Value(k.Policy("", auth.RootPolicy))(t), k.Account()
		if i == 0 {
			root, account = p, a
		}
		testkit.Equal(t, p, root, "node %d has another root policy", i)
		testkit.Equal(t, a, account, "node %d has another account", i)
	}
	return root, account
}

// C4: nodes that start at once on an empty store have one root policy and one blob account, and one
// of them has made it.
func TestNodesMakeOneRootPolicy(t *testing.T) {
	for range 20 {
		all := nodes(t, 4)
		sameKeys(t, all)
		made := 0
		for _, k := range all {
			if k.Created() {
				made++
			}
		}
		testkit.Equal(t, made, 1, "nodes have made the root policy")
	}
}

// C4: keys that could be read are made anew once for each time that they could be.
func TestNodesRegenerateTheRootOnce(t *testing.T) {
	all := nodes(t, 4)
	seen := map[string]bool{}
	for _, why := range []string{"one", "one", "two"} {
		atOnce(len(all), func(i int) { testkit.Check(t, testkit.Err(all[i].RegenerateRoot(t.Context(), why))) })
		root, account := sameKeys(t, all)
		seen[root.Primary+root.Secondary+account.Primary+account.Secondary] = true
		testkit.Equal(t, all[0].RootRenewed(), why, "made anew because of")
	}
	testkit.Equal(t, len(seen), 2, "different keys")
	root, _ := sameKeys(t, all)
	fresh := testkit.Value(all[0].RegenerateRoot(t.Context(), ""))(t)
	testkit.That(t, fresh.Primary != root.Primary, "without a reason the keys stay")
}

// A policy that is as it should be is not replaced again: what stands on it goes on.
func TestReplaceTwice(t *testing.T) {
	k := open(t, Config{})
	mustCreate(t, k, "", "p", auth.Send)
	want := Policy{Name: "p", Rights: auth.Listen}
	first := testkit.Value(k.Replace(t.Context(), want))(t)
	grant := testkit.Value(k.Key(t.Context(), "p", first.Primary))(t)
	testkit.Equal(t, testkit.Value(k.Replace(t.Context(), want))(t), first, "replaced again")
	testkit.That(t, grant.Stands(), "what stood on it ended")
}
