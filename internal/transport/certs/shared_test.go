package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// oneStore is an AuthorityStore in memory.
type oneStore struct {
	mu       sync.Mutex
	text     []byte
	revision uint64
	broken   error // of every call
	sets     int   // that have stored something
}

func (s *oneStore) Get(context.Context) ([]byte, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil && s.broken == nil {
		return nil, 0, fs.ErrNotExist
	}
	return s.text, s.revision, s.broken
}

func (s *oneStore) Set(_ context.Context, text []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return 0, s.broken
	}
	if revision != s.revision {
		return 0, ErrChanged
	}
	s.text, s.revision, s.sets = bytes.Clone(text), s.revision+1, s.sets+1
	return s.revision, nil
}

func (s *oneStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// together is the store as one of several nodes has it that all look before any of them goes on.
type together struct {
	*oneStore
	all    *sync.WaitGroup
	looked sync.Once
}

func (s *together) Get(ctx context.Context) ([]byte, uint64, error) {
	defer s.looked.Do(func() {
		s.all.Done()
		s.all.Wait()
	})
	return s.oneStore.Get(ctx)
}

// under is a client that trusts what one node says is the authority, and no more.
func under(t *testing.T, s *Store) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	testkit.MustThat(t, pool.AppendCertsFromPEM(testkit.Value(s.CA())(t)), "there is no certificate in the authority")
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

// C4: nodes that start at once have one authority, and each a certificate of its own: who trusts
// one of them trusts all.
func TestNodesShareTheAuthority(t *testing.T) {
	store := &oneStore{}
	nodes := make([]*Store, 6)
	var all, looked sync.WaitGroup
	looked.Add(len(nodes))
	for i := range nodes {
		all.Go(func() {
			s, err := Open(Config{Authority: &together{oneStore: store, all: &looked}, Log: testkit.Quiet()})
			testkit.Check(t, err)
			nodes[i] = s
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	testkit.Equal(t, store.sets, 1, "authorities were stored")
	seen := map[string]bool{}
	for _, s := range nodes {
		for _, other := range nodes {
			saw, _, err := handshake(t, s, under(t, other))
			testkit.Must(t, err)
			seen[fingerprint(saw.PeerCertificates[0])] = true
		}
		info := testkit.Value(s.Info())(t)
		testkit.That(t, info.CA != nil && info.CertFile == "" && info.CA.Fingerprint == testkit.Value(nodes[0].Info())(t).CA.Fingerprint, "described as %+v", info)
		testkit.Equal(t, s.CAFile(), "", "the file of the authority")
	}
	testkit.Equal(t, len(seen), len(nodes), "certificates were shown")
}

// C4: an authority that nears its end is made anew by one node, and the others follow without a
// restart.
func TestASharedAuthorityIsRenewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &oneStore{}
		here, there := open(t, Config{Authority: store}), open(t, Config{Authority: store})
		old, first := under(t, here), here.certificate()
		time.Sleep(leafLife - renewBefore + time.Hour)
		testkit.Must(t, testkit.Err3(handshake(t, here, old)), "with a new certificate")
		testkit.That(t, here.certificate() != first, "the certificate was not renewed")
		testkit.Equal(t, store.sets, 1, "authorities were stored before the end")
		time.Sleep(caLife - leafLife)
		for _, s := range []*Store{here, there} {
			s.certificate() // brings the new authority
		}
		testkit.Must(t, testkit.Err3(handshake(t, here, under(t, there))))
		testkit.Must(t, testkit.Err3(handshake(t, there, under(t, here))))
		testkit.That(t, !under(t, here).RootCAs.Equal(old.RootCAs), "the old authority is still in use")
		testkit.Equal(t, store.sets, 2, "authorities were stored")
	})
}

// What is known stays in use while the store is out of reach; a node that knows none does not start.
func TestAnAuthorityOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no majority")
		store := &oneStore{}
		s := open(t, Config{Authority: store})
		store.fail(broken)
		time.Sleep(time.Hour)
		testkit.Must(t, testkit.Err3(handshake(t, s, under(t, s))))
		testkit.ErrorIs(t, testkit.Err(Open(Config{Authority: store, Log: testkit.Quiet()})), broken)
		store.fail(nil)
		store.text = []byte("no PEM")
		testkit.That(t, testkit.Err(Open(Config{Authority: store, Log: testkit.Quiet()})) != nil, "what is no authority was taken for one")
	})
}
