package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// clientCertificate makes one that signs itself, with a policy's name, and its file.
func clientCertificate(t *testing.T, policy string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: policy},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	testkit.Must(t, err)
	file := filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// H9: a client certificate is as good as the key of the policy that it names.
func TestClientCertificates(t *testing.T) {
	mine, file := clientCertificate(t, "till")
	stranger, _ := clientCertificate(t, "till")
	cfg := everyListener(t)
	cfg.TLS.ClientCAFile = file
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	cfg.Policies = []Policy{{Name: "till", Rights: []string{"send"}}}
	r := start(t, cfg)
	dial := func(shown ...tls.Certificate) (*goamqp.Conn, error) {
		trusted := r.trust()
		trusted.Certificates = shown
		conn, err := tls.Dial("tcp", r.host("amqps"), trusted)
		if err != nil {
			return nil, err
		}
		return goamqp.NewConn(t.Context(), conn, &goamqp.ConnOptions{SASLType: goamqp.SASLTypeExternal("")})
	}
	conn, err := dial(mine)
	testkit.Must(t, err)
	session, err := conn.NewSession(t.Context(), nil)
	testkit.Must(t, err)
	testkit.Check(t, send(t.Context(), session, "h", "x"))
	_ = conn.Close()
	for name, shown := range map[string][]tls.Certificate{"a stranger's": {stranger}, "no": nil} {
		if conn, err := dial(shown...); err == nil {
			t.Errorf("%s certificate is good", name)
			_ = conn.Close()
		}
	}
	r.shutdown()
}
