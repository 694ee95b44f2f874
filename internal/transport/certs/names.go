package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// names are what clients may call a server.
type names struct {
	common    string
	hosts     []string
	addresses []net.IP
}

// names are those that the yard's own certificate has to have. What the operator asked
// for must be right; what this machine says of itself is taken if it is.
func (c Config) names() (names, error) {
	wanted := names{common: "localhost"}
	for _, always := range []string{"localhost", "*.localhost", "127.0.0.1", "::1"} {
		wanted.add(always)
	}
	if name, err := os.Hostname(); err == nil && wanted.add(name) {
		wanted.common = strings.ToLower(name)
	}
	if c.Host != "" {
		if !wanted.add(c.Host) {
			return names{}, fmt.Errorf("host %q cannot be in a certificate: use a name of ASCII letters, digits, '-' and '.', or an address", c.Host)
		}
		wanted.common = strings.ToLower(c.Host)
	}
	for _, address := range c.Addresses {
		if !wanted.addListener(address) {
			return names{}, fmt.Errorf("address %q cannot be in a certificate", address)
		}
	}
	return wanted, nil
}

// add takes a name or an address in, once. False: it is neither.
func (n *names) add(name string) bool {
	if address, err := netip.ParseAddr(name); err == nil {
		n.addAddress(address)
		return true
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if !hostAllowed(name) {
		return false
	}
	if !slices.Contains(n.hosts, name) {
		n.hosts = append(n.hosts, name)
	}
	return true
}

func (n *names) addAddress(address netip.Addr) {
	ip := net.IP(address.Unmap().WithZone("").AsSlice())
	if !slices.ContainsFunc(n.addresses, ip.Equal) {
		n.addresses = append(n.addresses, ip)
	}
}

// addListener takes what a listener listens on: for all addresses of this machine, those that
// others may reach it by.
func (n *names) addListener(listener string) bool {
	host := listener
	if before, _, err := net.SplitHostPort(listener); err == nil {
		host = before
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(host)
	if host != "" && (err != nil || !address.IsUnspecified()) {
		return n.add(host)
	}
	all, _ := net.InterfaceAddrs() // without them the certificate has fewer names
	for _, one := range all {
		prefix, err := netip.ParsePrefix(one.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() {
			n.addAddress(prefix.Addr())
		}
	}
	return true
}

// missing gives a name that a certificate lacks; empty if it has all.
func (n names) missing(cert *x509.Certificate) string {
	for _, host := range n.hosts {
		if !slices.Contains(cert.DNSNames, host) {
			return host
		}
	}
	for _, ip := range n.addresses {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return ip.String()
		}
	}
	return ""
}

// namesOf lists the names of a certificate: hosts, then addresses in their order.
func namesOf(cert *x509.Certificate) []string {
	list := slices.Clone(cert.DNSNames)
	for _, ip := range slices.SortedFunc(slices.Values(cert.IPAddresses), func(x, y net.IP) int { return bytes.Compare(x, y) }) {
		list = append(list, ip.String())
	}
	return list
}

func hostAllowed(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(name, "*."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
