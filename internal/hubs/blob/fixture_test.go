package blob

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/storage/jetstream/bodies"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a store in memory with a container.
type yard struct {
	*Service
	t    testing.TB
	meta *metatest.Faulty
	// mem and fs have the bodies, unless they are shared.
	mem    *vfs.Mem
	fs     *vfs.Faulty
	shared Bodies
}

var box = Path{Account: "a", Container: "box"}

func in(name string) Path { return Path{"a", "box", name} }

func newYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{t: t, meta: metatest.NewFaulty(metatest.NewMemory()), mem: vfs.NewMem()}
	y.open()
	testkit.Must(t, testkit.Err(y.CreateContainer(t.Context(), box, nil)))
	return y
}

// onBoth runs a test on each kind of bodies: files in memory, and those of a real NATS server.
func onBoth(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	t.Run("files", func(t *testing.T) { test(t, newYard(t)) })
	t.Run("NATS", func(t *testing.T) {
		y := &yard{t: t, meta: metatest.NewFaulty(metatest.NewMemory()), shared: onServers(t)}
		y.open()
		testkit.Must(t, testkit.Err(y.CreateContainer(t.Context(), box, nil)))
		test(t, y)
	})
}

// onServers are the bodies of a new yard.
func onServers(t *testing.T) *bodies.Store {
	t.Helper()
	servers := natstest.Shared(t, 1)
	s := bodies.New(servers.Dial(t, 0), servers.Dial(t, 0), bodies.Config{Yard: natstest.Yard(), Replicas: servers.Replicas})
	testkit.Must(t, s.Load(t.Context()))
	return s
}

// open starts the store anew on what there is.
func (y *yard) open() {
	y.t.Helper()
	cfg := Config{Meta: y.meta, Log: testkit.Quiet()}
	if y.shared != nil {
		cfg.Bodies, cfg.Grace = y.shared, time.Nanosecond
	} else {
		y.fs = vfs.NewFaulty(y.mem)
		cfg.FS = y.fs
	}
	s, err := Open(cfg)
	testkit.Must(y.t, err)
	s.bodies.slow = time.Hour // sweeps of this process remove at once, and it knows who writes
	y.Service = s
}

func (y *yard) put(name string, body []byte, when Conditions) Blob {
	y.t.Helper()
	b, err := y.Put(y.t.Context(), in(name), bytes.NewReader(body), Content{}, when)
	testkit.Must(y.t, err)
	return b
}

// body reads a whole body.
func (y *yard) body(name string) ([]byte, error) {
	return readAll(y.t.Context(), y.Service, in(name))
}

func readAll(ctx context.Context, s *Service, at Path) ([]byte, error) {
	b, err := s.Open(ctx, at, Conditions{})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var all bytes.Buffer
	err = b.WriteRange(ctx, &all, 0, b.Bytes)
	return all.Bytes(), err
}

func (y *yard) wantBody(name string, want []byte) {
	y.t.Helper()
	if got, err := y.body(name); err != nil || !bytes.Equal(got, want) {
		y.t.Fatalf("%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// fileCount tells how many bodies there are. Those that are shared go by the second sweep that finds
// them without a name.
func (y *yard) fileCount() int {
	y.t.Helper()
	if y.shared != nil {
		testkit.Must(y.t, errors.Join(y.Sweep(y.t.Context()), y.Sweep(y.t.Context())))
		return len(testkit.Value(y.shared.List(y.t.Context()))(y.t))
	}
	entries, err := y.mem.List(".")
	testkit.Must(y.t, err)
	return len(entries)
}

// noise is a body of a size that looks like no other.
func noise(seed uint64, size int) []byte {
	body := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(body)
	return body
}

const large = InlineBytes + 1000

func (y *yard) block(name, id string, body []byte) {
	y.t.Helper()
	_, err := y.PutBlock(y.t.Context(), in(name), id, bytes.NewReader(body), Conditions{})
	testkit.Must(y.t, err)
}

func blocks(ids string) []BlockName {
	var list []BlockName
	for _, id := range strings.Fields(ids) {
		list = append(list, BlockName{ID: id})
	}
	return list
}
