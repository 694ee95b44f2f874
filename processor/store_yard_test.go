package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// listener is a policy that may do nothing but listen.
var listener = server.Policy{Name: "listener", Rights: []string{"listen"}, PrimaryKey: "listener-key-of-a-length-that-is-allowed-0123456789"}

// yardStores are the stores of all hubs of a yard, each asked over the connection of its
// hub. What takes an operator the yard does itself.
type yardStores struct {
	client *hub.Client
	processor.Store
}

func (y *yardStores) of(g processor.Group) processor.Store {
	return processor.YardStore(y.client.Hub(g.Hub))
}

func (y *yardStores) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	return y.of(g).Leases(ctx, g)
}

func (y *yardStores) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	return y.of(g).Claim(ctx, g, leases)
}

func (y *yardStores) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	return y.of(g).Checkpoints(ctx, g)
}

func (y *yardStores) Begin(ctx context.Context, g processor.Group, lease processor.Lease) (processor.Checkpoint, error) {
	return y.of(g).Begin(ctx, g, lease)
}

func (y *yardStores) Save(ctx context.Context, g processor.Group, lease processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	return y.of(g).Save(ctx, g, lease, c)
}

func (y *yardStores) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return y.of(g).Entries(ctx, g, prefix)
}

func (y *yardStores) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	return y.of(g).Put(ctx, g, f)
}

func (y *yardStores) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	return y.of(g).Remove(ctx, g, f)
}

func (y *yardStores) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	return y.of(g).(processor.Watcher).Watch(ctx, g, ready, changed)
}

// P8, H9, P12: the yard's own store keeps the whole contract, in the process and over the network,
// and there with the right to listen alone.
func TestYardStore(t *testing.T) {
	yard := servertest.Start(t, servertest.Listeners, func(c *server.Config) { c.Policies = []server.Policy{listener} })
	own, err := yard.Store(t.Context())
	testkit.Must(t, err)
	for name, dial := range map[string]func(t *testing.T) *hub.Client{
		"in the process":   func(t *testing.T) *hub.Client { return yard.Dial(t) },
		"over the network": func(t *testing.T) *hub.Client { return dialAs(t, yard, listener) },
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t *testing.T) processor.Store { return &yardStores{dial(t), own} }
			storetest.RunWith(t, open, storetest.Options{
				AnyNamespace: true,
				FewRaces:     true, // package groups has them all
				EpochsByOne:  true,
				Prepare:      func(t *testing.T, g processor.Group) { yard.Hub(t, g.Hub, storetest.Partitions, g.Group) },
				Peer:         func(t *testing.T, _ processor.Store) processor.Store { return open(t) },
			})
		})
	}
}

// dialAs reaches a yard over the network by a policy's key.
func dialAs(t *testing.T, yard *servertest.Yard, p server.Policy) *hub.Client {
	t.Helper()
	endpoint, _, _ := strings.Cut(yard.ConnectionString(), ";")
	client, err := hub.Dial(t.Context(), fmt.Sprintf("%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		endpoint, p.Name, p.PrimaryKey), hub.Config{Log: yard.Config.Log})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// counted is a hub whose calls are counted.
type counted struct {
	*hub.Hub
	calls atomic.Int64
}

func (c *counted) Call(ctx context.Context, q groupwire.Call) ([]byte, error) {
	c.calls.Add(1)
	return groupwire.CallHub(ctx, c.Hub, q)
}

// P1: a thousand leases are renewed by one request, and what does not go into one goes into
// several.
func TestYardStoreWithManyPartitions(t *testing.T) {
	const partitions = 1000
	yard := servertest.Start(t)
	yard.Hub(t, "orders", partitions)
	h := &counted{Hub: yard.Dial(t).Hub("orders")}
	store := processor.YardStore(h)
	g := processor.Group{Hub: "orders", Group: "$Default"}
	for _, test := range []struct {
		owner string
		calls int64
	}{{"an-instance-with-a-name-of-the-usual-length", 1}, {strings.Repeat("o", 200), 3}} {
		have, err := store.Leases(t.Context(), g)
		testkit.Must(t, err)
		version := map[string]processor.Version{}
		for _, l := range have {
			version[l.Partition] = l.Version
		}
		var want []processor.Lease
		for i := range partitions {
			p := fmt.Sprint(i)
			want = append(want, processor.Lease{Partition: p, Owner: test.owner, Epoch: test.calls, Version: version[p]})
		}
		h.calls.Store(0)
		got, err := store.Claim(t.Context(), g, want)
		if err != nil || len(got) != partitions || h.calls.Load() != test.calls {
			t.Fatalf("claimed %d by %d calls: %v", len(got), h.calls.Load(), err)
		}
		for i, l := range got {
			if l.Partition != want[i].Partition || l.Owner != test.owner || l.Version == "" || l.Renewed.IsZero() {
				t.Fatalf("lease %d is %+v", i, l)
			}
		}
	}
}

// Entries come all, although not in one reply.
func TestYardStoreWithManyEntries(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	store := processor.YardStore(yard.Dial(t).Hub("orders"))
	own, err := yard.Store(t.Context())
	testkit.Must(t, err)
	g := processor.Group{Hub: "orders", Group: "$Default"}
	value := []byte(strings.Repeat("v", groupwire.MaxValueBytes))
	for i := range 90 {
		testkit.Must(t, testkit.Err(own.Put(t.Context(), g, processor.Entry{Key: fmt.Sprintf("attempts/%d", i), Value: value})))
	}
	entries, err := store.Entries(t.Context(), g, "")
	if err != nil || len(entries) != 90 {
		t.Fatalf("%d entries: %v", len(entries), err)
	}
	keys := map[string]bool{}
	for _, f := range entries {
		keys[f.Key] = slices.Equal(f.Value, value)
	}
	for i := range 90 {
		if !keys[fmt.Sprintf("attempts/%d", i)] {
			t.Errorf("entry %d is missing", i)
		}
	}
}

// scripted is a hub that says what it is told to.
type scripted []func(operation string) (string, error)

func (s *scripted) Name() string { return group.Hub }

func (s *scripted) Call(_ context.Context, c groupwire.Call) ([]byte, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	body, err := next(c.Operation)
	return []byte(body), err
}

func says(body string) func(string) (string, error) {
	return func(string) (string, error) { return body, nil }
}

func fails(err error) func(string) (string, error) {
	return func(string) (string, error) { return "", err }
}

// What a yard's statuses mean to a processor: of two it knows that nothing was written, of all
// others nothing.
func TestYardStoreErrors(t *testing.T) {
	for code, want := range map[int]error{
		groupwire.StatusConflict: processor.ErrConflict, groupwire.StatusFenced: processor.ErrFenced,
		groupwire.StatusNotFound: hub.ErrNotFound, groupwire.StatusUnauthorized: hub.ErrUnauthorized,
		groupwire.StatusFailed: nil, groupwire.StatusTooMany: nil, groupwire.StatusUnavailable: nil, groupwire.StatusBadRequest: nil,
	} {
		said := &hub.CallError{Code: code, Description: "because"}
		store := processor.YardStore(&scripted{fails(fmt.Errorf("call: %w", said))})
		_, err := store.Put(t.Context(), group, processor.Entry{Key: "k"})
		for _, sentinel := range []error{processor.ErrConflict, processor.ErrFenced, hub.ErrNotFound, hub.ErrUnauthorized} {
			testkit.Equal(t, errors.Is(err, sentinel), (sentinel == want), "status %d is %v", code, err)
		}
		if !errors.As(err, &said) || !strings.Contains(err.Error(), "because") || !strings.HasPrefix(err.Error(), "put at the yard: ") {
			t.Errorf("status %d is %v", code, err)
		}
	}
	testkit.ErrorIs(t, testkit.Err(processor.YardStore(&scripted{}).Force(t.Context(), group, processor.Checkpoint{})), errors.ErrUnsupported, "forced with")
}

// A yard that says what makes no sense is an error, and nothing is made of it.
func TestYardStoreAndNonsense(t *testing.T) {
	for _, nonsense := range []string{"", "x", `{"leases":5}`, `[]`, `{} {}`} {
		testkit.ErrorIs(t, testkit.Err(processor.YardStore(&scripted{says(nonsense)}).Leases(t.Context(), group)), groupwire.ErrMalformed, "%q", nonsense)
	}
	watcher := processor.YardStore(&scripted{says(`{}`)}).(processor.Watcher)
	err := watcher.Watch(t.Context(), group, func() { t.Error("it is ready") }, make(chan struct{}))
	testkit.ErrorIs(t, err, groupwire.ErrMalformed, "watched with")
}

// What is known to be written is told beside the error.
func TestYardStoreClaimsInPart(t *testing.T) {
	store := processor.YardStore(&scripted{says(`{"leases":[{"partition":"0","owner":"a","epoch":1,"version":"v"}],"failed":"no space"}`)})
	got, err := store.Claim(t.Context(), group, []processor.Lease{{Partition: "0"}, {Partition: "1"}})
	if len(got) != 1 || got[0].Version != "v" || err == nil || errors.Is(err, processor.ErrConflict) || !strings.Contains(err.Error(), "no space") {
		t.Errorf("claimed %+v, %v", got, err)
	}
}

// A watch tells each change, is ready when it will miss none, and says why it ends.
func TestYardStoreWatches(t *testing.T) {
	changed := make(chan struct{}, 10)
	ready := 0
	broken := errors.New("the connection broke")
	store := processor.YardStore(&scripted{
		says(`{"token":"1"}`), says(`{"token":"1"}`), says(`{"token":"2","changed":true}`), says(`{"token":"9","changed":true}`), fails(broken),
	})
	err := store.(processor.Watcher).Watch(t.Context(), group, func() { ready++ }, changed)
	if !errors.Is(err, broken) || ready != 1 || len(changed) != 2 {
		t.Errorf("ready %d times, told %d times, %v", ready, len(changed), err)
	}
}

// A store is of one hub: another's records are not there by mistake.
func TestYardStoreIsOfOneHub(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	store := processor.YardStore(yard.Dial(t).Hub("orders"))
	testkit.Check(t, testkit.Err(store.Leases(t.Context(), processor.Group{Hub: "Orders", Group: "$Default"})))
	if _, err := store.Leases(t.Context(), processor.Group{Hub: "other", Group: "$Default"}); err == nil {
		t.Error("it is of another hub, too")
	}
}

// P12: the store that processors of a yard's hub have when they are given none is there for others
// too, and other hubs have none.
func TestStoreOfAHub(t *testing.T) {
	if s, err := processor.StoreOf(fakehub.New("orders", 1)); err == nil || !strings.Contains(err.Error(), "set a store") {
		t.Errorf("a hub that is no yard's has the store %v, %v", s, err)
	}
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	g := processor.Group{Hub: "orders", Group: "$Default"}
	store, err := processor.StoreOf(yard.Dial(t).Hub("orders"))
	testkit.Must(t, err)
	put, err := store.Put(t.Context(), g, processor.Entry{Key: "circuit/resize", Value: []byte("closed")})
	testkit.Must(t, err)
	own, err := yard.Store(t.Context())
	testkit.Must(t, err)
	entries, err := own.Entries(t.Context(), g, "circuit/")
	if err != nil || len(entries) != 1 || entries[0].Key != put.Key || string(entries[0].Value) != "closed" {
		t.Errorf("the yard has %+v, %v; put was %+v", entries, err, put)
	}
}
