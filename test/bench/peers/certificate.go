package main

import (
	"bytes"
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
	"time"
)

// certificateName is the host that the certificate is for, whatever the address.
const certificateName = "peers.test"

// certificate is a file of the one certificate that all servers have: cert.pem, key.pem, or both as keys.pem.
func (b *bench) certificate(file string) string { return filepath.Join(b.folder, file) }

// makeCertificate writes these files, and gives what clients trust.
func (b *bench) makeCertificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	self := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: certificateName}, DNSNames: []string{certificateName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM, "keys.pem": bytes.Join([][]byte{keyPEM, certPEM}, nil)} {
		if err := os.WriteFile(b.certificate(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certPEM)
	return &tls.Config{RootCAs: trusted, ServerName: certificateName}, nil
}
