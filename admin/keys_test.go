package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1: a client is told which keys are busiest.
func TestBusyKeys(t *testing.T) {
	c, hub := ownedYard(t), "shop/orders"
	q := admin.BusyKeysQuery{Partition: "1", Limit: 1}
	testkit.Equal(t, testkit.Value(c.BusyKeys(t.Context(), hub, q))(t).Events, 0, "events at first")
	event := json.RawMessage(`{"body":"x","key":"k"}`)
	testkit.Must(t, testkit.Err(c.Send(t.Context(), hub, admin.Batch{Partition: "1", Events: []json.RawMessage{event, event}})))
	got := testkit.Value(c.BusyKeys(t.Context(), hub, q))(t)
	testkit.Slices(t, got.Keys, []admin.BusyKey{{Partition: "1", Key: "k", Events: 2, Share: 1}})
}
