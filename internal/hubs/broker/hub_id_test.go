package broker

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: each hub has an id by which it is found, and one that is made later under its name has another.
func TestHubsByID(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	ids := make(map[[16]byte]string)
	for _, name := range []string{"orders", "_schemas", "a/b", "orders"} {
		if name == "orders" && len(ids) > 0 {
			testkit.Must(t, b.DeleteHub(t.Context(), name))
		}
		h := mustCreate(t, b, name, 1)
		testkit.Equal(t, ids[h.ID], "", "another has the id")
		ids[h.ID] = name
		for _, b := range []*Broker{b, y.open(t)} {
			testkit.Equal(t, testkit.Value(b.ByID(t.Context(), h.ID))(t).Name, name)
			testkit.Equal(t, must(b.Hub(name)).ID, h.ID)
		}
	}
	found := 0
	for id := range ids {
		if _, err := b.ByID(t.Context(), id); err == nil {
			found++
		} else {
			wantNotFound(t, err, KindHub)
		}
	}
	testkit.Equal(t, found, 3, "hubs")
	mustPublish(t, b, "_schemas", Target{}, "x")
	testkit.Must(t, b.DeleteHub(t.Context(), "_SCHEMAS"))
}

// C3: a hub that another node has made a moment ago is found by its id.
func TestHubsByIDOverNATS(t *testing.T) {
	brokers := newNATSNodes(t, 2)
	for i := range 5 {
		h := mustCreate(t, brokers[i%2], fmt.Sprint("hub-", i), 1)
		testkit.Equal(t, testkit.Value(brokers[1-i%2].ByID(t.Context(), h.ID))(t).Name, h.Name)
	}
	wantNotFound(t, testkit.Err(brokers[0].ByID(t.Context(), [16]byte{1})), KindHub)
}

// K1: who deletes a hub by its id never deletes one that was made anew under its name, not even if that
// happens between finding the hub and marking it.
func TestDeletionByIDIsOfThatHubAlone(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	first := mustCreate(t, b, "orders", 1)
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpGet && op.Under(hubsPrefix) {
			y.Meta.Inject(nil)
			testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
			mustCreate(t, b, "orders", 1)
		}
		return nil
	})
	wantNotFound(t, b.DeleteByID(t.Context(), first.ID), KindHub, "a hub that was made anew")
	second := testkit.Value(b.Hub("orders"))(t)
	testkit.That(t, second.ID != first.ID, "it was not made anew")
	mustPublish(t, b, "orders", Target{}, "x")

	wantNotFound(t, b.DeleteByID(t.Context(), first.ID), KindHub, "one that is gone")
	testkit.Must(t, b.DeleteByID(t.Context(), second.ID))
	expectGone(t, b, "orders")
}
