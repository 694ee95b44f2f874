package amqp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	azure "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// checker knows one user, and certificates by their common name.
type checker struct{ passwords }

func (checker) External(_ context.Context, _ string, state tls.ConnectionState) (any, error) {
	name := state.VerifiedChains[0][0].Subject.CommonName
	if name == "" {
		return nil, errors.New("nobody")
	}
	return name, nil
}

// certificate makes one that signs itself.
func certificate(t testing.TB, name string) (tls.Certificate, *x509.CertPool) {
	key := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	parsed := testkit.Value(x509.ParseCertificate(der))(t)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// listen serves a TCP listener, maybe with TLS, and gives its address.
func (f *fixture) listen(wrap func(net.Listener) net.Listener) string {
	f.t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(f.t)
	address := l.Addr().String()
	if wrap != nil {
		l = wrap(l)
	}
	f.serves.Go(func() {
		testkit.Check(f.t, f.server.Serve(context.Background(), l))
	})
	return address
}

// tcp is a connection by way of the network.
func (f *fixture) tcp() net.Conn {
	f.t.Helper()
	nc := testkit.Value(net.Dial("tcp", f.listen(nil)))(f.t)
	f.t.Cleanup(func() { nc.Close() })
	return nc
}

func TestTLSWithAClientCertificate(t *testing.T) { // H9
	serverCert, serverRoots := certificate(t, "yard.example.test")
	clientCert, clientRoots := certificate(t, "policy")
	got := make(chan Identity, 1)
	h := accept(&sink{}, nil)
	h.connected = func(c *Conn) error { got <- c.Identity(); return nil }
	f := serve(t, h, func(c *Config) { c.Auth = checker{} })
	address := f.listen(func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{serverCert}, ClientCAs: clientRoots, ClientAuth: tls.VerifyClientCertIfGiven,
		})
	})
	dial := func(certs []tls.Certificate, sasl azure.SASLType) (*azure.Conn, error) {
		nc, err := (&tls.Dialer{Config: &tls.Config{
			ServerName: "yard.example.test", RootCAs: serverRoots, Certificates: certs,
		}}).DialContext(t.Context(), "tcp", address)
		testkit.Must(t, err)
		return azure.NewConn(t.Context(), nc, &azure.ConnOptions{SASLType: sasl})
	}

	conn := testkit.Value(dial([]tls.Certificate{clientCert}, azure.SASLTypeExternal("")))(t)
	testkit.MustEqual(t, receive(t, got, "Connected"), (Identity{Mechanism: "EXTERNAL", Value: "policy"}))
	session := testkit.Value(conn.NewSession(t.Context(), nil))(t)
	sender := testkit.Value(session.NewSender(t.Context(), "hub", nil))(t)
	testkit.Must(t, sender.Send(t.Context(), azure.NewMessage([]byte("x")), nil))
	testkit.Must(t, conn.Close())

	if _, err := dial(nil, azure.SASLTypeExternal("")); err == nil {
		t.Fatal("EXTERNAL without a certificate was let in")
	}
}

func TestPlainBytesOnTheTLSPort(t *testing.T) {
	cert, _ := certificate(t, "yard.example.test")
	f := serve(t, accept(nil, nil))
	address := f.listen(func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
	})
	nc := testkit.Value(net.Dial("tcp", address))(t)
	defer nc.Close()
	if _, err := azure.NewConn(t.Context(), nc, nil); err == nil {
		t.Fatal("connected")
	}
	testkit.Must(t, f.server.Stop(t.Context()))
	testkit.MustEqual(t, f.refused(reasonTLS), 1, "not counted")
}
