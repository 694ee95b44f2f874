package certs

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// AuthorityStore keeps the authority of a yard of several nodes, which all of them sign with, so
// that clients trust one authority and reach any node. All methods may be called by many goroutines
// at once; they block until ctx ends at most.
type AuthorityStore interface {
	// Get gives the authority, as PEM of its private key and its certificate, with a revision that
	// every change raises. It may be old by a moment, but is never older than what Set has met. The
	// error is fs.ErrNotExist where there is none.
	Get(ctx context.Context) (text []byte, revision uint64, err error)
	// Set stores it where the revision is still that one, zero where there is none, and gives the new
	// revision. It is durable when it returns, and nobody who lacks the yard's secret key can read it.
	// ErrChanged: another node was faster, and nothing was changed.
	Set(ctx context.Context, text []byte, revision uint64) (uint64, error)
}

// ErrChanged: another node has stored an authority meanwhile.
var ErrChanged = errors.New("another node was faster")

// How long the store of the authority may take: at a start, and in a handshake that happens to be
// the one that looks.
const (
	storePatience = 30 * time.Second
	lookPatience  = 2 * time.Second
)

// shared is a certificate that a node makes itself, with the authority of the whole yard. The
// certificate and its key are in memory alone: each start makes them, and no other node has them.
// The first node that needs an authority makes it, the store decides which one is first, and all
// others take that one; likewise when it nears its end.
type shared struct {
	cfg      Config
	ca       *authority
	revision uint64           // of ca
	pair     *tls.Certificate // what was made last, by ca
}

func (s *shared) changed() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	// While the store is out of reach the authority that is known is good.
	if _, revision, err := s.cfg.Authority.Get(ctx); errors.Is(err, fs.ErrNotExist) || err == nil && revision != s.revision {
		return true
	}
	wanted, err := s.cfg.names()
	return err == nil && (s.ca.ends() || reasonToRenew(s.pair, wanted) != "")
}

func (s *shared) load() (*tls.Certificate, error) {
	wanted, err := s.cfg.names()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	ca, revision, err := s.authority(ctx)
	if err != nil {
		return nil, err
	}
	if s.pair != nil && ca.cert.Equal(s.ca.cert) && reasonToRenew(s.pair, wanted) == "" {
		s.revision = revision
		return s.pair, nil
	}
	cert, key, err := ca.issue(wanted, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	s.ca, s.revision = ca, revision
	s.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	s.cfg.Log.Info("certificate made with the authority of all nodes", "authority", fingerprint(ca.cert), "until", cert.NotAfter)
	return s.pair, nil
}

// authority gives the one that the yard has, and makes it where there is none or it nears its end.
// Who loses to another node reads what that one has stored, so the loop ends.
func (s *shared) authority(ctx context.Context) (*authority, uint64, error) {
	for {
		text, revision, err := s.cfg.Authority.Get(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			revision = 0
		case err != nil:
			return nil, 0, fmt.Errorf("read the authority of all nodes: %w", err)
		default:
			ca, err := parseAuthority(text)
			if err != nil {
				return nil, 0, fmt.Errorf("read the authority of all nodes: %w", err)
			}
			if !ca.ends() {
				return ca, revision, nil
			}
			s.cfg.Log.Warn("authority of the certificates nears its end and is made anew: give clients the new one", "until", ca.cert.NotAfter)
		}
		made, err := newAuthority(time.Now())
		if err != nil {
			return nil, 0, fmt.Errorf("make an authority: %w", err)
		}
		if text, err = made.encode(); err != nil {
			return nil, 0, fmt.Errorf("make an authority: %w", err)
		}
		revision, err = s.cfg.Authority.Set(ctx, text, revision)
		if errors.Is(err, ErrChanged) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("store the authority of all nodes: %w", err)
		}
		s.cfg.Log.Info("certificate authority made", "authority", fingerprint(made.cert), "until", made.cert.NotAfter)
		return made, revision, nil
	}
}

// ends tells whether the authority is so near its end that it has to be another.
func (a *authority) ends() bool { return time.Until(a.cert.NotAfter) < renewBefore }

// encode gives an authority as PEM: its key, then its certificate.
func (a *authority) encode() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), pem.EncodeToMemory(block(a.cert))...), nil
}

// parseAuthority reads what encode wrote.
func parseAuthority(text []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(text, text) // also checks that key and certificate fit
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("it is not the certificate of an authority")
	}
	return &authority{pair.Leaf, key}, nil
}

// CA gives the certificate of the yard's own authority, which clients have to trust, as PEM; nil
// with the operator's certificates.
func (s *Store) CA() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch from := s.source.(type) {
	case *shared:
		return pem.EncodeToMemory(block(from.ca.cert)), nil
	case *local:
		cert, err := readCert(s.cfg.own(caFile))
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(block(cert)), nil
	}
	return nil, nil
}
