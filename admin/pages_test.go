package admin_test

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1: a client gets pages of partitions and of ownership, with what it wants of each.
func TestPages(t *testing.T) {
	c := ownedYard(t)
	page := testkit.Value(c.PartitionPage(t.Context(), "shop/orders", admin.PageQuery{Limit: 1, Fields: []string{"last"}}))(t)
	testkit.That(t, page.Total == 2 && page.Next == "0" && page.Partitions[0] == admin.Partition{ID: "0", Last: 2}, "the first page: %+v", page)
	page = testkit.Value(c.PartitionPage(t.Context(), "shop/orders", admin.PageQuery{After: page.Next}))(t)
	testkit.That(t, page.Total == 2 && page.Next == "" && page.Partitions[0].ID == "1" && page.Partitions[0].Empty, "the second page: %+v", page)
	o := testkit.Value(c.OwnershipPage(t.Context(), "shop/orders", "a/b", 1, admin.PageQuery{Limit: 1, Fields: []string{"owner"}}))(t)
	testkit.That(t, o.Next == "0" && o.LagEvents == 2 && len(o.Partitions) == 1 && o.Partitions[0].Owner == "worker" && o.Partitions[0].Epoch == 0, "of ownership: %+v", o)
}
