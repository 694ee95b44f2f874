package certs

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// operatorsClient trusts an authority of the operator's.
func operatorsClient(ca *authority, name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &tls.Config{RootCAs: pool, ServerName: name}
}

// The operator's certificate is used as it is, and nothing is made.
func TestOperatorsFiles(t *testing.T) {
	ca, dir, own := mustAuthority(t), t.TempDir(), filepath.Join(t.TempDir(), "certs")
	cert, key := makePair(t, ca, dir, "site.example.net")
	s := open(t, Config{Dir: own, CertFile: cert, KeyFile: key})
	testkit.Check(t, testkit.Err3(handshake(t, s, operatorsClient(ca, "site.example.net"))))
	testkit.Equal(t, s.CAFile(), "", "authority")
	testkit.ErrorIs(t, testkit.Err(os.Stat(own)), fs.ErrNotExist, "the yard's own folder")
}

// Files that cannot be used are told of in words that are not Go's.
func TestOperatorsFilesThatAreNone(t *testing.T) {
	ca, dir := mustAuthority(t), t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	testkit.Must(t, os.WriteFile(notes, []byte("none\n"), 0o600))
	cert, key := makePair(t, ca, dir, "a")
	_, otherKey := makePair(t, ca, t.TempDir(), "a")
	for what, x := range map[string]struct {
		cfg  Config
		says string
	}{
		"a certificate without a key": {Config{CertFile: cert}, ""},
		"a key without a certificate": {Config{KeyFile: key}, ""},
		"no such file":                {Config{CertFile: cert + "x", KeyFile: key}, cert + "x"},
		"another's key":               {Config{CertFile: cert, KeyFile: otherKey}, ": private key does not match public key"},
		"the two exchanged":           {Config{CertFile: key, KeyFile: cert}, "PEM inputs may have been switched"},
		"no certificate":              {Config{CertFile: notes, KeyFile: key}, ": " + notes + " has no certificate in it, as PEM"},
		"no key":                      {Config{CertFile: cert, KeyFile: notes}, ": " + notes + " has no private key in it, as PEM"},
	} {
		t.Run(what, func(t *testing.T) {
			s, err := Open(x.cfg)
			testkit.MustThat(t, err != nil && s == nil, "%v, %v", s, err)
			testkit.That(t, strings.Contains(err.Error(), x.says) && !strings.Contains(err.Error(), "tls: "), "it says %v", err)
		})
	}
}

// A changed certificate is taken into use without a restart; a broken one is not, and is
// reported once.
func TestOperatorsFilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ca, dir := mustAuthority(t), t.TempDir()
		cert, key := makePair(t, ca, dir, "one.example")
		var replaced []string
		s := open(t, Config{CertFile: cert, KeyFile: key, Log: log.logger(), Replaced: func(leaf *x509.Certificate) { replaced = append(replaced, leaf.DNSNames...) }})
		serves := func(what, name string) {
			t.Helper()
			testkit.Check(t, testkit.Err3(handshake(t, s, operatorsClient(ca, name))), "%s", what)
		}
		serves("at first", "one.example")
		makePair(t, ca, dir, "two.example")
		serves("a moment later", "one.example")
		time.Sleep(checkEvery)
		serves("after a minute", "two.example")

		write(t, cert, "nonsense")
		for range 3 {
			time.Sleep(checkEvery)
			serves("with a broken file", "two.example")
		}
		testkit.Equal(t, log.count("going on with the old one"), 1, "reported times")
		testkit.That(t, s.Refresh() != nil && s.Unusable() != nil, "what cannot be used is told again when asked")
		testkit.Must(t, os.Remove(key))
		time.Sleep(checkEvery)
		serves("with a missing one", "two.example")
		makePair(t, ca, dir, "three.example")
		time.Sleep(checkEvery)
		serves("once it is mended", "three.example")
		testkit.Equal(t, log.count("taken into use"), 2, "changes are told")
		makePair(t, ca, dir, "four.example")
		testkit.Must(t, s.Refresh())
		testkit.Must(t, s.Unusable())
		serves("when told to look", "four.example")
		testkit.Slices(t, replaced, []string{"two.example", "three.example", "four.example"}, "told as replaced") // V5
	})
}

func TestOperatorsCertificateEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		cert, key := makePair(t, mustAuthority(t), t.TempDir(), "a")
		open(t, Config{CertFile: cert, KeyFile: key, Log: log.logger()})
		testkit.Equal(t, log.count("ends soon"), 0, "a warning too early")
		time.Sleep(leafLife - soon + time.Hour)
		open(t, Config{CertFile: cert, KeyFile: key, Log: log.logger()})
		testkit.Equal(t, log.count("ends soon"), 1, "no warning")
	})
}

// H9: a client may show a certificate, and then it has to be good.
func TestClientCertificates(t *testing.T) {
	ca, stranger, dir := mustAuthority(t), mustAuthority(t), t.TempDir()
	file := filepath.Join(dir, "clients.pem")
	testkit.Must(t, writeCert(file, ca.cert))
	asking, silent := open(t, Config{Dir: dir, ClientCAFile: file}), open(t, Config{Dir: dir})
	show := func(s *Store, by *authority) (chains int, err error) {
		client := trusting(t, s, "localhost")
		if by != nil {
			pair := clientPair(t, by, "app")
			// A client picks by the authorities that the server names; this one shows what it has.
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		_, did, err := handshake(t, s, client)
		return len(did.VerifiedChains), err
	}
	tests := []struct {
		what   string
		store  *Store
		by     *authority
		chains int
		good   bool
	}{
		{"none need be shown", asking, nil, 0, true},
		{"one of the authority's", asking, ca, 1, true},
		{"one of a stranger's", asking, stranger, 0, false},
		{"none is asked for", silent, stranger, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			chains, err := show(tt.store, tt.by)
			if (err == nil) != tt.good || chains != tt.chains {
				t.Errorf("%d chains, %v", chains, err)
			}
		})
	}
}

// clientPair is a certificate for a client: as one for a server, but for its usage.
func clientPair(t *testing.T, ca *authority, name string) tls.Certificate {
	t.Helper()
	key, err := newKey()
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: newSerial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	template.Subject.CommonName = name
	cert, err := create(template, ca.cert, key.Public(), ca.key)
	testkit.Must(t, err)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func TestInfo(t *testing.T) {
	dir := t.TempDir()
	testkit.ErrorIs(t, testkit.Err(Describe(Config{Dir: dir})), fs.ErrNotExist, "before there are any")
	s := open(t, Config{Dir: dir, Host: "yard.example.net", Addresses: []string{"10.0.0.7:1", "9.0.0.1"}})
	info, err := s.Info()
	testkit.Must(t, err)
	cert := leaf(t, s)
	if info.Subject != "CN=yard.example.net,O=eventyard" || !strings.Contains(info.Issuer, "eventyard local authority") || info.CA.Subject != info.Issuer {
		t.Errorf("got %+v of %+v", info, info.CA)
	}
	if !slices.Contains(info.Names, "yard.example.net") || !slices.Contains(info.Names, "::1") || slices.Index(info.Names, "9.0.0.1") > slices.Index(info.Names, "10.0.0.7") {
		t.Errorf("names %q", info.Names)
	}
	if !info.NotAfter.Equal(cert.NotAfter) || !info.NotBefore.Equal(cert.NotBefore) || info.CA.NotAfter.Before(info.NotAfter) {
		t.Errorf("from %v to %v", info.NotBefore, info.NotAfter)
	}
	if info.Fingerprint != fingerprint(cert) || len(info.Fingerprint) != 95 || info.CA.Fingerprint == info.Fingerprint {
		t.Errorf("fingerprint %s", info.Fingerprint)
	}
	if info.CertFile != filepath.Join(dir, "cert.pem") || info.KeyFile != filepath.Join(dir, "key.pem") || info.CA.File != s.CAFile() {
		t.Errorf("files %s, %s, %s", info.CertFile, info.KeyFile, info.CA.File)
	}

	certFile, keyFile := makePair(t, mustAuthority(t), dir, "site.example")
	info, err = Describe(Config{CertFile: certFile, KeyFile: keyFile})
	if err != nil || info.CA != nil || !slices.Equal(info.Names, []string{"site.example"}) || info.CertFile != certFile {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := Describe(Config{CertFile: certFile}); err == nil {
		t.Error("half a configuration is described")
	}
}
