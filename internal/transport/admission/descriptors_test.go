package admission

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: whatever the limit, connections leave storage its descriptors, and everybody has some.
func TestDivide(t *testing.T) {
	for limit := 80; limit < 200_000; limit += 1 + limit/7 {
		s := Divide(limit, 10_000, 10_000)
		used := ownDescriptors + s.Storage + s.Strangers + s.Outgoing
		for _, clients := range s.Clients {
			used += clients
			testkit.That(t, clients >= 1 && clients <= 10_000, "%d clients of %d descriptors", clients, limit)
		}
		testkit.That(t, used <= limit, "%d of %d descriptors are given away", used, limit)
		testkit.That(t, s.Storage >= 8 && s.Strangers >= 2 && s.Outgoing >= 2, "%+v of %d descriptors", s, limit)
	}
	for _, c := range []struct {
		limit, storage, strangers, outgoing, amqp, http int
	}{
		{0, 4096, 1024, 2048, 10_000, 10_000},
		{512, 224, 56, 56, 56, 56},
		{1024, 480, 120, 120, 120, 120},
		{20_000, 4096, 1024, 2048, 6384, 6384},
		{1 << 20, 4096, 1024, 2048, 10_000, 10_000},
	} {
		t.Run(fmt.Sprintf("%d descriptors", c.limit), func(t *testing.T) {
			s := Divide(c.limit, 10_000, 10_000)
			testkit.Equal(t, s.Storage, c.storage, "storage")
			testkit.Equal(t, s.Strangers, c.strangers, "strangers")
			testkit.Equal(t, s.Outgoing, c.outgoing, "outgoing")
			testkit.Slices(t, s.Clients, []int{c.amqp, c.http}, "clients")
		})
	}
	testkit.Slices(t, Divide(1024, 100, 1000).Clients, []int{21, 218})
	testkit.Equal(t, Divide(512).Limits(), Limits{Strangers: 56, AddressStrangers: 14})
}
