// Package certs has the certificates of the doors with TLS: a certificate authority of
// the yard's own and a certificate signed by it, made on first start, or those of the
// operator, read again when their files change.
package certs

import (
	"crypto/tls"
	"log/slog"
)

// Config says where certificates are.
type Config struct {
	// Dir keeps the yard's own, in the data folder; made if it is not there.
	Dir string
	// Host is a further name for the yard's own certificate; localhost, the loopback
	// addresses and this machine's name are always in it.
	Host string
	// CertFile and KeyFile are the operator's own; empty: the yard's.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of client certificates; empty: none is asked for.
	ClientCAFile string
	Log          *slog.Logger
}

// Store gives certificates to TLS listeners.
type Store struct{}

// Open loads the certificates, making what is missing.
func Open(cfg Config) (*Store, error) { panic("stub") }

// TLS is the configuration of a listener. Protocols such as h2 are the caller's to add.
func (s *Store) TLS() *tls.Config { panic("stub") }

// CAFile is the file of the yard's own authority; empty with the operator's certificates.
func (s *Store) CAFile() string { panic("stub") }
