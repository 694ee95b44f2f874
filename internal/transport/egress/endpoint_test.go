package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestEndpointsThatMayNotBeUsed(t *testing.T) {
	c := newClient(t, Config{})
	pem := newAuthority(t)
	cert, key := pem.issue(t, "client")
	_, otherKey := pem.issue(t, "other")
	for name, e := range map[string]Endpoint{
		"no URL":                         {},
		"no scheme":                      {URL: "example.com/hook"},
		"another scheme":                 {URL: "ftp://example.com/"},
		"a file":                         {URL: "file:///etc/passwd"},
		"no host":                        {URL: "http:///hook"},
		"only a port":                    {URL: "http://:80/"},
		"a user":                         {URL: "https://user:secret@example.com/"},
		"a port too large":               {URL: "https://example.com:65536/"},
		"port zero":                      {URL: "https://example.com:0/"},
		"a control character":            {URL: "https://example.com/\x00"},
		"an authority that is no PEM":    {URL: "https://example.com/", CA: "no PEM"},
		"a certificate without its key":  {URL: "https://example.com/", Cert: cert},
		"a key without its certificate":  {URL: "https://example.com/", Key: key},
		"a key of another certificate":   {URL: "https://example.com/", Cert: cert, Key: otherKey},
		"a TLS version nobody knows":     {URL: "https://example.com/", MinTLS: "1.1"},
		"OAuth without a client":         {URL: "https://example.com/", OAuth: &OAuth{TokenURL: "https://example.com/"}},
		"OAuth without a token URL":      {URL: "https://example.com/", OAuth: &OAuth{ClientID: "me"}},
		"OAuth with a token URL in here": {URL: "https://example.com/", OAuth: &OAuth{ClientID: "me", TokenURL: "http://10.0.0.1/"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Check(e); err == nil {
				t.Error("it was taken")
			}
		})
	}
	for name, e := range map[string]Endpoint{
		"plain":                    {URL: "http://example.com"},
		"with port, path, query":   {URL: "https://example.com:8443/a/b?code=x&y"},
		"name with an underscore":  {URL: "http://my_service:8080/"},
		"name that begins as one":  {URL: "http://127.example.com/"},
		"name of another alphabet": {URL: "https://bücher.example/"},
		"open address":             {URL: "http://8.8.8.8/"},
		"open IPv6 address":        {URL: "http://[2606:4700::1111]:80/"},
		"everything":               {URL: "https://example.com/", CA: pem.text, Cert: cert, Key: key, MinTLS: "1.3", OAuth: &OAuth{ClientID: "me", TokenURL: "https://id.example.com/token"}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Check(t, c.Check(e))
		})
	}
}

// inside are spellings of addresses in our own network, all of which some program understands.
var inside = []string{
	"127.0.0.1", "127.0.0.1.", "2130706433", "0x7f000001", "0X7F000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.1",
	"127.0.0.01", "00000177.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "0.0.0.0", "0", "[::]",
	"169.254.169.254", "2852039166", "0xa9fea9fe", "[fd00::1]", "[fe80::1%25eth0]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	"localhost", "LOCALHOST", "localhost.", "a.localhost", "１２７.０.０.１", "127。0。0。1", "①②⑦.⓪.⓪.①", "10.0.0.1", "167772161",
}

func TestNoSpellingOfAnAddressIsTaken(t *testing.T) {
	c := newClient(t, Config{})
	for _, host := range inside {
		testkit.ErrorIs(t, c.Check(Endpoint{URL: "http://" + host + "/"}), ErrForbidden, "%s", host)
	}
}

// An address that may be reached still has to be written so that everybody reads the same.
func TestOddSpellingsAreRefusedEvenWhereAllowed(t *testing.T) {
	c := newClient(t, Config{Loopback: true})
	for host, want := range map[string]string{"2130706433": "write 127.0.0.1", "127.1": "write 127.0.0.1", "134744072": "write 8.8.8.8", "1.2.3.4.5": "is none", "256.1.1.1": "is none", "example.0x1g": ""} {
		t.Run(host, func(t *testing.T) {
			err := c.Check(Endpoint{URL: "http://" + host + "/"})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s gives %v, want %q", host, err, want)
			}
		})
	}
	for _, host := range []string{"127.0.0.1:8080", "localhost", "[::1]"} {
		testkit.Check(t, c.Check(Endpoint{URL: "http://" + host + "/"}), "%s gives", host)
	}
}

func TestErrorsAboutAURLHideItsSecrets(t *testing.T) {
	c := newClient(t, Config{})
	for _, text := range []string{"http://10.0.0.1/path?code=SECRET", "ftp://example.com/?code=SECRET", "http://example.com:99999/?code=SECRET", "http://exa mple.com/?code=SECRET"} {
		if err := c.Check(Endpoint{URL: text}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v", err)
		}
	}
}

func FuzzCheckHost(f *testing.F) {
	for _, host := range inside {
		f.Add(host)
	}
	g, err := newGuard(Config{})
	testkit.Must(f, err)
	f.Fuzz(func(t *testing.T, host string) {
		u, err := url.Parse("http://" + host + "/")
		if err != nil || u.Hostname() == "" {
			return
		}
		err = g.checkHost(u.Hostname())
		if a, odd := parseOddly(strings.ToLower(u.Hostname())); odd && err == nil && a.String() != u.Hostname() {
			t.Errorf("%q is taken, and is %v to some", host, a)
		}
		if a, is := netip.ParseAddr(u.Hostname()); is == nil && (g.check(a) == nil) != (err == nil) {
			t.Errorf("%q gives %v", host, err)
		}
	})
}

func TestDifferentEndpointsHaveDifferentIdentities(t *testing.T) {
	base := Endpoint{URL: "https://example.com/a", CA: "ca", Cert: "cert", Key: "key", OAuth: &OAuth{"t", "c", "s", "o", "a"}, MinTLS: "1.2"}
	same := base
	same.OAuth = &OAuth{"t", "c", "s", "o", "a"}
	testkit.Equal(t, base.Identity(), same.Identity(), "equal endpoints differ")
	seen := map[string]string{base.Identity(): "base"}
	for name, change := range map[string]func(*Endpoint){
		"path":        func(e *Endpoint) { e.URL = "https://example.com/b" },
		"query":       func(e *Endpoint) { e.URL += "?a" },
		"CA":          func(e *Endpoint) { e.CA = "" },
		"certificate": func(e *Endpoint) { e.Cert = "certk"; e.Key = "ey" },
		"trust":       func(e *Endpoint) { e.SkipVerify = true },
		"TLS":         func(e *Endpoint) { e.MinTLS = "1.3" },
		"no OAuth":    func(e *Endpoint) { e.OAuth = nil },
		"secret":      func(e *Endpoint) { e.OAuth.Secret = "x" },
		"audience":    func(e *Endpoint) { e.OAuth.Audience = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			e := base
			e.OAuth = &OAuth{"t", "c", "s", "o", "a"}
			change(&e)
			testkit.Equal(t, seen[e.Identity()], "", "%s and", name)
			seen[e.Identity()] = name
		})
	}
}
