package certs

import (
	"crypto/x509"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNames(t *testing.T) {
	always := []string{"localhost", "*.localhost", "127.0.0.1", "::1"}
	tests := []struct {
		what string
		cfg  Config
		want []string // besides those always there and this machine's
	}{
		{"nothing asked for", Config{}, nil},
		{"a host", Config{Host: "Yard.Example.NET."}, []string{"yard.example.net"}},
		{"an address as the host", Config{Host: "10.1.2.3"}, []string{"10.1.2.3"}},
		{"a wildcard", Config{Host: "*.example.net"}, []string{"*.example.net"}},
		{"what listeners listen on", Config{Addresses: []string{"127.0.0.2:5671", "doors:8443", "[fd00::1]:443", "fd00::2", "[fd00::3]"}}, []string{"127.0.0.2", "doors", "fd00::1", "fd00::2", "fd00::3"}},
		{"each once", Config{Host: "a", Addresses: []string{"A:1", "a:2", "::ffff:127.0.0.1"}}, []string{"a"}},
		{"a zone is left out", Config{Addresses: []string{"[fe80::1%eth0]:1"}}, []string{"fe80::1"}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := testkit.Value(tt.cfg.names())(t)
			all := namesOf(&x509.Certificate{DNSNames: got.hosts, IPAddresses: got.addresses})
			for _, name := range append(always, tt.want...) {
				testkit.Equal(t, slices.Contains(all, name), true, "%s is missing in %q", name, all)
			}
			if extra := len(all) - len(always) - len(tt.want); extra > 1 {
				t.Errorf("more than asked for: %q", all)
			}
		})
	}
}

// A listener on all addresses is reached by each of them.
func TestNamesOfAllInterfaces(t *testing.T) {
	interfaces, err := net.InterfaceAddrs()
	testkit.Check(t, err)
	for _, listener := range []string{":5671", "0.0.0.0:5671", "[::]:5671", "::"} {
		got := testkit.Value(Config{Addresses: []string{listener}}.names())(t)
		for _, one := range interfaces {
			address := netip.MustParsePrefix(one.String()).Addr()
			if address.IsGlobalUnicast() && !slices.ContainsFunc(got.addresses, net.IP(address.AsSlice()).Equal) {
				t.Errorf("%s: %v is missing", listener, address)
			}
		}
		if slices.ContainsFunc(got.addresses, net.IP.IsUnspecified) {
			t.Errorf("%s is in the certificate itself", listener)
		}
	}
}

func TestHostAllowed(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a-b.c_d.9": true, "*.a": true,
		"": false, ".": false, "a..b": false, "a b": false, "a:1": false, "*": false, "a.*.b": false, "ä": false, "a/b": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, strings.Repeat("a.", 127): false,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, hostAllowed(name), want, "%q", name)
		})
	}
}
