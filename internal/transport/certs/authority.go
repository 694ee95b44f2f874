package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"time"
)

// clockSkew is how far the clock of a client may be behind ours.
const clockSkew = time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	// key is nil if it is not there: an operator may keep it elsewhere between renewals.
	key crypto.Signer
}

// newAuthority has a random end in its name, so that two of them can be distinguished in a
// list of trusted ones.
func newAuthority(now time.Time) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"eventyard"}, CommonName: "eventyard local authority " + rand.Text()[:6]},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(caLife),
		KeyUsage:     x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		// What it may sign for: who trusts it for TLS need not trust it for programs or mail.
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, err := create(template, template, key.Public(), key)
	return &authority{cert, key}, err
}

// issue makes a certificate for a server; it does not outlive the authority.
func (a *authority) issue(wanted names, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(leafLife)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{Organization: []string{"eventyard"}, CommonName: wanted.common},
		DNSNames:              wanted.hosts,
		IPAddresses:           wanted.addresses,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	cert, err := create(template, a.cert, key.Public(), a.key)
	return cert, key, err
}

func create(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newSerial() *big.Int {
	bytes := make([]byte, 16)
	rand.Read(bytes)                // never fails
	bytes[0] = bytes[0]&0x7f | 0x40 // positive, and of full length
	return new(big.Int).SetBytes(bytes)
}

// readAuthority reads an authority; fs.ErrNotExist if its certificate is not there.
//
// The certificate stands beside its key, in the same file, so that no crash can part them;
// the file that clients are given is a copy. A key that stands alone belongs to the
// certificate of that copy.
func readAuthority(certFile, keyFile string, keys Keys) (*authority, error) {
	key, err := readKey(keyFile, keys)
	if errors.Is(err, fs.ErrNotExist) {
		key, keyFile = nil, certFile
	} else if err != nil {
		return nil, err
	}
	cert, err := readCert(keyFile)
	if errors.Is(err, errNoBlock) && keyFile != certFile {
		cert, err = readCert(certFile)
	}
	if err != nil {
		return nil, err
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("%s is not the certificate of an authority", certFile)
	}
	if key != nil {
		public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
		if !ok || !public.Equal(cert.PublicKey) {
			return nil, fmt.Errorf("%s is not the key of %s", keyFile, certFile)
		}
	}
	return &authority{cert, key}, nil
}
