// Package certs has the certificates of the listeners with TLS: a certificate authority of
// the yard's own and a certificate signed by it, made on first start and renewed before
// it ends, or those of the operator, read again when their files change. The authority is in
// files of the data folder (local.go) or, where a yard has several nodes, in a store that
// they share (shared.go).
package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where certificates are.
type Config struct {
	// Dir keeps the yard's own, in the data folder; made if it is not there.
	Dir string
	// Authority keeps the authority for all nodes of a yard, and Dir is not used; nil: it is in Dir.
	Authority AuthorityStore
	// Host is a further name for the yard's own certificate; localhost, the loopback
	// addresses and this machine's name are always in it.
	Host string
	// Addresses are what the listeners listen on, names or addresses, with or without a port:
	// they are in the yard's own certificate, too. One that stands for all addresses of
	// this machine, such as 0.0.0.0, brings all of them in.
	Addresses []string
	// CertFile and KeyFile are the operator's own; empty: the yard's.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of client certificates; empty: none is asked for.
	// It is read once.
	ClientCAFile string
	// Keys seal the private keys of the yard's own; nil: they are written in clear.
	Keys Keys
	// Replaced is told of each certificate that is taken into use in the place of another, and returns at once; nil:
	// nobody is.
	Replaced func(leaf *x509.Certificate)
	// Log reports what was made, renewed or could not be read; nil means slog.Default().
	Log *slog.Logger
}

// The files of the yard's own certificates.
const (
	caFile    = "ca.pem"
	caKeyFile = "ca-key.pem"
	certFile  = "cert.pem"
	keyFile   = "key.pem"
)

// OwnFiles are the names of the files in a Config's Dir.
func OwnFiles() []string { return []string{caFile, caKeyFile, certFile, keyFile} }

// operators reports whether the certificate is the operator's.
func (c Config) operators() bool { return c.CertFile != "" || c.KeyFile != "" }

func (c Config) own(file string) string { return filepath.Join(c.Dir, file) }

func (c Config) validate() error {
	switch {
	case c.operators() && (c.CertFile == "" || c.KeyFile == ""):
		return errors.New("a certificate and its key are given together or not at all")
	case !c.operators() && c.Dir == "" && c.Authority == nil:
		return errors.New("a folder to keep the certificates in is required")
	}
	return nil
}

// checkEvery is how often files and dates are looked at, at most: with the first
// handshake after that time.
const checkEvery = time.Minute

// Store gives certificates to TLS listeners. All methods may be called by many goroutines at once.
type Store struct {
	cfg     Config
	clients *x509.CertPool
	pair    atomic.Pointer[tls.Certificate]

	// mu is held by who looks whether the certificate has to be another.
	mu       sync.Mutex
	source   source    // guarded by mu
	checked  time.Time // guarded by mu
	unusable error     // guarded by mu: why what the last look found is not in use
}

// source is where a certificate comes from.
type source interface {
	// changed reports whether load would give another certificate than it did last.
	changed() bool
	load() (*tls.Certificate, error)
}

// Open loads the certificates, making what is missing.
func Open(cfg Config) (*Store, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open certificates: %w", err)
	}
	s := &Store{cfg: cfg, checked: time.Now(), source: &local{cfg: cfg}}
	if cfg.Authority != nil {
		s.source = &shared{cfg: cfg}
	}
	if cfg.operators() {
		s.source = &files{cfg: cfg}
	}
	if file := cfg.ClientCAFile; file != "" {
		var err error
		if s.clients, err = ReadAuthorities(file); err != nil {
			return nil, fmt.Errorf("open certificates: %w", err)
		}
	}
	pair, err := s.source.load()
	if err != nil {
		return nil, fmt.Errorf("open certificates: %w", err)
	}
	s.pair.Store(pair)
	return s, nil
}

// ReadAuthorities reads the authorities of client certificates. Its error is a *FileError.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	text, err := os.ReadFile(file)
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s holds no certificate", file)
	}
	if err != nil {
		return nil, &FileError{"authorities of clients", err}
	}
	return pool, nil
}

// TLS is the configuration of a listener. Protocols such as h2 are the caller's to add.
// A client that shows a certificate has to have it from one of the client authorities.
func (s *Store) TLS() *tls.Config {
	cfg := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate(), nil },
	}
	if s.clients != nil {
		cfg.ClientCAs = s.clients
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return cfg
}

// CAFile is the file of the yard's own authority; empty with the operator's certificates, and where
// all nodes share the authority.
func (s *Store) CAFile() string {
	if s.cfg.operators() || s.cfg.Authority != nil {
		return ""
	}
	return s.cfg.own(caFile)
}

// certificate is the present one, after a look at whether it has to be another if the
// last look is long ago.
func (s *Store) certificate() *tls.Certificate {
	if s.mu.TryLock() { // else somebody is looking already
		defer s.mu.Unlock()
		if time.Since(s.checked) >= checkEvery {
			s.checked = time.Now()
			s.refreshLocked()
		}
	}
	return s.pair.Load()
}

// Refresh looks at once whether the certificate has to be another. The error is why what its files hold cannot be
// used: the one before goes on then.
func (s *Store) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Now()
	s.refreshLocked()
	return s.unusable
}

// Unusable is why the certificate that the files held at the last look cannot be used; nil: it is in use.
func (s *Store) Unusable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unusable
}

// refreshLocked takes a changed certificate into use. If that fails the old one stays in use.
func (s *Store) refreshLocked() {
	if !s.source.changed() {
		return
	}
	pair, err := s.source.load()
	if s.unusable = err; err != nil {
		s.cfg.Log.Warn("new certificate cannot be used, going on with the old one", "error", err, "until", s.pair.Load().Leaf.NotAfter)
		return
	}
	s.pair.Store(pair)
	s.cfg.Log.Info("certificate taken into use", "subject", pair.Leaf.Subject.String(), "until", pair.Leaf.NotAfter)
	if s.cfg.Replaced != nil {
		s.cfg.Replaced(pair.Leaf)
	}
}
