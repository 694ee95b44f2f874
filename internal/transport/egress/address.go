package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// checkHost judges a URL's host as far as that needs no name server: an address, however it is
// spelled, and names of this machine.
func (g *guard) checkHost(host string) error {
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii // the name that is connected to: other alphabets have digits and dots, too
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.check(a)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return g.check(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	// No top-level domain is a number, and resolvers of the operating system may take a name that
	// ends in one for an address.
	if _, err := parsePart(name[strings.LastIndexByte(name, '.')+1:]); err != nil {
		return nil
	}
	a, ok := parseOddly(name)
	if !ok {
		return fmt.Errorf("host %.64q looks like an address and is none: write it like 192.0.2.1", host)
	}
	if err := g.check(a); err != nil {
		return err
	}
	return fmt.Errorf("host %.64q is an address in a spelling that not all programs read alike: write %s", host, a)
}

// parseOddly reads an IPv4 address as inet_aton does: up to four parts, decimal, octal or
// hexadecimal, of which the last fills what is left.
func parseOddly(name string) (netip.Addr, bool) {
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var whole uint64
	for i, text := range parts {
		n, err := parsePart(text)
		room := 8
		if i == len(parts)-1 {
			room = 8 * (5 - len(parts))
		}
		if err != nil || n >= 1<<room {
			return netip.Addr{}, false
		}
		whole = whole<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}), true
}

func parsePart(text string) (uint64, error) {
	switch lower := strings.ToLower(text); {
	case lower == "0x":
		return 0, nil
	case strings.HasPrefix(lower, "0x"):
		return strconv.ParseUint(lower[2:], 16, 64)
	case len(lower) > 1 && lower[0] == '0' && strings.Trim(lower, "01234567") == "":
		return strconv.ParseUint(lower, 8, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}
