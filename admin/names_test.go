package admin_test

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever a user calls a group or a partition, nothing else is meant: ".." once led to the hub
// itself, and deleted it.
func TestANameIsNeverAnotherPath(t *testing.T) {
	c := ownedYard(t)
	_, err := c.CreateHub(t.Context(), admin.HubRequest{Name: "plain"})
	testkit.Must(t, err)
	for _, name := range []string{"", ".", ".."} {
		if err := c.DeleteGroup(t.Context(), "plain", name); !isKind(err, "not-found") {
			t.Errorf("group %q: deleted with %v", name, err)
		}
		if err := c.DeleteGroup(t.Context(), "shop/orders", name); !isKind(err, "not-found") {
			t.Errorf("group %q: deleted with %v", name, err)
		}
		if _, err := c.Ownership(t.Context(), "shop/orders", name, 0); !isKind(err, "not-found") {
			t.Errorf("group %q: shown with %v", name, err)
		}
		if _, err := c.MoveCheckpoint(t.Context(), "shop/orders", "a/b", name, admin.Target{Earliest: true}, admin.MoveOptions{}); !isKind(err, "not-found") {
			t.Errorf("partition %q: moved with %v", name, err)
		}
	}
	testkit.Check(t, testkit.Err(c.Hub(t.Context(), "plain")), "afterwards")
}
