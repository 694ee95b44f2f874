package access

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H9: who had access to a hub that was deleted has none to the one that takes its name.
func TestPoliciesEndWithTheirHub(t *testing.T) {
	store, hubs := storagetest.Entries(t), newHubs("orders")
	k := open(t, Config{Meta: store, Hub: hubs.find})
	old := mustCreate(t, k, "orders", "p", auth.Manage)
	refused := func(what string) {
		t.Helper()
		if _, err := k.Token(t.Context(), sign("sb://ns/orders", old), ""); !errors.Is(err, auth.ErrSignature) {
			t.Errorf("%s: token: %v", what, err)
		}
		testkit.ErrorIs(t, testkit.Err(k.Key(t.Context(), "p", old.Primary)), auth.ErrSignature, "%s: key", what)
		testkit.ErrorIs(t, testkit.Err(k.Named(t.Context(), "orders/p")), auth.ErrSignature, "%s: name", what)
		testkit.ErrorIs(t, testkit.Err(k.Policy("orders", "p")), ErrNotFound, "%s: policy", what)
	}
	testkit.Must(t, testkit.Err(k.Key(t.Context(), "p", old.Primary)))
	hubs.delete("orders")
	refused("the hub was deleted")
	testkit.ErrorIs(t, testkit.Err(k.Policies("orders")), ErrNotFound)

	hubs.make("orders", time.UnixMilli(1700000000001))
	refused("it was made anew")
	if got := names(t, k, "orders"); len(got) != 0 {
		t.Errorf("the new one has %q", got)
	}
	testkit.ErrorIs(t, testkit.Err(k.Regenerate(t.Context(), "orders", "p", PrimaryKey)), ErrNotFound, "regenerate")
	testkit.ErrorIs(t, k.Delete(t.Context(), "orders", "p"), ErrNotFound, "delete")

	fresh := mustCreate(t, k, "orders", "p", auth.Send)
	testkit.Equal(t, testkit.Value(k.Key(t.Context(), "p", fresh.Primary))(t).Rights(auth.At("orders")), auth.Send, "the new policy")
	testkit.ErrorIs(t, testkit.Err(k.Key(t.Context(), "p", old.Primary)), auth.ErrSignature, "the old key")
	if got := stored(t, store); !slices.Equal(got, []string{"policies/hubs/orders/1700000000001/p", "policies/namespace/rootmanagesharedaccesskey"}) {
		t.Errorf("the store has %q", got)
	}
}

// What nobody can use any more goes, but not what belongs to a hub that this node may
// only not have heard of.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, everywhere := storagetest.Entries(t), newHubs("kept", "new", "renewed", "deleted")
		other := open(t, Config{Meta: store, Hub: everywhere.find})
		mustCreate(t, other, "deleted", "p", auth.Send)
		time.Sleep(orphanAge + time.Second)
		for _, hub := range []string{"kept", "new", "renewed"} {
			mustCreate(t, other, hub, "p", auth.Send)
		}
		here := newHubs("kept")
		here.make("renewed", time.UnixMilli(1700000000001))
		k := open(t, Config{Meta: store, Hub: here.find})
		defer testkit.Run(t, k.Run)()
		synctest.Wait()
		want := []string{
			"policies/hubs/kept/1700000000000/p", "policies/hubs/new/1700000000000/p",
			"policies/namespace/rootmanagesharedaccesskey",
		}
		testkit.Slices(t, stored(t, store), want, "the store")
		here.make("new", time.UnixMilli(1700000000000))
		if got := names(t, k, "new"); len(got) != 1 {
			t.Errorf("the hub heard of late has %q", got)
		}
	})
}
