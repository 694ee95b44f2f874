package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// journal is a log that can be searched.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte(what))
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = testkit.Quiet()
	}
	return testkit.Value(Open(cfg))(t)
}

// handshake is a real one, between a client and a server of the store. It gives what the
// client saw, and what the server did.
func handshake(t *testing.T, s *Store, client *tls.Config) (saw, did tls.ConnectionState, err error) {
	t.Helper()
	near, far := net.Pipe()
	server := tls.Server(far, s.TLS())
	served := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err != nil {
			far.Close()
		}
		served <- err
	}()
	conn := tls.Client(near, client)
	err = conn.Handshake()
	if err == nil {
		// With TLS 1.3 a client learns only now that its certificate was refused.
		go server.Write([]byte{1})
		_, err = conn.Read(make([]byte, 1))
	}
	saw = conn.ConnectionState()
	near.Close()
	err = errors.Join(err, <-served)
	did = server.ConnectionState()
	far.Close()
	return saw, did, err
}

// trusting is a client that trusts the store's authority.
func trusting(t *testing.T, s *Store, name string) *tls.Config {
	t.Helper()
	ca := testkit.Value(readCert(s.CAFile()))(t)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{RootCAs: pool, ServerName: name}
}

// leaf is the certificate that clients are shown.
func leaf(t *testing.T, s *Store) *x509.Certificate {
	t.Helper()
	saw, _, err := handshake(t, s, trusting(t, s, "localhost"))
	testkit.Must(t, err)
	return saw.PeerCertificates[0]
}

// makePair makes a certificate of an authority in two files.
func makePair(t *testing.T, ca *authority, dir, host string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "site.pem"), filepath.Join(dir, "site-key.pem")
	cert, key, err := ca.issue(names{common: host, hosts: []string{host}}, time.Now())
	testkit.Must(t, err)
	testkit.Must(t, errors.Join(writeCert(certFile, cert), writeKey(keyFile, nil, key)))
	return certFile, keyFile
}

func mustAuthority(t *testing.T) *authority {
	t.Helper()
	return testkit.Value(newAuthority(time.Now()))(t)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return testkit.Value(os.ReadFile(file))(t)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
}
