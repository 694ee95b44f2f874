package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// serverYard is a yard on real servers, with a name of its own.
type serverYard struct {
	servers *natstest.Servers
	name    string
	store   *metatest.Memory
}

// newServerYard gives one whose streams are deleted when the test ends.
func newServerYard(t *testing.T, servers *natstest.Servers) *serverYard {
	y := &serverYard{servers: servers, name: natstest.Yard(), store: metatest.NewMemory()}
	storage := y.dial(t, 0)
	t.Cleanup(func() {
		ctx := context.Background()
		found, err := storage.Names(ctx)
		for _, stream := range found {
			err = errors.Join(err, storage.Delete(ctx, stream))
		}
		if err != nil {
			t.Logf("delete streams: %v", err)
		}
	})
	return y
}

func (y *serverYard) dial(t *testing.T, first int) *natsstreams.Storage {
	t.Helper()
	o := connect.Options()
	conns := natsstreams.Conns{Publish: y.servers.Dial(t, first, o...), Read: y.servers.Dial(t, first, o...), Control: y.servers.Dial(t, first, o...)}
	s, err := natsstreams.Open(conns, natsstreams.Config{Yard: y.name, Replicas: y.servers.Replicas})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	return s
}

// entries gives a store of entries that runs until the test ends.
func (y *serverYard) entries(t *testing.T, first int) meta.Store {
	t.Helper()
	conn := y.servers.Dial(t, first)
	t.Cleanup(func() {
		js, err := jetstream.New(conn)
		testkit.Must(t, err)
		for name := range js.StreamNames(context.Background()).Name() {
			if strings.HasPrefix(name, "Y_"+y.name+"_") {
				_ = js.DeleteStream(context.Background(), name) // the other node has deleted it
			}
		}
	})
	s, err := entries.New(conn, entries.Config{Yard: y.name, Replicas: y.servers.Replicas, Buckets: 1, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Run(t, s.Run)
	testkit.Must(t, s.Load(t.Context()))
	return s
}

// open gives an engine over connections that begin with a server.
func (y *serverYard) open(t *testing.T, first int) *Engine { return y.openWith(t, first, y.store) }

func (y *serverYard) openWith(t *testing.T, first int, store meta.Store) *Engine {
	t.Helper()
	e := New(Config{
		Storage: y.dial(t, first), Store: store, Fill: fillers, Replicas: y.servers.Replicas,
		TendInterval: 10 * time.Millisecond, Log: testkit.Quiet(),
	})
	t.Cleanup(func() { testkit.Check(t, e.Close()) })
	return e
}

func openServers(servers *natstest.Servers) logtest.Open {
	return func(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
		y := newServerYard(t, servers)
		e := y.open(t, 0)
		return e, func() eventlog.Engine {
			testkit.Must(t, e.Close())
			e = y.open(t, 1)
			return e
		}
	}
}

// C1, C2, C7: the contract, on three servers.
func TestContractOnServers(t *testing.T) {
	servers := natstest.Shared(t, 3)
	t.Run("one node", func(t *testing.T) { logtest.Run(t, openServers(servers)) })
	t.Run("two nodes", func(t *testing.T) {
		logtest.RunNodes(t, func(t *testing.T) (a, b eventlog.Engine) {
			y := newServerYard(t, servers)
			return y.open(t, 0), y.open(t, 2)
		})
	})
	t.Run("two nodes with their entries on the servers, too", func(t *testing.T) {
		y := newServerYard(t, servers)
		a, b := y.openWith(t, 0, y.entries(t, 0)), y.openWith(t, 2, y.entries(t, 2))
		here := handle(t, a, orders, 1)
		mustAppend(t, here, "a")
		there := handle(t, b, orders, 1)
		testkit.Slices(t, readAll(t, there, eventlog.Earliest()), []string{"a"})
		testkit.Equal(t, mustAppend(t, there, "b").First, 1)
		waiting := testkit.Value(there.Cursor(t.Context(), eventlog.Latest()))(t)
		testkit.Must(t, a.Remove(t.Context(), "orders"))
		testkit.ErrorIs(t, testkit.Err(waiting.Next(t.Context())), eventlog.ErrRemoved)
		testkit.ErrorIs(t, b.Provide(t.Context(), "orders", orders), eventlog.ErrRemoved)
	})
	t.Run("import", func(t *testing.T) { logtest.RunImport(t, openDisk, openServers(servers)) })
}

// C1, C2, C5: servers that are killed, frozen and restarted under three nodes that append.
func TestServersFail(t *testing.T) {
	servers := natstest.Shared(t, 3)
	y := newServerYard(t, servers)
	var nodes []eventlog.Partition
	for i := range 3 {
		e := y.open(t, i)
		testkit.Run(t, e.Run)
		nodes = append(nodes, handle(t, e, orders, 0))
	}
	var mu sync.Mutex
	acked, stop := map[eventlog.Sequence]string{}, make(chan struct{})
	var writers sync.WaitGroup
	for w, p := range nodes {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				what := fmt.Sprintf("%d/%d", w, n)
				done, err := eventlog.Append(t.Context(), p, text(what))
				mu.Lock()
				switch {
				case err == nil:
					acked[done.First] = what
				case !errors.Is(err, eventlog.ErrUncertain) && !errors.Is(err, eventlog.ErrUnavailable):
					t.Errorf("append: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	more := func() { // somebody gets on
		mu.Lock()
		before := len(acked)
		mu.Unlock()
		testkit.Eventually(t, "nobody gets on", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acked) > before+100
		})
	}
	more()
	for i := range 3 {
		servers.Kill(t, i)
		more()
		servers.Restart(t, i)
		more()
	}
	servers.Freeze(t, 0)
	more()
	servers.Thaw(t, 0)
	more()
	close(stop)
	writers.Wait()
	fresh := handle(t, y.open(t, 0), orders, 0)
	var first []string
	for _, p := range append(nodes, fresh) {
		testkit.Must(t, testkit.Err(p.Sealed(t.Context())))
		got := readAll(t, p, eventlog.Earliest())
		if first == nil {
			first = got
		}
		testkit.Slices(t, got, first)
	}
	for at, what := range acked {
		testkit.MustThat(t, int(at) < len(first) && first[at] == what, "%s was stored at %d", what, at)
	}
	seen := map[string]bool{}
	for _, what := range first {
		testkit.MustThat(t, !seen[what], "%s is stored twice", what)
		seen[what] = true
	}
	t.Logf("%d acknowledged, %d read", len(acked), len(first))
}
