// Package admission keeps the one account of who is connected to a yard, whatever the listener:
// strangers, who have shown no right yet, and clients, who have. Each kind has permits of its own,
// so that strangers, however many, take none from clients. One account, such as a policy, has half of a listener's
// permits of clients at most, so that no key shuts others out. Among strangers those of one address
// have a share only. A newcomer gets a permit all the same: where its address has its share, one of
// that address makes room; where there is no permit left for strangers, one of the address that has
// most, or of the newcomer's own if no other has more.
//
// Who makes room is the one in the middle of those who are there, by the order in which they came. So
// nobody keeps a newcomer out: it stays until half as many others have come, which is enough to show a
// right where somebody just holds connections open. And when more come than that, as all clients do
// after a restart, some behind one address, the older half is left in peace, shows its rights and goes,
// and others come to be the older half: whatever the crowd, it gets in.
//
// A stranger also has little memory: what a listener holds for it, such as an unfinished message, the
// head of a request or a request that waits, is taken from an account of the strangers and of the address. What a client
// may have is the listener's to say.
//
// Strangers also take turns to compute what TLS begins with, apart from clients that come back (handshakes.go).
//
// It is bookkeeping alone: no I/O, no clock, no goroutine. How long somebody may stay a stranger is
// the listener's to say as well.
package admission

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
)

// Limits are how many strangers may be connected at once, to all listeners together, and what they
// may make a yard hold. Zero fields mean the default beside them.
type Limits struct {
	// Strangers is how many connections may have shown no right, and AddressStrangers how many of
	// those may be of one address; DefaultStrangers, DefaultAddressStrangers.
	Strangers, AddressStrangers int
	// StrangerBytes is what is held for strangers, and AddressBytes for those of one address;
	// DefaultStrangerBytes, DefaultAddressBytes.
	StrangerBytes, AddressBytes int
	// Handshakes is how many of TLS are computed at once; half as many as there are processors.
	Handshakes int
}

// The defaults. A client is a stranger for as long as it takes to show a token, some milliseconds
// mostly: so few permits let many clients in each second, also after a restart, also where all of
// them come from one address.
const (
	DefaultStrangers        = 1024
	DefaultAddressStrangers = 256
	DefaultStrangerBytes    = 32 << 20
	DefaultAddressBytes     = 8 << 20
)

func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value   *int
		without int
	}{
		{&l.Strangers, DefaultStrangers}, {&l.AddressStrangers, DefaultAddressStrangers},
		{&l.StrangerBytes, DefaultStrangerBytes}, {&l.AddressBytes, DefaultAddressBytes},
		{&l.Handshakes, max(1, runtime.GOMAXPROCS(0)/2)},
	} {
		if *field.value == 0 {
			*field.value = field.without
		}
	}
	return l
}

// FullError: there is no permit left of that kind.
type FullError struct {
	// Kind is which.
	Kind Kind
	// Limit is how many there are.
	Limit int
}

// Kind is a kind of permits.
type Kind string

const (
	Clients Kind = "clients"
	// OfOne are the permits that one account may have of a listener's for clients.
	OfOne     Kind = "clients of one account"
	Strangers Kind = "strangers"
)

func (e *FullError) Error() string {
	switch e.Kind {
	case Clients:
		return fmt.Sprintf("there are as many connections as are allowed, which is %d", e.Limit)
	case OfOne:
		return fmt.Sprintf("this policy or token has as many connections as one may have, which is %d", e.Limit)
	}
	return fmt.Sprintf("%d connections have shown no token yet, and no more are allowed", e.Limit)
}

// Ledger is the account. All its methods, and those of its listeners and permits, may be called by
// many goroutines at once.
type Ledger struct {
	limits Limits

	mu sync.Mutex
	// All of these are guarded by mu, and so are the clients of the listeners.
	strangers  account
	byAddress  map[netip.Prefix]*account
	handshakes handshakes
}

// Listener is one way into the yard. Its clients have permits of their own; strangers share those
// of the ledger with the strangers of all other listeners.
type Listener struct {
	ledger  *Ledger
	limit   int
	clients int
	// byAccount is how many of the clients are an account's; who has none is not in it.
	byAccount map[string]int
}

// account is what strangers have: all of them, or those of one address.
type account struct {
	permits, bytes int
	// inOrder are those that can make room, in the order in which they came.
	inOrder []*Permit
}

// middle is who makes room.
func (a *account) middle() *Permit { return a.inOrder[len(a.inOrder)/2] }

func (a *account) remove(p *Permit) {
	at := slices.Index(a.inOrder, p)
	a.inOrder = slices.Delete(a.inOrder, at, at+1)
}

// New makes an empty ledger.
func New(limits Limits) *Ledger {
	limits = limits.withDefaults()
	return &Ledger{
		limits: limits, byAddress: map[netip.Prefix]*account{},
		handshakes: handshakes{free: limits.Handshakes, known: map[netip.Prefix]struct{}{}},
	}
}

// Listener adds a listener with permits for so many clients.
func (l *Ledger) Listener(clients int) *Listener {
	return &Listener{ledger: l, limit: clients, byAccount: map[string]int{}}
}

// share is how many clients one account may have: half, and of an odd number the larger.
func (g *Listener) share() int { return (g.limit + 1) / 2 }

// Limits are those of the ledger.
func (g *Listener) Limits() Limits { return g.ledger.limits }

// Enter gives a stranger a permit. It may end at any time until its holder is known: see OnEvict.
// Connections whose address is none of IP, such as those within the process, have no share of an
// address, stay, and are never refused, nor do they count among the clients. Others are refused
// only if those have all permits: the error is a *FullError.
func (g *Listener) Enter(remote net.Addr) (*Permit, error) {
	p, evicted, err := g.enter(remote)
	evicted.end()
	return p, err
}

func (g *Listener) enter(remote net.Addr) (p, evicted *Permit, err error) {
	l := g.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	p = &Permit{listener: g, ledger: l}
	own := &account{} // of nobody, for who has no address
	if from, ok := sharer(remote); ok {
		if a := l.byAddress[from]; a != nil {
			own = a
		}
		p.from, p.address = from, own
	}
	switch {
	case own.permits >= l.limits.AddressStrangers:
		evicted = own.middle()
	case l.strangers.permits >= l.limits.Strangers:
		if evicted = l.crowdedLocked(own); evicted == nil && p.address != nil {
			return nil, nil, &FullError{Kind: Strangers, Limit: l.limits.Strangers}
		}
	}
	if evicted != nil {
		evicted.leaveLocked()
		evicted.kind = gone
	}
	l.strangers.permits++
	if p.address != nil {
		own.permits++
		own.inOrder = append(own.inOrder, p)
		l.strangers.inOrder = append(l.strangers.inOrder, p)
		l.byAddress[p.from] = own
	}
	return p, evicted, nil
}

// crowdedLocked gives the permit that makes room of the address that has most; of several such
// addresses it is the next from the middle of all permits on. A newcomer's own address comes first,
// unless the other will have more even then. Nil if no address has any.
func (l *Ledger) crowdedLocked(own *account) *Permit {
	most := 0
	for _, a := range l.byAddress {
		most = max(most, a.permits)
	}
	if own.permits > 0 && most <= own.permits+1 {
		return own.middle()
	}
	all := l.strangers.inOrder
	for i := range all {
		if a := all[(len(all)/2+i)%len(all)].address; a.permits == most {
			return a.middle()
		}
	}
	return nil
}

// sharer is who shares the permits of an address.
func sharer(remote net.Addr) (netip.Prefix, bool) {
	if remote == nil {
		return netip.Prefix{}, false
	}
	return Address(remote.String())
}

// Permit is one connection's. The nil Permit is that of a client: it may have anything, and is
// nobody's.
type Permit struct {
	listener *Listener
	ledger   *Ledger
	from     netip.Prefix
	// address is the account of from; nil where there is none.
	address *account

	// Guarded by the ledger's mutex.
	kind  kind
	bytes int
	// holder is the account that a client's permit is counted for.
	holder string
	// onEvict is called when the permit is taken away; evicted: it was.
	onEvict func()
	evicted bool
}

// kind is what the holder of a permit is.
type kind uint8

const (
	stranger kind = iota
	client
	gone
)

// OnEvict has f called, once, when the permit is taken away, and at once if it was already. f ends
// the connection and must not wait for that.
func (p *Permit) OnEvict(f func()) {
	if p == nil {
		return
	}
	p.ledger.mu.Lock()
	p.onEvict = f
	evicted := p.evicted
	p.ledger.mu.Unlock()
	if evicted {
		f()
	}
}

// end tells the holder that its permit was taken away. No lock is held.
func (p *Permit) end() {
	if p == nil {
		return
	}
	p.ledger.mu.Lock()
	p.evicted = true
	f := p.onEvict
	p.ledger.mu.Unlock()
	if f != nil {
		f()
	}
}

// Know makes a stranger a client, who has shown a right, and counts it for an account, such as a policy; empty: for
// nobody's. It may be called again: it is counted for the first. Where there is no permit for one more client, or none for
// one more of the account, the holder stays a stranger, and the error is a *FullError; so it is for one whose permit was
// taken away.
func (p *Permit) Know(account string) error {
	if p == nil {
		return nil
	}
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p.kind {
	case client:
		return nil
	case gone:
		return &FullError{Kind: Strangers, Limit: l.limits.Strangers}
	}
	if g := p.listener; p.address != nil {
		switch {
		case g.clients >= g.limit:
			return &FullError{Kind: Clients, Limit: g.limit}
		case account != "" && g.byAccount[account] >= g.share():
			return &FullError{Kind: OfOne, Limit: g.share()}
		}
	}
	p.leaveLocked()
	p.kind = client
	if p.address != nil {
		p.listener.clients++
		if p.holder = account; account != "" {
			p.listener.byAccount[account]++
		}
		l.handshakes.knowLocked(p.from)
	}
	return nil
}

// Leave gives the permit back, with all that is held. It may be called again.
func (p *Permit) Leave() {
	if p == nil {
		return
	}
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p.kind {
	case stranger:
		p.leaveLocked()
	case client:
		if g := p.listener; p.address != nil {
			g.clients--
			if g.byAccount[p.holder]--; g.byAccount[p.holder] <= 0 { // below: it was nobody's
				delete(g.byAccount, p.holder)
			}
		}
	}
	p.kind = gone
}

// leaveLocked takes the permit out of the strangers' account.
func (p *Permit) leaveLocked() {
	p.addLocked(-p.bytes)
	p.ledger.strangers.permits--
	a := p.address
	if a == nil {
		return
	}
	a.remove(p)
	p.ledger.strangers.remove(p)
	if a.permits--; a.permits == 0 {
		delete(p.ledger.byAddress, p.from)
	}
}
