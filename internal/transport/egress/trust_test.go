package egress

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// serveTLS runs a server that answers with the protocol and the client's name.
func serveTLS(t *testing.T, config *tls.Config, h2 bool) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s %s", r.Proto, name)
	}))
	s.TLS = config
	s.EnableHTTP2 = h2
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func TestWhomWeTrustAndWhoWeAre(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "yard")
	foreignCert, foreignKey := theirs.issue(t, "stranger")
	plain := serveTLS(t, ours.server(t), true)
	old := ours.server(t)
	old.MaxVersion = tls.VersionTLS12
	only12 := serveTLS(t, old, false)
	strict := ours.server(t)
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	mutual := serveTLS(t, strict, true)

	for name, x := range map[string]struct {
		e    Endpoint
		want string // empty: refused
	}{
		"an authority that we do not know":      {Endpoint{URL: plain}, ""},
		"an authority of our own":               {Endpoint{URL: plain, CA: ours.text}, "HTTP/2.0 nobody"},
		"another authority":                     {Endpoint{URL: plain, CA: theirs.text}, ""},
		"anybody":                               {Endpoint{URL: plain, SkipVerify: true}, "HTTP/2.0 nobody"},
		"several authorities":                   {Endpoint{URL: plain, CA: theirs.text + ours.text}, "HTTP/2.0 nobody"},
		"a server without HTTP/2":               {Endpoint{URL: only12, CA: ours.text}, "HTTP/1.1 nobody"},
		"a server that is too old":              {Endpoint{URL: only12, CA: ours.text, MinTLS: "1.3"}, ""},
		"a server that is new enough":           {Endpoint{URL: plain, CA: ours.text, MinTLS: "1.3"}, "HTTP/2.0 nobody"},
		"a certificate that is not wanted":      {Endpoint{URL: plain, CA: ours.text, Cert: cert, Key: key}, "HTTP/2.0 nobody"},
		"a certificate that is wanted":          {Endpoint{URL: mutual, CA: ours.text, Cert: cert, Key: key}, "HTTP/2.0 yard"},
		"no certificate where one is wanted":    {Endpoint{URL: mutual, CA: ours.text}, ""},
		"a certificate of somebody they ignore": {Endpoint{URL: mutual, CA: ours.text, Cert: foreignCert, Key: foreignKey}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, Config{Loopback: true})
			for range 2 {
				a := c.Do(t.Context(), Request{Endpoint: x.e, Method: "POST", Body: []byte("x")})
				if x.want == "" && (a.Outcome != retry.SocketError || a.Err == nil) || string(a.Head) != x.want {
					t.Errorf("got %s, %q: %v; want %q", a.Outcome, a.Head, a.Err, x.want)
				}
			}
		})
	}
}

// One endpoint's certificate and trust are not another's, though they lead to the same host.
func TestConnectionsAreNotSharedAcrossTrusts(t *testing.T) {
	ours := newAuthority(t)
	config := ours.server(t)
	config.ClientAuth = tls.VerifyClientCertIfGiven
	url := serveTLS(t, config, true)
	c := newClient(t, Config{Loopback: true})
	a, b := Endpoint{URL: url, CA: ours.text}, Endpoint{URL: url, CA: ours.text}
	a.Cert, a.Key = ours.issue(t, "alice")
	b.Cert, b.Key = ours.issue(t, "bob")
	for range 2 {
		for e, want := range map[*Endpoint]string{&a: "alice", &b: "bob"} {
			got := c.Do(t.Context(), Request{Endpoint: *e, Method: "POST"})
			if !strings.HasSuffix(string(got.Head), want) {
				t.Errorf("%s was taken for %q: %v", want, got.Head, got.Err)
			}
		}
		if got := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST"}); got.Outcome != retry.SocketError {
			t.Errorf("who does not trust the server got %q", got.Head)
		}
	}
}

// Ten thousand subscriptions to few hosts share; those long gone are forgotten.
func TestTransportsAreSharedAndForgotten(t *testing.T) {
	c := newClient(t, Config{})
	first, _ := c.Route(Endpoint{URL: "https://example.com/0"})
	for i := range 10000 {
		r := testkit.Value(c.Route(Endpoint{URL: fmt.Sprint("https://example.com/", i)}))(t)
		testkit.MustEqual(t, r.transport, first.transport, "route %d has a transport of its own", i)
	}
	testkit.Equal(t, len(c.trusts.items), 1, "transports")

	made, forgotten := 0, map[int]bool{}
	small := newCache(3, func(k int) (int, error) { made++; return k, nil }, func(v int) { forgotten[v] = true })
	for _, k := range []int{1, 2, 3, 1, 4, 1, 5, 1} {
		if v, err := small.get(k); v != k || err != nil {
			t.Fatal(v, err)
		}
	}
	if made != 5 || !forgotten[2] || !forgotten[3] || len(forgotten) != 2 || len(small.items) != 3 {
		t.Errorf("made %d, forgot %v, kept %d", made, forgotten, len(small.items))
	}
}
