package certs

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"strings"
	"time"
)

// Info is what there is to show of a certificate.
type Info struct {
	Subject, Issuer string
	// Names are the hosts and addresses that it is good for.
	Names               []string
	NotBefore, NotAfter time.Time
	// Fingerprint is the SHA-256 of the certificate, as browsers and openssl show it.
	Fingerprint       string
	CertFile, KeyFile string
	// CA is the yard's own authority, which clients have to trust; nil with the operator's
	// certificates.
	CA *CAInfo
}

// CAInfo is what there is to show of the yard's own authority.
type CAInfo struct {
	Subject     string
	NotAfter    time.Time
	Fingerprint string
	File        string
}

// Describe shows the certificates as they are in their files; it makes none. If there are
// none yet the error is fs.ErrNotExist.
func Describe(cfg Config) (Info, error) {
	err := cfg.validate()
	var info Info
	if err == nil {
		info, err = describe(cfg)
	}
	if err != nil {
		return Info{}, fmt.Errorf("describe certificates: %w", err)
	}
	return info, nil
}

func describe(cfg Config) (Info, error) {
	info := Info{CertFile: cfg.CertFile, KeyFile: cfg.KeyFile}
	if !cfg.operators() {
		info.CertFile, info.KeyFile = cfg.own(certFile), cfg.own(keyFile)
		ca, err := readCert(cfg.own(caFile))
		if err != nil {
			return Info{}, err
		}
		info.CA = &CAInfo{Subject: ca.Subject.String(), NotAfter: ca.NotAfter, Fingerprint: fingerprint(ca), File: cfg.own(caFile)}
	}
	cert, err := readCert(info.CertFile)
	if err != nil && cfg.operators() {
		err = &FileError{"certificate " + info.CertFile, err}
	}
	if err != nil {
		return Info{}, err
	}
	info.show(cert)
	return info, nil
}

func (i *Info) show(cert *x509.Certificate) {
	i.Subject, i.Issuer = cert.Subject.String(), cert.Issuer.String()
	i.Names = namesOf(cert)
	i.NotBefore, i.NotAfter = cert.NotBefore, cert.NotAfter
	i.Fingerprint = fingerprint(cert)
}

// Info shows the certificates as they are in their files now, or in memory where all nodes share
// the authority.
func (s *Store) Info() (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from, ok := s.source.(*shared); ok {
		info := Info{CA: &CAInfo{Subject: from.ca.cert.Subject.String(), NotAfter: from.ca.cert.NotAfter, Fingerprint: fingerprint(from.ca.cert)}}
		info.show(from.pair.Leaf)
		return info, nil
	}
	return Describe(s.cfg)
}

func fingerprint(cert *x509.Certificate) string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(cert.Raw)), " ", ":")
}
