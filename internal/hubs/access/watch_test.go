package access

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What one node does to policies counts at the other, without being asked.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hub := storagetest.Entries(t), newHubs("orders").find
		a, b := open(t, Config{Meta: store, Hub: hub}), open(t, Config{Meta: store, Hub: hub})
		defer testkit.Run(t, a.Run)()
		defer testkit.Run(t, b.Run)()

		p := mustCreate(t, a, "orders", "p", auth.Send)
		synctest.Wait()
		testkit.Check(t, testkit.Err(b.Key(t.Context(), "p", p.Primary)), "created")
		changed := testkit.Value(b.Regenerate(t.Context(), "orders", "p", PrimaryKey))(t)
		synctest.Wait()
		testkit.ErrorIs(t, testkit.Err(a.Key(t.Context(), "p", p.Primary)), auth.ErrSignature, "the old key")
		testkit.Check(t, testkit.Err(a.Key(t.Context(), "p", changed.Primary)), "the new key")
		testkit.Must(t, a.Delete(t.Context(), "orders", "p"))
		synctest.Wait()
		testkit.ErrorIs(t, testkit.Err(b.Key(t.Context(), "p", changed.Primary)), auth.ErrSignature, "deleted")
	})
}

// Starting and stopping while policies come and go leaves every node with the truth.
func TestRunStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storagetest.Entries(t)
		nodes := []*Registry{open(t, Config{Meta: store}), open(t, Config{Meta: store})}
		for round := range 30 {
			stop := []func(){testkit.Run(t, nodes[0].Run), testkit.Run(t, nodes[1].Run)}
			name := fmt.Sprint("p", round%5)
			for _, k := range nodes {
				go k.Create(t.Context(), Policy{Name: name, Rights: auth.Send})
				go k.Regenerate(t.Context(), "", name, SecondaryKey)
				go k.Delete(t.Context(), "", name)
				go k.Key(t.Context(), name, "guess")
			}
			if round%3 == 0 {
				synctest.Wait()
			}
			stop[0]()
			stop[1]()
		}
		synctest.Wait()
		for _, k := range nodes {
			defer testkit.Run(t, k.Run)()
		}
		synctest.Wait()
		want, _ := open(t, Config{Meta: store}).Policies("")
		for i, k := range nodes {
			if got, _ := k.Policies(""); !slices.Equal(got, want) {
				t.Errorf("node %d knows %+v, want %+v", i, got, want)
			}
		}
	})
}
