package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

type address string

func (address) Network() string  { return "test" }
func (a address) String() string { return string(a) }

func enter(t testing.TB, l *Listener, from address) *Permit {
	t.Helper()
	return testkit.Value(l.Enter(from))(t)
}

// wantFull holds an error against the kind of permits that there are none of.
func wantFull(t testing.TB, err error, kind Kind, limit int) {
	t.Helper()
	full, ok := errors.AsType[*FullError](err)
	testkit.MustEqual(t, ok, true, "the error is %v", err)
	testkit.Equal(t, *full, FullError{Kind: kind, Limit: limit})
}

func wantCount(t testing.TB, l *Listener, clients, strangers int) {
	t.Helper()
	testkit.Equal(t, l.clients, clients, "clients")
	testkit.Equal(t, l.ledger.strangers.permits, strangers, "strangers")
}

// R2: strangers take no permit from clients, nor one address those of others.
func TestPermits(t *testing.T) {
	l := New(Limits{Strangers: 3, AddressStrangers: 2}).Listener(2)
	first := enter(t, l, "10.0.0.1:1")
	second := enter(t, l, "10.0.0.1:2")
	other := enter(t, l, "10.0.0.2:1")
	wantCount(t, l, 0, 3)

	testkit.Must(t, first.Know(""))
	testkit.Must(t, first.Know(""), "again")
	third := enter(t, l, "10.0.0.1:4") // in place of the one that is known now
	testkit.Must(t, third.Know(""))
	wantFull(t, second.Know(""), Clients, 2)
	wantCount(t, l, 2, 2)

	first.Leave()
	first.Leave()
	testkit.Must(t, second.Know(""))
	wantFull(t, first.Know(""), Strangers, 3) // who has left
	wantCount(t, l, 2, 1)
	for _, p := range []*Permit{second, third, other} {
		p.Leave()
	}
	wantCount(t, l, 0, 0)
	testkit.Equal(t, len(l.ledger.byAddress), 0, "addresses are remembered for ever")
}

// R2: one account has half of a listener's permits at most, and the others stay for others.
func TestAnAccountHasHalf(t *testing.T) {
	ledger := New(Limits{})
	l := ledger.Listener(5)
	comes := func(account string) (*Permit, error) {
		p := enter(t, l, "10.0.0.1:1")
		return p, p.Know(account)
	}
	var greedy []*Permit
	for range 3 {
		p, err := comes("greedy")
		testkit.Must(t, err)
		greedy = append(greedy, p)
	}
	testkit.Must(t, greedy[0].Know("greedy"), "again")
	testkit.Must(t, greedy[0].Know("another"), "it is counted for the first")
	refused, err := comes("greedy")
	wantFull(t, err, OfOne, 3)
	testkit.Equal(t, err.Error(), "this policy or token has as many connections as one may have, which is 3")
	wantCount(t, l, 3, 1)
	elsewhere := enter(t, ledger.Listener(1), "10.0.0.1:1")
	testkit.Must(t, elsewhere.Know("greedy"), "another listener has permits of its own")
	inside := enter(t, l, "pipe")
	testkit.Must(t, inside.Know("greedy"), "this process is not counted")

	other, err := comes("other")
	testkit.Must(t, err)
	nobodys, err := comes("")
	testkit.Must(t, err)
	wantFull(t, refused.Know("third"), Clients, 5)
	for _, p := range []*Permit{greedy[1], greedy[1], nobodys, inside} {
		p.Leave()
	}
	testkit.Must(t, refused.Know("greedy"), "one of its own has left")
	for _, p := range []*Permit{greedy[0], greedy[2], refused, other} {
		p.Leave()
	}
	wantCount(t, l, 0, 0)
	testkit.Equal(t, len(l.byAccount), 0, "accounts are remembered for ever")
}

// R2: what dials its own yard takes no permit of those who come from outside.
func TestThisProcessIsNotCounted(t *testing.T) {
	l := New(Limits{Strangers: 1}).Listener(1)
	for range 3 {
		inside := enter(t, l, "pipe")
		testkit.Must(t, inside.Know(""))
		defer inside.Leave()
	}
	wantCount(t, l, 0, 0)
	outside := enter(t, l, "10.0.0.1:1")
	testkit.Must(t, outside.Know(""))
	late := enter(t, l, "pipe")
	testkit.Must(t, late.Know(""))
	late.Leave()
	wantCount(t, l, 1, 0)
}

// R2: nobody keeps a newcomer out, not even one of its own address.
func TestTheMiddleOfAFullAddressMakesRoom(t *testing.T) {
	l := New(Limits{Strangers: 10, AddressStrangers: 4}).Listener(2)
	var evicted []string
	comes := func(from address) *Permit {
		p := enter(t, l, from)
		p.OnEvict(func() { evicted = append(evicted, string(from)) })
		return p
	}
	known := comes("10.0.0.1:1")
	testkit.Must(t, known.Know(""))
	for _, from := range []address{"10.0.0.1:2", "10.0.0.2:1", "10.0.0.1:3", "10.0.0.1:4", "10.0.0.1:5", "10.0.0.1:6", "10.0.0.1:7"} {
		comes(from)
	}
	testkit.Slices(t, evicted, []string{"10.0.0.1:4", "10.0.0.1:5"})
	wantCount(t, l, 1, 5)
}

// R2: what strangers may make a yard hold is bounded, for one address and for all.
func TestBytes(t *testing.T) {
	l := New(Limits{StrangerBytes: 100, AddressBytes: 60}).Listener(10)
	a, b := enter(t, l, "10.0.0.1:1"), enter(t, l, "10.0.0.1:2")
	c, inside := enter(t, l, "10.0.0.2:1"), enter(t, l, "pipe")
	testkit.Equal(t, a.Hold(40), true)
	testkit.Equal(t, b.Hold(21), false, "more than the address may have")
	testkit.Equal(t, b.Hold(20), true)
	testkit.Equal(t, c.Hold(41), false, "more than all may have")
	testkit.Equal(t, inside.Hold(40), true)
	testkit.Equal(t, c.Hold(1), false, "more than all may have")
	a.Free(10)
	testkit.Equal(t, c.Hold(10), true)

	testkit.Must(t, a.Know("")) // its 30 bytes count no more
	testkit.Equal(t, a.Hold(1<<40), true, "a client's memory is its listener's to bound")
	testkit.Equal(t, c.Hold(30), true)
	a.Free(1 << 40)
	a.Free(30) // of what it held before
	testkit.Equal(t, c.Hold(1), false)
	for _, p := range []*Permit{a, b, c, inside} {
		p.Leave()
	}
	testkit.Equal(t, l.ledger.strangers.permits+l.ledger.strangers.bytes, 0)
}

// R2: where strangers have all permits, one of the address that has most makes room for a newcomer.
func TestNewcomersDisplaceTheCrowd(t *testing.T) {
	l := New(Limits{Strangers: 4}).Listener(10)
	var evicted []string
	comes := func(from address) *Permit {
		p := enter(t, l, from)
		p.OnEvict(func() { evicted = append(evicted, string(from)) })
		return p
	}
	crowd := []*Permit{comes("10.0.0.1:1"), comes("10.0.0.1:2"), comes("10.0.0.1:3")}
	inside := comes("pipe")
	testkit.Equal(t, crowd[1].Hold(10), true)
	comes("10.0.0.2:1")
	testkit.Slices(t, evicted, []string{"10.0.0.1:2"})
	testkit.Equal(t, l.ledger.strangers.bytes, 0, "bytes of one that was evicted")
	wantFull(t, crowd[1].Know(""), Strangers, 4)
	testkit.Must(t, crowd[0].Know("")) // a client is never evicted
	comes("10.0.0.2:2")
	comes("10.0.0.3:1") // the second address has most now
	testkit.Slices(t, evicted, []string{"10.0.0.1:2", "10.0.0.2:2"})
	wantCount(t, l, 1, 4)

	// Where each address has one, the middle of all makes room; connections without an address do
	// not.
	comes("10.0.0.4:1")
	comes("[2001:db8:0:1::1]:1")
	testkit.Slices(t, evicted[2:], []string{"10.0.0.2:1", "10.0.0.3:1"})
	comes("10.0.0.4:2") // no other address has more
	testkit.Slices(t, evicted[4:], []string{"10.0.0.4:1"})
	crowd[1].Leave()
	inside.Leave()
	wantCount(t, l, 1, 3)
	called := false
	crowd[1].OnEvict(func() { called = true })
	testkit.Equal(t, called, true, "who asks too late is told")
}

// R2: connections without an address, such as those within the process, are never refused.
func TestInsidersAreNeverRefused(t *testing.T) {
	l := New(Limits{Strangers: 2}).Listener(10)
	evicted := 0
	for _, from := range []address{"10.0.0.1:1", "[2001:db8::1]:1"} {
		enter(t, l, from).OnEvict(func() { evicted++ })
	}
	for range 3 {
		enter(t, l, "pipe")
	}
	testkit.Equal(t, evicted, 2, "strangers that made room")
	wantCount(t, l, 0, 3)
	_, err := l.Enter(address("10.0.0.3:1"))
	wantFull(t, err, Strangers, 2)
}

// Strangers share their permits over all listeners; clients have those of their own listener.
func TestListeners(t *testing.T) {
	all := New(Limits{Strangers: 2})
	a, b := all.Listener(1), all.Listener(1)
	one, two := enter(t, a, "10.0.0.1:1"), enter(t, b, "10.0.0.2:1")
	evicted := false
	two.OnEvict(func() { evicted = true })
	third := enter(t, a, "10.0.0.3:1")
	testkit.Equal(t, evicted, true, "a stranger of the other listener")
	testkit.Must(t, third.Know(""))
	testkit.Must(t, enter(t, b, "10.0.0.2:2").Know(""))
	wantFull(t, one.Know(""), Clients, 1)
}

// Who shares the permits of an address.
func TestSharers(t *testing.T) {
	for _, c := range []struct {
		remote net.Addr
		want   string // empty: nobody
	}{
		{address("10.0.0.1:5"), "10.0.0.1/32"},
		{address("[::ffff:10.0.0.1]:5"), "10.0.0.1/32"},
		{address("[2001:db8:1:2:3::4]:5"), "2001:db8:1:2::/64"},
		{address("[fe80::1%eth0]:5"), "fe80::/64"},
		{address("yard"), ""},
		{address(""), ""},
		{nil, ""},
	} {
		t.Run(fmt.Sprintf("%#v", c.remote), func(t *testing.T) {
			got := ""
			if prefix, ok := sharer(c.remote); ok {
				got = prefix.String()
			}
			testkit.Equal(t, got, c.want)
		})
	}
}

// Nobody's permit may have anything.
func TestNobodysPermit(t *testing.T) {
	var p *Permit
	testkit.Must(t, p.Know(""))
	testkit.Equal(t, p.Hold(1<<40), true)
	p.Free(1)
	p.Leave()
}

func TestDefaults(t *testing.T) {
	testkit.Equal(t, New(Limits{Strangers: 7}).Listener(1).Limits(), Limits{
		Strangers: 7, AddressStrangers: DefaultAddressStrangers,
		StrangerBytes: DefaultStrangerBytes, AddressBytes: DefaultAddressBytes,
		Handshakes: max(1, runtime.GOMAXPROCS(0)/2),
	})
}

// R2: when many times more clients come back at once than there are permits, and each needs a while
// to show its token, all of them get in, also beside others who never show one.
func TestAllOfAStormGetIn(t *testing.T) {
	const clients, handshake, pause = 3000, 30, 50 // of time, whose unit is a turn of the loop
	apart := func(i int) address { return address(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250)) }
	together := func(int) address { return "10.0.0.1:1" }
	for _, tt := range []struct {
		name string
		from func(client int) address
		// idle connections are opened by others in each turn, and closed after stay turns.
		idle, stay int
	}{
		{"behind one address", together, 0, 0},
		{"behind one address, beside idle connections", together, 2, 300},
		{"each at its own address", apart, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Limits{}).Listener(clients)
			random := rand.New(rand.NewPCG(1, 2))
			type client struct {
				permit  *Permit
				evicted bool
				turn    int // when it came, or comes again
			}
			all, idle := make([]client, clients), []*Permit{}
			in, turn := 0, 0
			for i := range all {
				all[i].turn = random.IntN(pause)
			}
			for ; in < clients && turn < 100*pause; turn++ {
				for range tt.idle {
					idle = append(idle, enter(t, l, tt.from(0)))
					if old := len(idle) - tt.idle*tt.stay; old >= 0 {
						idle[old].Leave()
					}
				}
				for i := range all {
					switch c := &all[i]; {
					case c.permit == nil && turn >= c.turn:
						*c = client{permit: enter(t, l, tt.from(i)), turn: turn}
						c.permit.OnEvict(func() { c.evicted = true })
					case c.evicted:
						*c = client{turn: turn + pause/2 + random.IntN(pause)}
					case c.permit != nil && turn == c.turn+handshake:
						testkit.Must(t, c.permit.Know(""))
						in++
					}
				}
			}
			testkit.Equal(t, in, clients, "clients that got in")
			t.Logf("it took %d turns", turn)
		})
	}
}

// Many come and go at once, and nothing is left.
func TestStorm(t *testing.T) {
	l := New(Limits{Strangers: 20, AddressStrangers: 5, StrangerBytes: 100, AddressBytes: 50}).Listener(10)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for n := range 100 {
				p, err := l.Enter(address(fmt.Sprintf("10.0.0.%d:%d", i%7, n)))
				if err != nil {
					continue
				}
				held := p.Hold(n)
				if n%2 == 0 {
					_ = p.Know([]string{"", "a", "b"}[n%3])
				}
				if held {
					p.Free(n)
				}
				p.Leave()
			}
		})
	}
	all.Wait()
	wantCount(t, l, 0, 0)
	testkit.Equal(t, l.ledger.strangers.permits+l.ledger.strangers.bytes, 0)
	testkit.Equal(t, len(l.ledger.byAddress), 0)
	testkit.Equal(t, len(l.byAccount), 0)
}
