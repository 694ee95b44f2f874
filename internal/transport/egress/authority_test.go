package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// authority issues certificates for 127.0.0.1, for servers and clients alike.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	text string // PEM
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.create(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority " + rand.Text()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	return a
}

func (a *authority) create(t testing.TB, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	raw := testkit.Value(x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer))(t)
	cert := testkit.Value(x509.ParseCertificate(raw))(t)
	return cert, key
}

// issue gives PEM of a certificate and its key.
func (a *authority) issue(t testing.TB, name string) (cert, key string) {
	t.Helper()
	c, k := a.create(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{{127, 0, 0, 1}}, DNSNames: []string{"receiver.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der := testkit.Value(x509.MarshalECPrivateKey(k))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// server gives a server's configuration.
func (a *authority) server(t testing.TB) *tls.Config {
	t.Helper()
	cert, key := a.issue(t, "server")
	pair := testkit.Value(tls.X509KeyPair([]byte(cert), []byte(key)))(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool}
}
