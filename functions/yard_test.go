package functions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/servertest"
)

// run runs a host until it is stopped or the test ends.
func run(t *testing.T, h *functions.Host) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the host ended with %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func quiet() functions.Config {
	return functions.Config{Log: slog.New(slog.DiscardHandler)}
}

// poisonEvents reads what is in a poison hub with one partition.
func poisonEvents(t *testing.T, client *hub.Client, name string) []poison.Record {
	t.Helper()
	info, err := client.Hub(name).Partition(t.Context(), "0")
	testkit.Must(t, err)
	var list []poison.Record
	if info.Empty {
		return nil
	}
	for ev, err := range client.Hub(name).Read(t.Context(), hub.ReadConfig{Partition: "0"}) {
		testkit.Must(t, err)
		l, ok := poison.Read(ev)
		testkit.MustThat(t, ok, "no poison event: %+v", ev)
		list = append(list, l)
		if ev.Sequence == info.Last {
			break
		}
	}
	return list
}

// F1, F3, F4: the whole way in a real yard, whose own store keeps the records.
func TestInAYardOnlyTheGuiltyArePutAway(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 4)
	yard.Hub(t, "bill-poison", 1)
	client := yard.Dial(t)
	var mu sync.Mutex
	done := map[string]int{}
	handle := func(_ context.Context, b *functions.Batch) error {
		for _, ev := range b.Events {
			if strings.HasPrefix(string(ev.Body), "bad") {
				return errors.New("cannot bill " + string(ev.Body))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, ev := range b.Events {
			done[string(ev.Body)]++
		}
		return nil
	}
	host := functions.NewHost(client, quiet())
	host.Handle("bill", handle, functions.Binding{Hub: "orders", Retry: functions.Fixed(1, 10*time.Millisecond)})
	for i := range 200 {
		text := fmt.Sprint("order ", i)
		if i%50 == 7 {
			text = fmt.Sprint("bad ", i)
		}
		ev := event.Text(text)
		ev.Key = fmt.Sprint("customer-", i%10)
		testkit.Must(t, client.Hub("orders").Send(t.Context(), ev))
	}
	stop := run(t, host)
	testkit.Eventually(t, "everything is done or put away", func() bool {
		s := host.Status()
		return len(s) == 1 && s[0].Done == 196 && s[0].Poisoned == 4
	})
	stop()
	var away []string
	for _, l := range poisonEvents(t, client, "bill-poison") {
		away = append(away, string(l.Event.Body))
		if l.Function != "bill" || l.Reason != "cannot bill "+string(l.Event.Body) || l.Event.Key == "" || l.Attempts < 2 {
			t.Errorf("poison event %+v", l)
		}
	}
	if slices.Sort(away); !slices.Equal(away, []string{"bad 107", "bad 157", "bad 57", "bad 7"}) {
		t.Errorf("put away %v", away)
	}
	mu.Lock()
	defer mu.Unlock()
	testkit.Equal(t, len(done), 196, "orders done")
}

// F5, F7: the circuit of a yard's store, seen by two hosts, and across a restart of one.
func TestInAYardTheCircuitIsShared(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 2)
	client := yard.Dial(t)
	var mu sync.Mutex
	down, reported := true, []string{}
	handle := functions.Each(func(context.Context, event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return errors.New("the database is down")
		}
		return nil
	})
	start := func(id string) (*functions.Host, func()) {
		cfg := quiet()
		cfg.ID = id
		cfg.OnCircuit = func(c functions.Circuit) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, id+" "+c.State)
		}
		h := functions.NewHost(client, cfg)
		h.Handle("bill", handle, functions.Binding{
			Hub: "orders", Retry: functions.None(), Poison: functions.NoPoison, Breaker: functions.Breaker{Failures: 5},
		})
		return h, run(t, h)
	}
	a, stopA := start("a")
	for i := range 100 {
		testkit.Must(t, client.Hub("orders").SendTo(t.Context(), fmt.Sprint(i%2), event.Text("order")))
	}
	state := func(h *functions.Host, want string) func() bool {
		return func() bool { s := h.Status(); return len(s) == 1 && s[0].Circuit.State == want }
	}
	testkit.Eventually(t, "it opens", state(a, "open"))
	b, _ := start("b")
	testkit.Eventually(t, "another host sees it", state(b, "open"))
	stopA()
	dropped := a.Status()[0].Dropped
	testkit.That(t, dropped <= 5, "%d events were dropped", dropped)
	mu.Lock()
	down = false
	mu.Unlock()
	testkit.Must(t, b.Resume(t.Context(), "bill"))
	testkit.Eventually(t, "all the rest is done", func() bool { return b.Status()[0].Done == 100-dropped && b.Status()[0].Lag == 0 })
	testkit.Eventually(t, "it is told, which may come a little later than the events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(reported, "a open") && slices.Contains(reported, "b open") && slices.Contains(reported, "b closed")
	})
}

// F1: a program in any language.
func TestInAYardAProgramIsCalledOverHTTP(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "images", 1)
	yard.Hub(t, "resize-poison", 1)
	client := yard.Dial(t)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		testkit.That(t, !strings.Contains(r.URL.Path, "nothing"), "called at a wrong place")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer program.Close()
	host := functions.NewHost(client, quiet())
	host.Handle("resize", functions.HTTP(program.URL+"/resize", functions.HTTPConfig{}), functions.Binding{Hub: "images"})
	defer run(t, host)()
	testkit.Must(t, client.Hub("images").Send(t.Context(), event.Text("{}"), event.Text("{}")))
	testkit.Eventually(t, "both are done", func() bool { s := host.Status(); return len(s) == 1 && s[0].Done == 2 })
}

// F4: without the poison hub Run says so at once, and how to make it.
func TestInAYardAMissingPoisonHubIsAnErrorAtOnce(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	host := functions.NewHost(yard.Dial(t), quiet())
	host.Handle("bill", functions.Each(func(context.Context, event.Event) error { return nil }), functions.Binding{Hub: "orders"})
	err := host.Run(t.Context())
	if !errors.Is(err, hub.ErrNotFound) || !strings.Contains(err.Error(), "eventyard hub create bill-poison --partitions 1") {
		t.Errorf("it ended with %v", err)
	}
}

// The error names what is mistyped, before anything that is missing because of it, and without a
// word about the store.
func TestInAYardAMistypedHubOrGroupIsAnError(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	for _, c := range []struct{ hub, group, want string }{
		{"ordrs", "", "no hub ordrs: create it with: eventyard hub create ordrs"},
		{"orders", "biling", `no group "biling" in hub orders: create it with: eventyard group create orders biling`},
	} {
		var log strings.Builder
		host := functions.NewHost(yard.Dial(t), functions.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		handle := functions.Each(func(context.Context, event.Event) error { return nil })
		host.Handle("bill", handle, functions.Binding{Hub: c.hub, Group: c.group})
		err := host.Run(t.Context())
		if !errors.Is(err, hub.ErrNotFound) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("it ended with %v, want %s", err, c.want)
		}
		testkit.That(t, !strings.Contains(log.String(), "WARN"), "logged %s", &log)
	}
}

// F4: poison in a grid topic, in either schema, and in a hub anywhere.
func TestOtherTargetsForPoison(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	yard.Hub(t, "drawer", 1)
	client := yard.Dial(t)
	l := functions.PoisonEvent{ID: "bill/orders/0/7", Function: "bill", Hub: "orders", Group: "$Default", Partition: "0", Sequence: 7,
		Reason: "no", Attempts: 3, At: time.Now(), Instance: "a", Event: event.Event{Body: []byte(`{"total":1}`), ContentType: "application/json"}}

	drawer := functions.Hub(client.Hub("drawer"))
	testkit.Must(t, drawer.Put(t.Context(), l))
	if got := poisonEvents(t, client, "drawer"); len(got) != 1 || got[0].ID != l.ID || drawer.String() != "hub drawer" {
		t.Errorf("in %s are %+v", drawer, got)
	}
	for _, schema := range []grid.Schema{grid.EventGrid, grid.CloudEvents} {
		var got []grid.Delivery
		hook, err := grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
			got = append(got, batch...)
			return nil
		}, grid.HandlerConfig{})
		testkit.Must(t, err)
		receiver := httptest.NewServer(hook)
		topic, err := grid.NewClient(grid.Config{Endpoint: receiver.URL, Schema: schema, Log: slog.New(slog.DiscardHandler)})
		testkit.Must(t, err)
		sink := functions.Topic(topic, "trouble")
		testkit.Must(t, sink.Put(t.Context(), l))
		receiver.Close()
		var data struct {
			Reason   string
			Attempts int
			Body     struct{ Total int }
		}
		if len(got) != 1 || got[0].Event.ID != l.ID || got[0].Event.Type != "Eventyard.EventPoisoned" || sink.String() != "topic trouble" {
			t.Fatalf("in %s are %+v", sink, got)
		}
		if err := got[0].Event.Unmarshal(&data); err != nil || data.Reason != "no" || data.Attempts != 3 || data.Body.Total != 1 {
			t.Errorf("the data is %s: %v", got[0].Event.Data, err)
		}
	}
}

// mortal is a store whose host dies with the nth write of its work, made or not: from then on it
// reaches nothing.
type mortal struct {
	processor.Store
	die  int
	made bool
	kill func()

	mu   sync.Mutex
	n    int  // guarded by mu
	dead bool // guarded by mu
}

var errDead = errors.New("this instance is dead")

func (m *mortal) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	return nil
}

func (m *mortal) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.Store.Claim(ctx, g, leases)
}

func (m *mortal) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	if err := m.alive(); err != nil {
		return c, err
	}
	return m.Store.Save(ctx, g, l, c)
}

func (m *mortal) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return f, errDead
	}
	if strings.HasPrefix(f.Key, "work/") {
		if m.n++; m.n == m.die {
			m.dead = true
			m.kill()
			if m.made {
				_, _ = m.Store.Put(ctx, g, f)
			}
			return f, errDead
		}
	}
	return m.Store.Put(ctx, g, f)
}

func (m *mortal) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Store.Remove(ctx, g, f)
}

// F4: in a real yard's hub a poison event is stored exactly once, wherever its writer died.
func TestInAYardAPoisonEventIsStoredExactlyOnceWhereverItsWriterDies(t *testing.T) {
	yard := servertest.Start(t)
	client := yard.Dial(t)
	var all sync.WaitGroup
	defer all.Wait()
	for n := 1; n <= 6; n++ {
		for _, made := range []bool{false, true} {
			all.Go(func() { // all at once: most of it is waiting
				t.Run(fmt.Sprintf("write %d, made %v", n, made), func(t *testing.T) {
					name := fmt.Sprintf("orders-%d-%v", n, made)
					yard.Hub(t, name, 1)
					yard.Hub(t, name+"-poison", 1)
					for _, text := range []string{"ok", "bad", "ok", "bad", "ok"} {
						testkit.Must(t, client.Hub(name).Send(t.Context(), event.Text(text)))
					}
					store, err := processor.StoreOf(client.Hub(name))
					testkit.Must(t, err)
					host := func(id string, s processor.Store, patience time.Duration) *functions.Host {
						h := functions.NewHost(client, functions.Config{ID: id, Store: s, Log: slog.New(slog.DiscardHandler), OnError: func(error) {},
							Lease: 600 * time.Millisecond, Renew: 200 * time.Millisecond, Poll: 50 * time.Millisecond, Stop: patience})
						h.Handle("bill", functions.Each(func(_ context.Context, ev event.Event) error {
							if string(ev.Body) == "bad" {
								return errors.New("bad")
							}
							return nil
						}), functions.Binding{Hub: name, Poison: name + "-poison", Retry: functions.None()})
						return h
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					_ = host("a", &mortal{Store: store, die: n, made: made, kill: cancel}, time.Second).Run(ctx)
					next := host("b", store, time.Minute)
					stop := run(t, next)
					testkit.Eventually(t, "all is done", func() bool {
						list, err := store.Checkpoints(t.Context(), processor.Group{Namespace: client.Namespace(), Hub: name, Group: "$Default"})
						return err == nil && len(list) == 1 && list[0].Sequence == 4
					})
					stop()
					var away []int64
					for _, l := range poisonEvents(t, client, name+"-poison") {
						away = append(away, l.Sequence)
					}
					testkit.Slices(t, away, []int64{1, 3}, "put away")
				})
			})
		}
	}
}
