package circuit_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
	"github.com/eventyard/eventyard/processor/memory"
	"github.com/eventyard/eventyard/processor/natskv"
	"github.com/eventyard/eventyard/processor/postgres"
	storeredis "github.com/eventyard/eventyard/processor/redis"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/test/parts"
)

// patience is what a slow machine may need.
const patience = 30 * time.Second

var group = processor.Group{Namespace: "yard", Hub: "images", Group: "resizer"}

// member is one that runs, on a way of its own to the store.
type member struct {
	*circuit.Member
	stop func()
}

func run(t *testing.T, id string, s processor.Store) member {
	t.Helper()
	m := circuit.New(circuit.Config{
		Store: s, Group: group, Function: "resize", Instance: id, Policy: breaker.Policy{Failures: 5, Within: time.Hour}, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stop := func() {
		cancel()
		testkit.Check(t, <-ended)
	}
	return member{m, stop}
}

// await waits until the member sees a state.
func (m member) await(t *testing.T, want breaker.State) breaker.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		changed := m.Changed()
		r, n := m.Record()
		if r.State == want {
			return r
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("it is %+v with %d failures, want %s", r, n, want)
		}
	}
}

// F5, F7: on real stores, members open a circuit together, hear of an operator's word, and leave
// nothing behind but the record.
func TestRealStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (peer func() processor.Store){
		"memory": func(t *testing.T) func() processor.Store {
			s := memory.New()
			return func() processor.Store { return s }
		},
		"a yard": yard,
		"redis": func(t *testing.T) func() processor.Store {
			addr := parts.Redis(t)
			return func() processor.Store {
				client := redis.NewClient(&redis.Options{Addr: addr})
				t.Cleanup(func() { _ = client.Close() })
				return storeredis.New(client, storeredis.Config{})
			}
		},
		"postgres": func(t *testing.T) func() processor.Store {
			url := parts.Postgres(t)
			return func() processor.Store {
				pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=3")
				testkit.Must(t, err)
				t.Cleanup(pool.Close)
				return postgres.New(pool, postgres.Config{})
			}
		},
		"nats": nats,
		"azurite": func(t *testing.T) func() processor.Store {
			connection := parts.Azurite(t).Connection()
			c, err := container.NewClientFromConnectionString(connection, "circuits", nil)
			testkit.Must(t, err)
			testkit.Must(t, testkit.Err(c.Create(t.Context(), nil)))
			return func() processor.Store {
				s, err := azblob.FromConnectionString(connection, "circuits", azblob.Config{})
				testkit.Must(t, err)
				return s
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := open(t)
			together(t, peer(), run(t, "a", peer()), run(t, "b", peer()))
			rush(t, peer)
		})
	}
}

func yard(t *testing.T) func() processor.Store {
	y := servertest.Start(t)
	y.Hub(t, group.Hub, 1, group.Group)
	return func() processor.Store {
		s, err := processor.StoreOf(y.Dial(t).Hub(group.Hub))
		testkit.Must(t, err)
		return s
	}
}

// nats is a server in this process, with a connection for each.
func nats(t *testing.T) func() processor.Store {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	testkit.Must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	testkit.MustThat(t, s.ReadyForConnections(patience), "the server does not start")
	return func() processor.Store {
		conn, err := client.Connect(s.ClientURL())
		testkit.Must(t, err)
		t.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		testkit.Must(t, err)
		store, err := natskv.New(t.Context(), js, natskv.Config{})
		testkit.Must(t, err)
		return store
	}
}

// rush: five members at once put away as much as they may, which is five events (R7).
func rush(t *testing.T, peer func() processor.Store) {
	var away atomic.Int64
	var running sync.WaitGroup
	var all []member
	for i := range 5 {
		m := run(t, fmt.Sprint("m", i), peer())
		m.await(t, breaker.Closed)
		all = append(all, m)
	}
	for _, m := range all {
		for range 2 {
			running.Go(func() {
				for n := 1; n > 0; {
					var err error
					n, _, err = m.MayPutAway(t.Context(), circuit.AnyTerm, 1)
					testkit.Check(t, err)
					away.Add(int64(n))
				}
			})
		}
	}
	running.Wait()
	testkit.Equal(t, away.Load(), 5, "events put away")
	for _, m := range all {
		m.await(t, breaker.Open)
		m.stop()
	}
}

func together(t *testing.T, s processor.Store, a, b member) {
	a.await(t, breaker.Closed)
	b.await(t, breaker.Closed)
	for _, m := range []member{a, b} {
		testkit.Must(t, testkit.Err(m.Failed(t.Context(), 3, breaker.Sample{Error: "no"})))
	}
	if one, other := a.await(t, breaker.Open), b.await(t, breaker.Open); one.Incident != other.Incident || one.Failures != 6 {
		t.Errorf("%+v and %+v", one, other)
	}
	if may, _, err := a.MayPutAway(t.Context(), circuit.AnyTerm, 1); may > 0 || err != nil {
		t.Errorf("may put away: %v, %v", may, err)
	}
	all, err := circuit.Read(t.Context(), s, group, "")
	if err != nil || len(all) != 1 || all[0].Total < 3 || all[0].Record.State != breaker.Open {
		t.Errorf("%+v, %v", all, err)
	}
	resume := func(r breaker.Record) (breaker.Record, bool) { return breaker.Resume(r, "ann", "mended", time.Now()) }
	if r, err := circuit.Change(t.Context(), s, group, "resize", resume); err != nil || !r.Closed() || r.Term != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	a.await(t, breaker.Closed)
	if p, err := b.Wait(t.Context(), nil); err != nil || p != (circuit.Pass{Term: 2}) {
		t.Errorf("%+v, %v", p, err)
	}
	a.stop()
	b.stop()
	if all, err := circuit.Read(t.Context(), s, group, ""); err != nil || len(all) != 1 || len(all[0].Tallies) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
