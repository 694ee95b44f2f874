package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrForbidden: the address may not be reached. The error that wraps it names the address and
// the setting that allows it.
var ErrForbidden = errors.New("address is not allowed")

// wireServer is how machines on Azure reach their host's metadata, at an address that looks
// like any other.
var wireServer = netip.MustParsePrefix("168.63.129.16/32")

// loopback is this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// guard says which addresses may be reached: those of the open Internet, and those allowed.
type guard struct {
	guardian *ssrf.Guardian
}

func newGuard(cfg Config) (*guard, error) {
	allow := cfg.Allow
	if cfg.Loopback {
		allow = slices.Concat(loopback, allow)
	}
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		if !p.IsValid() {
			return nil, errors.New("grid.allow has a network that is none: write it like 10.0.0.0/8")
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 { // ::ffff:10.0.0.0/104 is 10.0.0.0/8
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &guard{ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(wireServer),
	)}, nil
}

// control is called with the address of every connection before it is made: for each of a
// name's addresses, however they came about.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %q is no address with a port", ErrForbidden, network, address)
	}
	return g.check(at.Addr())
}

// check looks through an IPv4 address in IPv6 clothes: it leads where the plain one does. Other
// forms that carry an IPv4 address (NAT64, 6to4) are no open Internet and refused as such.
func (g *guard) check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if g.guardian.SafeAddr(a) == nil {
		return nil
	}
	exactly := netip.PrefixFrom(a, a.BitLen())
	return fmt.Errorf("%w: %s is %s; to let events go there put %s, or a network around it, into grid.allow in eventyard.yaml or start with --grid-allow %s",
		ErrForbidden, a, kindOf(a), exactly, exactly)
}

// kindOf says in a word why an address is refused.
func kindOf(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "no destination"
	case a.IsLoopback():
		return "this machine"
	case a.IsLinkLocalUnicast():
		return "link-local (the metadata of clouds is there)"
	case a.IsMulticast():
		return "multicast"
	case a.IsPrivate():
		return "private"
	case wireServer.Contains(a):
		return "the metadata of a cloud"
	}
	return "not of the open Internet"
}
