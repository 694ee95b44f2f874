package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// How long the yard's own certificates are good. Some clients refuse certificates of
// more than 825 days, whoever signed them.
//
// The authority is made anew once in its life, 30 days before its end. From then on the yard shows
// certificates of the new one, which clients have to be given; a warning says so.
const (
	caLife      = 10 * 365 * 24 * time.Hour
	leafLife    = 397 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
)

// local is a certificate that the yard makes itself, with an authority of its own.
//
// The authority is what clients have to trust, so it stays as long as it can. The
// certificate under it is made anew whenever there is a reason: it nears its end, lacks a
// name, does not fit its key or the authority, or cannot be read.
type local struct {
	cfg  Config
	pair *tls.Certificate // what was loaded last
	seen os.FileInfo      // of its file
	// kept is the reason for which it should be another and, for want of the authority's
	// key, is not; empty if there is none.
	kept string
}

func (l *local) changed() bool {
	info, _ := os.Stat(l.cfg.own(certFile))
	if !sameFile(info, l.seen) {
		return true
	}
	wanted, err := l.cfg.names()
	if err != nil {
		return false
	}
	reason := reasonToRenew(l.pair, wanted)
	return reason != "" && reason != l.kept
}

func (l *local) load() (*tls.Certificate, error) {
	wanted, err := l.cfg.names()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	ca, err := l.authority()
	if err != nil {
		return nil, err
	}
	pair, reason := l.present(ca, wanted)
	l.kept = ""
	switch {
	case reason == "":
	case ca.key == nil && pair != nil && time.Now().Before(pair.Leaf.NotAfter): // good, if not good enough
		l.kept = reason
		l.cfg.Log.Warn("certificate cannot be made anew without the key of the authority, going on with it",
			"because", reason, "key", l.cfg.own(caKeyFile))
	default:
		if pair, err = l.issue(ca, wanted, reason); err != nil {
			return nil, err
		}
	}
	l.pair = pair
	l.seen, _ = os.Stat(l.cfg.own(certFile))
	return pair, nil
}

// authority reads the authority, or makes it if there is none. First comes the file with
// its key and certificate, then the copy for clients: a crash in between leaves an old
// copy, or none, which the next start mends.
func (l *local) authority() (*authority, error) {
	ca, err := readAuthority(l.cfg.own(caFile), l.cfg.own(caKeyFile), l.cfg.Keys)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case ca.ends() && ca.key != nil:
		l.cfg.Log.Warn("authority of the certificates nears its end and is made anew: give clients the new one",
			"file", l.cfg.own(caFile), "until", ca.cert.NotAfter)
	default:
		return ca, l.copyAuthority(ca)
	}
	if ca, err = newAuthority(time.Now()); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	if err := writeKey(l.cfg.own(caKeyFile), l.cfg.Keys, ca.key, ca.cert); err != nil {
		return nil, err
	}
	if err := l.copyAuthority(ca); err != nil {
		return nil, err
	}
	l.cfg.Log.Info("certificate authority made", "file", l.cfg.own(caFile), "until", ca.cert.NotAfter)
	return ca, nil
}

// copyAuthority makes the file that clients are given hold the authority in use.
func (l *local) copyAuthority(ca *authority) error {
	if there, err := readCert(l.cfg.own(caFile)); err == nil && there.Equal(ca.cert) {
		return nil
	}
	return writeCert(l.cfg.own(caFile), ca.cert)
}

// present reads the certificate there is, and says why it has to be made anew; empty if
// it need not.
func (l *local) present(ca *authority, wanted names) (*tls.Certificate, string) {
	pair, err := readPair(l.cfg.own(certFile), l.cfg.own(keyFile), l.cfg.Keys)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "there is none"
	case err != nil:
		return nil, err.Error()
	case pair.Leaf.CheckSignatureFrom(ca.cert) != nil:
		return nil, "it is not of the authority"
	}
	return &pair, reasonToRenew(&pair, wanted)
}

// reasonToRenew leaves names alone that are not wanted any more: who has just moved may
// still be known by the old one.
func reasonToRenew(pair *tls.Certificate, wanted names) string {
	if time.Until(pair.Leaf.NotAfter) < renewBefore {
		return "it nears its end"
	}
	if missing := wanted.missing(pair.Leaf); missing != "" {
		return "it lacks the name " + missing
	}
	return ""
}

func (l *local) issue(ca *authority, wanted names, reason string) (*tls.Certificate, error) {
	if ca.key == nil {
		return nil, fmt.Errorf("make a certificate because %s: the key of the authority is not in %s: put it back, or remove %s to get a new authority",
			reason, l.cfg.own(caKeyFile), l.cfg.own(caFile))
	}
	cert, key, err := ca.issue(wanted, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	if err := writeKey(l.cfg.own(keyFile), l.cfg.Keys, key); err != nil {
		return nil, err
	}
	if err := writeCert(l.cfg.own(certFile), cert); err != nil {
		return nil, err
	}
	l.cfg.Log.Info("certificate made", "file", l.cfg.own(certFile), "because", reason, "until", cert.NotAfter)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}
