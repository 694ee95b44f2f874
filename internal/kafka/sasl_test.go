package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// account is an identity.
type account string

func (a account) Account() string { return string(a) }

// checker knows alice and bob by their passwords, tokens that name an account and how long they hold, and
// certificates by their common name.
type checker struct{}

var errWrong = errors.New("wrong")

func (checker) Plain(_ context.Context, from, user, password string) (any, error) {
	switch {
	case from == "":
		return nil, errors.New("from nowhere")
	case user == "later":
		return nil, fmt.Errorf("the store is away: %w", ErrUnchecked)
	case user == "oops":
		panic("oops")
	case password != user+"'s password":
		return nil, errWrong
	}
	return account(user), nil
}

func (checker) Passwords(_ context.Context, _, user string) ([]string, error) {
	switch user {
	case "alice":
		return []string{"an older one", "alice's password"}, nil
	case "later":
		return nil, ErrUnchecked
	}
	return nil, nil
}

func (checker) Bearer(_ context.Context, _, token string) (any, time.Time, error) {
	name, rest, _ := strings.Cut(token, "/")
	holds, err := time.ParseDuration(rest)
	if err != nil {
		return nil, time.Time{}, errWrong
	}
	if holds == 0 {
		return account(name), time.Time{}, nil
	}
	return account(name), time.Now().Add(holds), nil
}

func (checker) External(_ context.Context, _ string, state tls.ConnectionState) (any, error) {
	name := state.VerifiedChains[0][0].Subject.CommonName
	if name == "nobody" {
		return nil, errWrong
	}
	return account(name), nil
}

func asked(c *Config) { c.Auth = checker{} }

// handshake chooses a mechanism.
func (c *client) handshake(mechanism string, version int16) *kmsg.SASLHandshakeResponse {
	c.t.Helper()
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Version, r.Mechanism = version, mechanism
	return ask[*kmsg.SASLHandshakeResponse](c, r)
}

// show shows a token.
func (c *client) show(token string, version int16) *kmsg.SASLAuthenticateResponse {
	c.t.Helper()
	r := kmsg.NewPtrSASLAuthenticateRequest()
	r.Version, r.SASLAuthBytes = version, []byte(token)
	return ask[*kmsg.SASLAuthenticateResponse](c, r)
}

// plainly shows a user and a password.
func (c *client) plainly(user, password string) *kmsg.SASLAuthenticateResponse {
	c.t.Helper()
	testkit.MustEqual(c.t, c.handshake(mechanismPlain, 1).ErrorCode, 0)
	return c.show("\x00"+user+"\x00"+password, 2)
}

// bearing shows a token of OAUTHBEARER.
func (c *client) bearing(token string) *kmsg.SASLAuthenticateResponse {
	c.t.Helper()
	testkit.MustEqual(c.t, c.handshake(mechanismBearer, 1).ErrorCode, 0)
	return c.show("n,,\x01auth=Bearer "+token+"\x01\x01", 1)
}

// works: the client may do what clients do.
func (c *client) works() {
	c.t.Helper()
	ask[*kmsg.MetadataResponse](c, request(3, 12))
}

// K5: clients show who they are by PLAIN and by a token, in every version.
func TestSASL(t *testing.T) {
	var who any
	f := serve(t, &handler{connected: func(c *Conn) error { who = c.Identity(); return nil }}, asked)
	for version := range int16(3) {
		for _, test := range []struct{ mechanism, token string }{
			{mechanismPlain, "\x00alice\x00alice's password"},
			{mechanismPlain, "whoever\x00alice\x00alice's password"},
			{mechanismBearer, "n,,\x01auth=Bearer alice/1h\x01\x01"},
			{mechanismBearer, "n,a=alice,\x01host=yard\x01auth=bearer alice/0s\x01\x01"},
		} {
			c := f.client()
			c.lives()
			shook := c.handshake(test.mechanism, 1)
			testkit.Equal(t, shook.ErrorCode, 0)
			testkit.Slices(t, shook.SupportedMechanisms, []string{"PLAIN", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"})
			c.lives()
			got := c.show(test.token, version)
			testkit.Equal(t, got.ErrorCode, 0, "%q", test.token)
			lives := strings.Contains(test.token, "1h") && version > 0
			testkit.That(t, lives == (got.SessionLifetimeMillis > 3_500_000), "version %d: %d ms are told of %q", version, got.SessionLifetimeMillis, test.token)
			c.works()
			testkit.Equal(t, who, any(account("alice")))
		}
	}
}

// K5: who shows something wrong hears that, not what was wrong, and is sent away.
func TestSASLThatIsRefused(t *testing.T) {
	for _, test := range []struct {
		name, mechanism, token string
	}{
		{"a wrong password", mechanismPlain, "\x00alice\x00bob's password"},
		{"no password", mechanismPlain, "alice"},
		{"no user", mechanismPlain, "\x00\x00x"},
		{"too much", mechanismPlain, "\x00a\x00b\x00c"},
		{"nothing", mechanismPlain, ""},
		{"a wrong token", mechanismBearer, "n,,\x01auth=Bearer alice\x01\x01"},
		{"a token that has ended", mechanismBearer, "n,,\x01auth=Bearer alice/-1s\x01\x01"},
		{"no token", mechanismBearer, "n,,\x01\x01"},
		{"another scheme", mechanismBearer, "n,,\x01auth=Basic alice/1h\x01\x01"},
		{"no head", mechanismBearer, "auth=Bearer alice/1h"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := serve(t, &handler{connected: func(*Conn) error { t.Error("it got in"); return nil }}, asked)
			c := f.client()
			testkit.Equal(t, c.handshake(test.mechanism, 1).ErrorCode, 0)
			got := c.show(test.token, 2)
			testkit.Equal(t, got.ErrorCode, codeAuthenticationFailed)
			testkit.That(t, got.ErrorMessage != nil && strings.HasPrefix(*got.ErrorMessage, "Authentication failed") &&
				!strings.Contains(*got.ErrorMessage, "wrong"), "it hears %v", got.ErrorMessage)
			c.gone()
			testkit.Eventually(t, "counted", func() bool { return f.refused(reasonAuth)+f.refused(reasonExpired) == 1 })
		})
	}
}

// K5: where it cannot be checked just now clients are to come again, which they do where nobody answers.
func TestSASLThatCannotBeChecked(t *testing.T) {
	for user, reason := range map[string]string{"later": reasonAuth, "oops": reasonPanic} {
		f := serve(t, &handler{}, asked)
		c := f.client()
		c.handshake(mechanismPlain, 1)
		r := kmsg.NewPtrSASLAuthenticateRequest()
		r.SASLAuthBytes = []byte("\x00" + user + "\x00x")
		c.send(r)
		c.gone()
		testkit.Eventually(t, "counted", func() bool { return f.refused(reason) == 1 })
	}
}

// K5: what is not due is refused.
func TestSASLOutOfOrder(t *testing.T) {
	f := serve(t, &handler{}, asked)
	c := f.client()
	got := c.handshake("SCRAM-SHA-1", 1)
	testkit.Equal(t, got.ErrorCode, codeUnsupportedMechanism)
	testkit.Equal(t, len(got.SupportedMechanisms), 4)
	c.gone()

	c = f.client()
	testkit.Equal(t, c.show("\x00alice\x00alice's password", 2).ErrorCode, codeIllegalSASLState)
	c.gone()

	for _, key := range []int16{keyProduce, 1, 3, 22} {
		f := serve(t, &handler{begin: func(context.Context, *Request) Finish { t.Error("it got in"); return nil }}, asked)
		c := f.client()
		c.handshake(mechanismPlain, 1)
		offer, _ := offerOf(key)
		c.send(request(key, offer.Highest))
		c.gone()
		testkit.Eventually(t, "counted", func() bool { return f.refused(reasonStranger) == 1 })
	}
}

// bare sends a bare token.
func (c *client) bare(token string) {
	c.t.Helper()
	c.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...))
}

// K5: old clients send their token without a request around it.
func TestSASLOfOldClients(t *testing.T) {
	f := serve(t, &handler{}, asked)
	c := f.client()
	testkit.Equal(t, c.handshake(mechanismPlain, 0).ErrorCode, 0)
	c.bare("\x00alice\x00alice's password")
	testkit.Equal(t, len(c.frame()), 0, "bytes of the answer")
	c.works()

	c = f.client()
	c.handshake(mechanismPlain, 0)
	c.bare("\x00alice\x00wrong")
	c.gone()
}

// K5: who is not asked may show anything.
func TestSASLWhereNobodyIsAsked(t *testing.T) {
	f := serve(t, &handler{})
	c := f.client()
	c.works()
	testkit.Equal(t, c.plainly("$ConnectionString", "Endpoint=sb://yard/").ErrorCode, 0)
	c.works()
	testkit.Equal(t, c.plainly("another", "x").ErrorCode, 0)
	c.works()
}

// K5: a connection ends with its token, unless another is shown before.
func TestTokensThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		f := serve(t, &handler{connected: func(c *Conn) error { conn = c; return nil }}, asked)
		c := f.client()
		testkit.Equal(t, c.bearing("alice/1m").SessionLifetimeMillis, 60_000)
		c.works()
		time.Sleep(50 * time.Second)
		testkit.Equal(t, c.bearing("alice/1m").ErrorCode, 0)
		time.Sleep(50 * time.Second)
		c.works()
		testkit.Equal(t, c.bearing("alice/0s").SessionLifetimeMillis, 0)
		time.Sleep(5 * time.Minute)
		c.works()
		c.bearing("alice/1m")
		began := time.Now()
		c.gone()
		testkit.Equal(t, time.Since(began), time.Minute)
		testkit.Equal(t, f.refused(reasonExpired), 1)
		testkit.ErrorIs(t, context.Cause(conn.Context()), errExpired)
	})
}

// K5: who shows a right anew keeps its account and its mechanism.
func TestShowingARightAnew(t *testing.T) {
	var conn *Conn
	f := serve(t, &handler{connected: func(c *Conn) error { conn = c; return nil }}, asked)
	c := f.client()
	c.plainly("alice", "alice's password")
	testkit.Equal(t, c.plainly("bob", "bob's password").ErrorCode, 0, "nothing was asked for before")
	c.works()
	testkit.Equal(t, conn.Identity(), any(account("bob")))
	testkit.Equal(t, f.server.Connections()[0].Holder, "bob")
	testkit.Equal(t, c.plainly("bob", "bob's password").ErrorCode, 0)
	testkit.Equal(t, c.plainly("alice", "alice's password").ErrorCode, codeAuthenticationFailed)
	c.gone()

	c = f.client()
	c.plainly("bob", "bob's password")
	c.works()
	testkit.Equal(t, c.handshake(mechanismBearer, 1).ErrorCode, codeUnsupportedMechanism)
	c.gone()

	c = f.client()
	c.plainly("bob", "bob's password")
	c.works()
	testkit.Equal(t, c.plainly("bob", "wrong").ErrorCode, codeAuthenticationFailed)
	c.gone()
}

// K5: requests that are under way when a right is shown anew are answered before.
func TestShowingARightAnewWhileMuchIsUnderWay(t *testing.T) {
	release := make(chan struct{})
	f := serve(t, finishing(func(_ context.Context, w *Writer) error {
		<-release
		return w.Respond(kmsg.NewPtrMetadataResponse())
	}), asked)
	c := f.client()
	c.bearing("alice/1h")
	r := request(3, 12)
	shake := kmsg.NewPtrSASLHandshakeRequest()
	shake.Version, shake.Mechanism = 1, mechanismBearer
	c.send(r, r, shake, r)
	close(release)
	c.answer(r)
	c.answer(r)
	testkit.Equal(t, c.answer(shake).(*kmsg.SASLHandshakeResponse).ErrorCode, 0)
	c.answer(r)
	testkit.Equal(t, c.show("n,,\x01auth=Bearer alice/1h\x01\x01", 2).ErrorCode, 0)
}

// certificate makes one that signs itself.
func certificate(t testing.TB, name string) (tls.Certificate, *x509.Certificate) {
	key := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, testkit.Value(x509.ParseCertificate(der))(t)
}

// K5: a client certificate is enough, and one that names nobody is no hindrance.
func TestCertificates(t *testing.T) {
	server, serverRoot := certificate(t, "yard.example.test")
	alice, aliceRoot := certificate(t, "alice")
	nobody, nobodyRoot := certificate(t, "nobody")
	roots, clients := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(serverRoot)
	clients.AddCert(aliceRoot)
	clients.AddCert(nobodyRoot)
	var who, name string
	f := serve(t, &handler{connected: func(c *Conn) error {
		who, name = fmt.Sprintf("%v %v", c.Identity(), c.TLS()), c.ServerName()
		return nil
	}}, asked)
	address := f.listen(func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{server}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven,
		})
	})
	dial := func(certs ...tls.Certificate) *client {
		nc := testkit.Value((&tls.Dialer{Config: &tls.Config{
			ServerName: "yard.example.test", RootCAs: roots, Certificates: certs,
		}}).DialContext(t.Context(), "tcp", address))(t)
		return newClient(t, nc)
	}
	c := dial(alice)
	c.works()
	testkit.Equal(t, who, "alice true")
	testkit.Equal(t, name, "yard.example.test")

	c = dial(alice)
	testkit.Equal(t, c.plainly("bob", "bob's password").ErrorCode, 0, "what is shown by SASL counts")
	c.works()
	testkit.Equal(t, who, "bob true")

	c = dial(nobody)
	testkit.Equal(t, c.plainly("bob", "bob's password").ErrorCode, 0)
	c.works()

	c = dial()
	c.send(request(3, 12))
	c.gone()

	nc := testkit.Value(net.Dial("tcp", address))(t)
	c = newClient(t, nc)
	c.write([]byte("this is no TLS\n"))
	testkit.Eventually(t, "counted", func() bool { return f.refused(reasonTLS) == 1 })
}
