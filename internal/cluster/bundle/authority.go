package bundle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

const (
	// life is that of authority and certificates. They are seen by peers only, and end together: to
	// replace them all peers have to be stopped.
	life = 10 * 365 * 24 * time.Hour
	// clockSkew is how far the clock of a peer may be behind that of who made its bundle.
	clockSkew = time.Hour
)

// authority signs the certificates of the peers of one cluster, and is forgotten then.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(yard string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"eventyard"}, CommonName: "peers of " + yard + " " + rand.Text()[:6]},
		NotBefore:    now.Add(-clockSkew), NotAfter: now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err
}

func (a *authority) pem() string { return encode("CERTIFICATE", a.cert.Raw) }

// issue makes the certificate of a peer, which is a server to some peers and a client of others.
func (a *authority) issue(p Peer, now time.Time) (certificate, key string, err error) {
	template := a.template(p.Name, now)
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	if ip := net.ParseIP(p.Host()); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{p.Host()}
	}
	return a.sign(template)
}

// issueNode makes the certificate of a node without a server, which is a client of all.
func (a *authority) issueNode(name string, now time.Time) (certificate, key string, err error) {
	return a.sign(a.template(name, now))
}

func (a *authority) template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"eventyard"}, CommonName: name},
		NotBefore:    now.Add(-clockSkew), NotAfter: a.cert.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
}

// sign makes a key for a certificate, and signs it.
func (a *authority) sign(template *x509.Certificate) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return "", "", err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(private)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", plain), err
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func newSerial() *big.Int {
	bytes := make([]byte, 16)
	_, _ = rand.Read(bytes)         // it never fails
	bytes[0] = bytes[0]&0x7f | 0x40 // positive, and of full length
	return new(big.Int).SetBytes(bytes)
}
