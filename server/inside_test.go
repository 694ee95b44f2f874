package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// closedYard has no listeners at all.
func closedYard(t *testing.T) Config {
	cfg := quick(t)
	cfg.HTTP = Off
	return cfg
}

func (r *running) insider(t *testing.T) *hub.Client {
	t.Helper()
	client, err := r.Dial(t.Context(), hub.Config{Name: t.Name(), Log: r.cfg.Log, Retry: hub.Retry{First: time.Millisecond}})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// read gives the next body.
func read(t *testing.T, ctx context.Context, reader hub.Reader) string {
	t.Helper()
	events, err := reader.Next(ctx, nil, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("read %d events, %v", len(events), err)
	}
	return string(events[0].Body)
}

// P12: a program has its yard without a socket: events go in and come out.
func TestDialInTheProcess(t *testing.T) {
	r := start(t, closedYard(t))
	testkit.Must(t, r.EnsureHub(t.Context(), Hub{Name: "orders", Partitions: 2, Groups: []string{"billing"}}))
	orders := r.insider(t).Hub("orders")
	if err := orders.SendTo(t.Context(), "1", event.Event{Body: []byte("one")}, event.Event{Body: []byte("two")}); err != nil {
		t.Fatal(err)
	}
	reader, err := orders.Open(t.Context(), hub.ReadConfig{Partition: "1", Group: "billing"})
	testkit.Must(t, err)
	defer reader.Close(t.Context())
	for _, want := range []string{"one", "two"} {
		testkit.Equal(t, read(t, t.Context(), reader), want, "read")
	}
	info, err := orders.Info(t.Context())
	if err != nil || len(info.Partitions) != 2 || orders.Namespace() != "localhost" {
		t.Errorf("hub is %+v in %s, %v", info, orders.Namespace(), err)
	}
	r.shutdown()
}

// The yard's name is one, by whichever way it is reached: what is kept by that name elsewhere
// is found by both.
func TestTheNameIsTheSameInside(t *testing.T) {
	cfg := everyListener(t)
	r := start(t, cfg)
	outside, err := auth.ParseConnectionString(r.Access().ConnectionString)
	testkit.Must(t, err)
	host, _, err := net.SplitHostPort(outside.Host())
	if inside := r.insider(t).Namespace(); err != nil || inside != host {
		t.Errorf("it is %s inside, %s outside, %v", inside, host, err)
	}
	r.shutdown()
}

// A key made anew shuts nobody out who is inside.
func TestInsideWithAnotherRootKey(t *testing.T) {
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	orders := r.insider(t).Hub("h")
	testkit.Must(t, orders.Send(t.Context(), event.Event{Body: []byte("before")}))
	for _, key := range []access.Key{access.PrimaryKey, access.SecondaryKey} {
		r.want(200, "POST", "/api/v1/policies/"+auth.RootPolicy+"/regenerate", fmt.Sprintf(`{"key":%q}`, key))
	}
	testkit.Check(t, orders.Send(t.Context(), event.Event{Body: []byte("after")}))
	r.shutdown()
}

// The secret of the process is no other's: tokens are refused as before.
func TestOtherBearersAreRefused(t *testing.T) {
	cfg := everyListener(t)
	r := start(t, cfg)
	for _, token := range []string{"inside.", "inside." + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		request := r.request("GET", "/api/v1/hubs", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := r.client().Do(request)
		testkit.Must(t, err)
		response.Body.Close()
		testkit.Equal(t, response.StatusCode, 401, "%s is answered %s", token, response.Status)
	}
	r.shutdown()
}

// Clients end with the yard, also those that would wait for it for ever.
func TestClientsEndWithTheYard(t *testing.T) {
	cfg := closedYard(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	client := r.insider(t)
	reader, err := client.Hub("h").Open(t.Context(), hub.ReadConfig{Partition: "0"})
	testkit.Must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := reader.Next(context.Background(), nil, 1)
		ended <- err
	}()
	r.shutdown()
	if err := <-ended; !errors.Is(err, hub.ErrClosed) {
		t.Errorf("the reader ended with %v", err)
	}
	if err := client.Hub("h").Send(t.Context(), event.Event{}); !errors.Is(err, hub.ErrClosed) {
		t.Errorf("sent with %v", err)
	}
	if _, err := r.Dial(t.Context(), hub.Config{}); !errors.Is(err, ErrStopped) {
		t.Errorf("dialled with %v", err)
	}
	if err := r.EnsureHub(t.Context(), Hub{Name: "other"}); !errors.Is(err, ErrStopped) {
		t.Errorf("made with %v", err)
	}
}

// Who dials before the yard runs waits for it; and not for one that cannot start.
func TestDialWaitsForTheStart(t *testing.T) {
	cfg := closedYard(t)
	s, err := New(cfg)
	testkit.Must(t, err)
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Dial(soon, hub.Config{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dialled with %v", err)
	}
	cfg.Sync = "os"
	cfg.DataDir = "/dev/null/yard"
	if s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := s.Dial(context.Background(), hub.Config{})
		waits <- err
	}()
	if err := s.Run(t.Context()); err == nil {
		t.Error("a yard without a folder runs")
	}
	if err := <-waits; !errors.Is(err, ErrStopped) {
		t.Errorf("dialled with %v", err)
	}
}

// P8, H9: $yard is there, and needs no more than the right to listen; what it writes is what
// an operator sees.
func TestTheYardsOwnStore(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	cfg.Policies = []Policy{{Name: "reader", Hub: "h", Rights: []string{"listen"}, PrimaryKey: "reader-key-of-a-length-that-is-allowed-0123456789"}}
	r := start(t, cfg)
	conn := r.session("amqp", auth.RootPolicy, auth.DevelopmentKey)
	testkit.Check(t, testkit.Err(conn.NewSender(t.Context(), "$yard", nil)), "there is no $yard")
	cs, err := auth.ParseConnectionString(r.Access().ConnectionString)
	testkit.Must(t, err)
	cs.Policy, cs.Key = "reader", cfg.Policies[0].PrimaryKey
	cs.Hub = "h"
	client, err := hub.Dial(t.Context(), cs.String(), hub.Config{Log: r.cfg.Log})
	testkit.Must(t, err)
	defer client.Close()
	body := []byte(`{"group":"$Default","leases":[{"partition":"0","owner":"me","epoch":1}]}`)
	testkit.Must(t, testkit.Err(groupwire.CallHub(t.Context(), client.Hub("h"), groupwire.Call{Operation: "claim", Body: body})))
	store, err := r.Store(t.Context())
	testkit.Must(t, err)
	leases, err := store.Leases(t.Context(), processor.Group{Hub: "h", Group: "$Default"})
	if err != nil || len(leases) != 1 || leases[0].Owner != "me" || leases[0].Epoch != 1 {
		t.Errorf("leases are %+v, %v", leases, err)
	}
	_ = client.Close()
	r.shutdown()
}

// A whole yard runs in a bubble, where an hour is a moment, since nothing waits for a socket.
func TestAYardInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := closedYard(t)
		cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
		r := start(t, cfg)
		h := r.insider(t).Hub("h")
		reader, err := h.Open(t.Context(), hub.ReadConfig{Partition: "0"})
		testkit.Must(t, err)
		sent := make(chan error, 1)
		go func() {
			time.Sleep(3 * time.Hour)
			sent <- h.Send(t.Context(), event.Event{Body: []byte("late")})
		}()
		began := time.Now()
		if got := read(t, t.Context(), reader); got != "late" || time.Since(began) < 3*time.Hour {
			t.Errorf("read %q after %s", got, time.Since(began))
		}
		if err := <-sent; err != nil { // what is sent may be read before the sender hears of it
			t.Error(err)
		}
		testkit.Check(t, reader.Close(t.Context()))
		r.shutdown()
	})
}
