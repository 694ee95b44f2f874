package bodies

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

const name = "0123456789abcdef0123456789abcdef"

func newStore(t *testing.T, servers *natstest.Servers, cfg Config) *Store {
	t.Helper()
	cfg.Yard, cfg.Replicas = natstest.Yard(), servers.Replicas
	s := New(servers.Dial(t, 0), servers.Dial(t, 0), cfg)
	testkit.Must(t, s.Load(t.Context()))
	testkit.Must(t, s.Load(t.Context()), "load twice")
	return s
}

func read(t *testing.T, s *Store) []byte {
	t.Helper()
	_, size, err := s.Open(t.Context(), name, 0, 0)
	testkit.Must(t, err)
	body, _, err := s.Open(t.Context(), name, 0, size)
	testkit.Must(t, err)
	return testkit.Value(io.ReadAll(body))(t)
}

// between calls a function when a body was read so far.
type between struct {
	io.Reader
	left int
	then func()
}

func (b *between) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(len(p), 1000)])
	if b.left -= n; b.left <= 0 && b.then != nil {
		b.then()
		b.then = nil
	}
	return n, err
}

// C1: a server that goes and comes back while a body is put costs time only.
func TestAServerGoesWhileABodyIsPut(t *testing.T) {
	servers := natstest.Start(t, 1)
	s := newStore(t, servers, Config{chunkBytes: 1000, patience: time.Minute})
	want := bytes.Repeat([]byte("0123456789"), 2000)
	var restart sync.WaitGroup
	_, err := s.Put(t.Context(), name, &between{bytes.NewReader(want), 10000, func() {
		servers.Kill(t, 0)
		restart.Go(func() { servers.Restart(t, 0) })
	}})
	restart.Wait()
	testkit.Must(t, err)
	testkit.That(t, bytes.Equal(read(t, s), want), "it is another body")
}

// C1: the copy of a chunk that arrives when the body is whole does no harm, and goes with it.
func TestALateCopyOfAChunk(t *testing.T) {
	s := newStore(t, natstest.Shared(t, 1), Config{chunkBytes: 10})
	want := []byte("twenty-five bytes of text")
	testkit.Must(t, testkit.Err(s.Put(t.Context(), name, bytes.NewReader(want))))
	testkit.Must(t, testkit.Err(s.store(t.Context(), s.chunks(name), seal(kindChunk, append(make([]byte, headerBytes), "twenty-fiv"...)))))
	testkit.Equal(t, string(read(t, s)), string(want), "the body")
	testkit.Must(t, s.Remove(t.Context(), name))
	testkit.Slices(t, testkit.Value(s.List(t.Context()))(t), nil)
}

// C5: servers that do not answer are said to be out of reach, and full ones to be full.
func TestServersThatRefuse(t *testing.T) {
	servers := natstest.Start(t, 1)
	full := newStore(t, servers, Config{MaxBytes: 100 << 10})
	_, err := full.Put(t.Context(), name, bytes.NewReader(make([]byte, 300<<10)))
	testkit.ErrorIs(t, err, meta.ErrNoSpace)
	s := newStore(t, servers, Config{})
	testkit.Must(t, testkit.Err(s.Put(t.Context(), name, bytes.NewReader([]byte("body")))))
	servers.Stop(t, 0)
	s.cfg.patience = 200 * time.Millisecond // for servers that will not come
	_, err = s.Put(t.Context(), name, bytes.NewReader([]byte("body")))
	testkit.ErrorIs(t, err, meta.ErrUnavailable, "put")
	testkit.ErrorIs(t, testkit.Err3(s.Open(t.Context(), name, 0, 1)), meta.ErrUnavailable, "open")
	testkit.ErrorIs(t, s.Remove(t.Context(), name), meta.ErrUnavailable, "remove")
	testkit.ErrorIs(t, testkit.Err(s.List(t.Context())), meta.ErrUnavailable, "list")
	testkit.ErrorIs(t, s.Load(t.Context()), meta.ErrUnavailable, "load")
}
