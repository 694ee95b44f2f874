package admission

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: strangers who fill all memory that there is for them keep nobody from showing a right.
func TestWhoHoldsMostMakesRoom(t *testing.T) {
	l := New(Limits{StrangerBytes: 100, AddressBytes: 50}).Listener(2)
	evicted := map[address]bool{}
	comes := func(from address, bytes int) *Permit {
		t.Helper()
		p := enter(t, l, from)
		p.OnEvict(func() { evicted[from] = true })
		testkit.MustEqual(t, p.Claim(bytes), true, "%s gets %d bytes", from, bytes)
		return p
	}
	comes("10.0.0.1:1", 20)
	comes("10.0.0.1:2", 30)
	comes("10.0.0.2:1", 45)
	testkit.MustEqual(t, len(evicted), 0)

	newcomer := comes("10.0.0.3:1", 10)
	testkit.Equal(t, evicted["10.0.0.1:2"], true, "who holds most of the address that holds most")
	testkit.Equal(t, len(evicted), 1)
	testkit.Equal(t, newcomer.Claim(50), false, "more than the address may have")
	testkit.Equal(t, newcomer.Claim(30), true)
	testkit.Equal(t, evicted["10.0.0.2:1"], true, "the next one")

	neighbour := comes("10.0.0.3:2", 5)
	testkit.Equal(t, neighbour.Claim(36), false, "nobody makes room for who would hold more")
	testkit.Equal(t, evicted["10.0.0.3:1"], false)
	testkit.Equal(t, neighbour.Claim(20), true)
	testkit.Equal(t, evicted["10.0.0.3:1"], true, "of the own address, which has its share")

	testkit.Must(t, neighbour.Know(""))
	testkit.Equal(t, neighbour.Claim(1000), true, "a client has no bounds here")
	testkit.Equal(t, l.ledger.strangers.bytes, 20)
	neighbour.Leave()
}
