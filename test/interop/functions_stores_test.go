//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/jackc/pgx/v5/pgxpool"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
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

// F4, F5, F7: a function works with every store of processors: two hosts share the partitions, a
// broken event is put away once, the circuit opens in both when what is behind the handler is down,
// and closes for both.
func TestFunctionsOnEveryStore(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() processor.Store{
		"the yard's own": func(*testing.T) func() processor.Store { return func() processor.Store { return nil } },
		"memory": func(*testing.T) func() processor.Store {
			s := memory.New()
			return func() processor.Store { return s }
		},
		"PostgreSQL": onPostgres, "Redis": onRedis, "NATS": onNATS, "Azurite": onAzurite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newDuo(t, open(t)).play()
		})
	}
}

func onPostgres(t *testing.T) func() processor.Store {
	url := parts.Postgres(t)
	return func() processor.Store {
		pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=3")
		testkit.Must(t, err)
		t.Cleanup(pool.Close)
		return postgres.New(pool, postgres.Config{})
	}
}

func onRedis(t *testing.T) func() processor.Store {
	addr := parts.Redis(t)
	return func() processor.Store {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		return storeredis.New(client, storeredis.Config{})
	}
}

func onNATS(t *testing.T) func() processor.Store {
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	testkit.Must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	return func() processor.Store {
		c, err := nats.Connect(s.ClientURL())
		testkit.Must(t, err)
		t.Cleanup(c.Close)
		js, err := jetstream.New(c)
		testkit.Must(t, err)
		store, err := natskv.New(t.Context(), js, natskv.Config{Replicas: 1})
		testkit.Must(t, err)
		return store
	}
}

func onAzurite(t *testing.T) func() processor.Store {
	service := parts.Azurite(t)
	client, err := container.NewClientFromConnectionString(service.Connection(), "leases", nil)
	testkit.Must(t, err)
	_, err = client.Create(t.Context(), nil)
	testkit.Must(t, err)
	return func() processor.Store { return azblob.New(client, azblob.Config{}) }
}

// duo is two hosts of one function, and what is behind its handler.
type duo struct {
	t      *testing.T
	orders *hub.Hub
	bad    *hub.Hub
	hosts  [2]*functions.Host
	down   atomic.Bool

	mu     sync.Mutex
	done   map[string]int     // guarded by mu: how often each event was handled
	states [2]map[string]bool // guarded by mu: which states each host has seen
}

const (
	duoPartitions = 4
	duoFailures   = 5
)

func newDuo(t *testing.T, store func() processor.Store) *duo {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", duoPartitions, "billing")
	yard.Hub(t, "billing-poison", 2)
	d := &duo{t: t, done: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for i := range d.hosts {
		client := yard.Dial(t)
		d.orders, d.bad = client.Hub("orders"), client.Hub("billing-poison")
		d.states[i] = map[string]bool{}
		d.hosts[i] = functions.NewHost(client, functions.Config{
			Store: store(), Lease: 3 * time.Second, Log: testkit.Quiet(), OnError: func(error) {},
			OnCircuit: func(c functions.Circuit) { d.saw(i, c.State) },
		})
		d.hosts[i].Handle("billing", functions.Each(d.handle), functions.Binding{
			Hub: "orders", Group: "billing", Retry: functions.Fixed(1, time.Millisecond), Breaker: functions.Breaker{Failures: duoFailures, Within: time.Hour},
		})
		running.Go(func() {
			testkit.Check(t, d.hosts[i].Run(ctx), "host %d", i)
		})
	}
	return d
}

func (d *duo) saw(i int, state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.states[i][state] = true
}

func (d *duo) handle(_ context.Context, ev event.Event) error {
	switch {
	case d.down.Load():
		return errors.New("what is behind it is down")
	case strings.HasPrefix(string(ev.Body), "broken"):
		return errors.New("a broken event")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[string(ev.Body)]++
	return nil
}

func (d *duo) send(word string, n int) {
	d.t.Helper()
	for p := range duoPartitions {
		var batch []event.Event
		for i := range n {
			batch = append(batch, event.Text(fmt.Sprintf("%s %d/%d", word, p, i)))
		}
		testkit.Must(d.t, d.orders.SendTo(d.t.Context(), fmt.Sprint(p), batch...))
	}
}

// handled counts the events that begin with a word and were.
func (d *duo) handled(word string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for body := range d.done {
		if strings.HasPrefix(body, word) {
			n++
		}
	}
	return n
}

func (d *duo) bothHave(state string) func() bool {
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.states[0][state] && d.states[1][state]
	}
}

func (d *duo) play() {
	d.until("both share the partitions", func() bool { return len(d.partitions(0)) == duoPartitions/2 && len(d.partitions(1)) == duoPartitions/2 })
	d.send("one", 20)
	testkit.Must(d.t, d.orders.SendTo(d.t.Context(), "1", event.Text("broken")))
	d.send("two", 20)
	d.until("all is handled but the broken one", func() bool { return d.handled("two") == 20*duoPartitions })
	d.until("the broken one is put away", func() bool { return d.poisoned() == 1 })

	d.down.Store(true)
	d.send("three", 20)
	d.until("the circuit opens for both", d.bothHave("open"))
	d.down.Store(false)
	testkit.Must(d.t, d.hosts[1].Resume(d.t.Context(), "billing"))
	// What was on its way to the poison hub when the circuit opened may still arrive there, so
	// nothing is counted before all of it is somewhere.
	d.until("all is handled or put away", func() bool { return d.handled("three")+d.poisoned()-1 == 20*duoPartitions })
	away := d.poisoned()
	testkit.Equal(d.t, away, duoFailures, "events put away") // R7
}

// partitions are those of a host; none until it has started its function.
func (d *duo) partitions(i int) (all []processor.Status) {
	for _, s := range d.hosts[i].Status() {
		all = append(all, s.Partitions...)
	}
	return all
}

// poisoned counts what lies in the poison hub.
func (d *duo) poisoned() (n int) {
	d.t.Helper()
	for _, p := range []string{"0", "1"} {
		info, err := d.bad.Partition(d.t.Context(), p)
		testkit.Must(d.t, err)
		n += int(info.Last + 1)
	}
	return n
}

// until waits for what others bring about.
func (d *duo) until(what string, is func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			d.t.Fatalf("in vain: %s; %+v, %+v, %d put away", what, d.hosts[0].Status(), d.hosts[1].Status(), d.poisoned())
		}
	}
}
