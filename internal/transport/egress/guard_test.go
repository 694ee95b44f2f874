package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhichAddressesMayBeReached(t *testing.T) {
	plain := Config{}
	local := Config{Loopback: true}
	office := Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32"), netip.MustParsePrefix("::ffff:192.168.0.0/112"), netip.MustParsePrefix("fe80::/10")}}
	for name, c := range map[string]struct {
		cfg     Config
		allowed bool
		addr    string
	}{
		"an open address":                            {plain, true, "8.8.8.8"},
		"an open IPv6 address":                       {plain, true, "2606:4700::1111"},
		"private 10":                                 {plain, false, "10.0.0.1"},
		"private 172.16":                             {plain, false, "172.31.255.255"},
		"private 192.168":                            {plain, false, "192.168.1.1"},
		"beside private 172.16":                      {plain, true, "172.32.0.1"},
		"loopback":                                   {plain, false, "127.0.0.1"},
		"the far end of loopback":                    {plain, false, "127.255.255.254"},
		"IPv6 loopback":                              {plain, false, "::1"},
		"nowhere":                                    {plain, false, "0.0.0.0"},
		"this network":                               {plain, false, "0.1.2.3"},
		"IPv6 nowhere":                               {plain, false, "::"},
		"metadata":                                   {plain, false, "169.254.169.254"},
		"metadata of Azure's host":                   {plain, false, "168.63.129.16"},
		"metadata by IPv6":                           {plain, false, "fd00:ec2::254"},
		"metadata behind CGNAT":                      {plain, false, "100.100.100.200"},
		"CGNAT":                                      {plain, false, "100.64.0.1"},
		"multicast":                                  {plain, false, "224.0.0.1"},
		"IPv6 multicast":                             {plain, false, "ff02::1"},
		"broadcast":                                  {plain, false, "255.255.255.255"},
		"link-local":                                 {plain, false, "fe80::1"},
		"link-local with a zone":                     {plain, false, "fe80::1%eth0"},
		"unique local":                               {plain, false, "fd00::1"},
		"old site-local":                             {plain, false, "fec0::1"},
		"loopback in IPv6 clothes":                   {plain, false, "::ffff:127.0.0.1"},
		"private in IPv6 clothes":                    {plain, false, "::ffff:a00:1"},
		"open in IPv6 clothes":                       {plain, true, "::ffff:8.8.8.8"},
		"loopback, IPv4-compatible":                  {plain, false, "::7f00:1"},
		"loopback by NAT64":                          {plain, false, "64:ff9b::7f00:1"},
		"loopback by local NAT64":                    {plain, false, "64:ff9b:1::7f00:1"},
		"loopback by 6to4":                           {plain, false, "2002:7f00:1::"},
		"loopback by Teredo":                         {plain, false, "2001:0:0:0:0:0:80ff:fefe"},
		"documentation":                              {plain, false, "192.0.2.1"},
		"development: loopback":                      {local, true, "127.0.0.1"},
		"development: IPv6 loopback":                 {local, true, "::1"},
		"development: loopback in IPv6 clothes":      {local, true, "::ffff:127.0.0.1"},
		"development: private all the same":          {local, false, "10.0.0.1"},
		"development: nowhere all the same":          {local, false, "0.0.0.0"},
		"development: metadata all the same":         {local, false, "169.254.169.254"},
		"in an allowed network":                      {office, true, "10.1.2.3"},
		"in an allowed network, IPv6 clothes":        {office, true, "::ffff:10.1.2.3"},
		"beside an allowed network":                  {office, false, "10.2.0.1"},
		"in an allowed IPv6 network":                 {office, true, "fd00:1::5"},
		"beside an allowed IPv6 network":             {office, false, "fd00:2::5"},
		"in a network allowed in IPv6 clothes":       {office, true, "192.168.7.7"},
		"in an allowed network with a zone":          {office, true, "fe80::1%eth0"},
		"in an allowed network, but by way of NAT64": {office, false, "64:ff9b::a01:203"},
		"loopback with other networks allowed":       {office, false, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGuard(c.cfg)
			testkit.Must(t, err)
			addr := netip.MustParseAddr(c.addr)
			err = g.check(addr)
			testkit.MustEqual(t, (err == nil), c.allowed, "check gives")
			if control := g.control("tcp", netip.AddrPortFrom(addr, 80).String(), nil); (control == nil) != c.allowed {
				t.Errorf("control gives %v, want allowed = %v", control, c.allowed)
			}
			if err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("%v is not ErrForbidden", err)
			}
		})
	}
}

// Whoever reads the error has to know what to do.
func TestARefusalNamesTheAddressAndTheSetting(t *testing.T) {
	c := newClient(t, Config{})
	err := c.Check(Endpoint{URL: "http://10.0.0.5/hook"})
	for _, want := range []string{"10.0.0.5 is private", "grid.allow in eventyard.yaml", "--grid-allow 10.0.0.5/32"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

func TestANetworkThatIsNoneIsRefused(t *testing.T) {
	if _, err := New(Config{Allow: []netip.Prefix{{}}}); err == nil {
		t.Error("the empty network was taken")
	}
}

func TestWhatIsNoAddressIsNotConnectedTo(t *testing.T) {
	g, _ := newGuard(Config{})
	for _, text := range []string{"", "8.8.8.8", "name:80", "/run/socket"} {
		testkit.ErrorIs(t, g.control("tcp", text, nil), ErrForbidden, "%q", text)
	}
}
