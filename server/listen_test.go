package server

import (
	"net"
	"net/netip"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Who asks for all addresses of IPv4 has not asked for those of IPv6.
func TestAListenerListensAtTheAddressThatItWasGiven(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:0": "tcp4", "127.0.0.1:0": "tcp4", "[::ffff:127.0.0.1]:0": "tcp4",
		"[::]:0": "tcp6", "[::1]:0": "tcp6", "[fe80::1%lo]:0": "tcp6",
		":0": "tcp", "localhost:0": "tcp", "yard.example.com:0": "tcp", "nonsense": "tcp",
	} {
		if got := network(address); got != want {
			t.Errorf("%s is opened by %s", address, got)
		}
	}
	cfg := quick(t)
	cfg.HTTPS = "0.0.0.0:0"
	r := start(t, cfg)
	bound, err := netip.ParseAddrPort(r.host("https"))
	if err != nil || !bound.Addr().Is4() {
		t.Errorf("the listener is at %s, %v", r.host("https"), err)
	}
	if err := CheckAddress(r.host("https")); err == nil {
		t.Error("an address that is in use is free")
	}
	_, port, _ := net.SplitHostPort(r.host("https"))
	r.shutdown()
	testkit.Check(t, CheckAddress("0.0.0.0:"+port), "an address that is in use no more")
}

// The other family can be another program's.
func TestTheOtherFamilyIsLeftAlone(t *testing.T) {
	port := ""
	for port == "" {
		other, err := net.Listen("tcp6", "[::]:0")
		if err != nil {
			t.Skip("this machine has no IPv6:", err)
		}
		defer other.Close()
		_, given, _ := net.SplitHostPort(other.Addr().String())
		if CheckAddress("0.0.0.0:"+given) == nil { // nor is it a third program's
			port = given
		}
	}
	cfg := quick(t)
	cfg.HTTPS = "0.0.0.0:" + port
	start(t, cfg).shutdown()
}
