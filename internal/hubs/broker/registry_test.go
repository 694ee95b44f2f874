package broker

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: to find a hub by its log costs the same however many there are: transactions ask for each partition.
func TestAHubIsFoundByItsLog(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	mustCreate(t, b, "other", 1)
	log := logOf(t, b)
	testkit.Equal(t, HubOf(b, log), "orders")
	testkit.Equal(t, testing.AllocsPerRun(10, func() { _ = HubOf(b, log) }), 0, "allocations")
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	testkit.Equal(t, HubOf(b, log), "")
}
