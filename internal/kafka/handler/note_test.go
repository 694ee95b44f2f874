package handler

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: what a client changes is put down to whose rights it has and to where it comes from, also by another node.
func TestWhatAClientChangesIsPutDownToIt(t *testing.T) {
	p := &peer{lent: &rights{grant: auth.Grant{Holder: "till"}}, from: "/192.0.2.1"}
	var got activity.Entry
	activity.Notes(func(_ context.Context, e activity.Entry) { got = e }).Note(p.asks(t.Context()), activity.Entry{Kind: "hub.created"})
	testkit.That(t, got.By == "till" && got.Address == "192.0.2.1", "it is put down to %+v", got)
}
