package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1: what a new hub is like.
func TestCreateHub(t *testing.T) {
	forever := Retention{}
	tests := []struct {
		what string
		cfg  HubConfig
		want Hub
		err  error
	}{
		{"defaults fill what is left out", HubConfig{Name: "orders"},
			Hub{Name: "orders", Partitions: DefaultPartitions, Retention: Retention{Age: DefaultRetentionAge}}, nil},
		{"the spelling is kept", HubConfig{Name: "Orders", Partitions: 1},
			Hub{Name: "Orders", Partitions: 1, Retention: Retention{Age: DefaultRetentionAge}}, nil},
		{"zero retention keeps for ever", HubConfig{Name: "a/b", Partitions: MaxPartitions, Age: &forever.Age, Bytes: &forever.Bytes},
			Hub{Name: "a/b", Partitions: MaxPartitions}, nil},
		{"retention can be by age and size", HubConfig{Name: "x", Partitions: 2, Age: new(1500 * time.Millisecond), Bytes: new(int64(1 << 40))},
			Hub{Name: "x", Partitions: 2, Retention: Retention{Age: 1500 * time.Millisecond, Bytes: 1 << 40}}, nil},
		{"more partitions than allowed are refused", HubConfig{Name: "x", Partitions: MaxPartitions + 1}, Hub{}, ErrInvalidPartitionCount},
		{"fewer than one are refused", HubConfig{Name: "x", Partitions: -1}, Hub{}, ErrInvalidPartitionCount},
		{"a negative age is refused", HubConfig{Name: "x", Age: new(time.Duration(-1))}, Hub{}, ErrInvalidRetention},
		{"a negative size is refused", HubConfig{Name: "x", Bytes: new(int64(-1))}, Hub{}, ErrInvalidRetention},
		{"a bad name is refused", HubConfig{Name: "no blanks"}, Hub{}, ErrInvalidName},
		{"a reserved name is refused", HubConfig{Name: "Metrics/x"}, Hub{}, ErrReservedName},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			got, err := b.CreateHub(t.Context(), tt.cfg)
			testkit.MustErrorIs(t, err, tt.err)
			if err != nil {
				testkit.Equal(t, len(b.Hubs()), 0, "a refused hub exists")
				return
			}
			if time.Since(got.Created).Abs() > time.Minute {
				t.Errorf("created at %v", got.Created)
			}
			tt.want.Created, tt.want.ID = got.Created, got.ID
			testkit.That(t, got.ID != [16]byte{}, "it has no id")
			for where, h := range map[string]Hub{"created": got, "found": must(b.Hub(tt.cfg.Name)), "after a restart": must(y.open(t).Hub(tt.cfg.Name))} {
				if diff := cmp.Diff(tt.want, h); diff != "" {
					t.Errorf("%s: %s", where, diff)
				}
			}
		})
	}
}

func must(h Hub, err error) Hub {
	if err != nil {
		panic(err)
	}
	return h
}

// H1: partition ids are "0" to "n-1".
func TestPartitionIDs(t *testing.T) {
	testkit.Slices(t, (Hub{Partitions: 3}).PartitionIDs(), []string{"0", "1", "2"})
}

// H1: hub names are one name whatever their case.
func TestHubNamesHaveNoCase(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "Orders/EU", 1)
	mustCreate(t, b, "alpha", 1)
	if h, err := b.Hub("oRDERS/eu"); err != nil || h.Name != "Orders/EU" {
		t.Errorf("got %v, %v", h, err)
	}
	testkit.ErrorIs(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "ORDERS/eu"})), ErrHubExists, "another spelling")
	mustPublish(t, b, "orders/eu", Target{}, "x")
	if got := readAll(t, b, "ORDERS/EU"); len(got[0]) != 1 {
		t.Errorf("got %v", got)
	}
	testkit.Check(t, b.DeleteHub(t.Context(), "orders/EU"))
	testkit.Slices(t, names(b.Hubs()), []string{"alpha"}, "left")
}

func names(hubs []Hub) []string {
	var all []string
	for _, h := range hubs {
		all = append(all, h.Name)
	}
	return all
}

// H1: a hub in a path and one whose name looks like it when escaped are two.
func TestSlashNamesAreTheirOwn(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	hubs := []string{"a", "a.b", "a/b", "a/b/c", "a2Fb"}
	for _, name := range hubs {
		mustCreate(t, b, name, 1)
		mustPublish(t, b, name, Target{}, name)
	}
	b = y.open(t)
	testkit.Slices(t, names(b.Hubs()), hubs)
	for _, name := range hubs {
		if got := readAll(t, b, name); !slices.Equal(got[0], []string{name}) {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// H1: of many who create one name, one wins and the others are told.
func TestConcurrentCreatesOfOneName(t *testing.T) {
	y := newYard(t)
	nodes := []*Broker{y.open(t), y.open(t)}
	var wg sync.WaitGroup
	won := make([]bool, 16)
	for i := range won {
		wg.Go(func() {
			_, err := nodes[i%2].CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: i + 1})
			if err != nil && !errors.Is(err, ErrHubExists) {
				t.Error(err)
			}
			won[i] = err == nil
		})
	}
	wg.Wait()
	winner := slices.Index(won, true)
	if winner < 0 || slices.Index(won[winner+1:], true) >= 0 {
		t.Fatalf("winners: %v", won)
	}
	if h := must(y.open(t).Hub("orders")); h.Partitions != winner+1 {
		t.Errorf("%d partitions are not the winner's %d", h.Partitions, winner+1)
	}
}

// H1, H4: the number of partitions is fixed, retention is not.
func TestUpdateHub(t *testing.T) {
	four, five := 4, 5
	day := Retention{Age: 24 * time.Hour, Bytes: 1 << 30}
	tests := []struct {
		what   string
		hub    string
		change HubChange
		want   Retention
		err    error
	}{
		{"nothing to change changes nothing", "orders", HubChange{}, Retention{Age: DefaultRetentionAge}, nil},
		{"retention changes", "ORDERS", HubChange{Age: &day.Age, Bytes: &day.Bytes}, day, nil},
		{"retention can become for ever", "orders", forEver(), Retention{}, nil},
		{"an age alone leaves the size", "orders", HubChange{Age: new(time.Hour)}, Retention{Age: time.Hour}, nil},
		{"a size alone leaves the age", "orders", HubChange{Bytes: new(int64(7))}, Retention{Age: DefaultRetentionAge, Bytes: 7}, nil},
		{"the present number of partitions is fine", "orders", HubChange{Partitions: &four, Age: &day.Age, Bytes: &day.Bytes}, day, nil},
		{"another one is refused, with all else", "orders", HubChange{Partitions: &five, Age: &day.Age}, Retention{Age: DefaultRetentionAge}, ErrPartitionsFixed},
		{"a bad age is refused", "orders", HubChange{Age: new(time.Duration(-1))}, Retention{Age: DefaultRetentionAge}, ErrInvalidRetention},
		{"a bad size is refused", "orders", HubChange{Bytes: new(int64(-1))}, Retention{Age: DefaultRetentionAge}, ErrInvalidRetention},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 4)
			got, err := b.UpdateHub(t.Context(), tt.hub, tt.change)
			testkit.MustErrorIs(t, err, tt.err)
			if err == nil && got.Retention != tt.want {
				t.Errorf("answered %v, want %v", got.Retention, tt.want)
			}
			for _, h := range []Hub{must(b.Hub("orders")), must(y.open(t).Hub("orders"))} {
				if h.Retention != tt.want || h.Partitions != 4 {
					t.Errorf("got %+v, want %v", h, tt.want)
				}
			}
		})
	}
	b := newYard(t).open(t)
	for _, name := range []string{"nowhere", "not a name", ""} {
		wantNotFound(t, testkit.Err(b.UpdateHub(t.Context(), name, HubChange{Age: &day.Age})), KindHub, "%q", name)
	}
}

// forEver keeps events for ever.
func forEver() HubChange { return HubChange{Age: new(time.Duration), Bytes: new(int64)} }

// H4: two changes of different settings both last, whichever comes first.
func TestConcurrentChangesAreMerged(t *testing.T) {
	y := newYard(t)
	b, other := y.open(t), y.node().open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Must(t, other.definitions.Load(t.Context()))
	y.Meta.InjectOnce(metatest.Op.Changes, func(metatest.Op) error {
		_, err := other.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Hour)})
		return err
	})
	got, err := b.UpdateHub(t.Context(), "orders", HubChange{Bytes: new(int64(1000))})
	if want := (Retention{Age: time.Hour, Bytes: 1000}); err != nil || got.Retention != want {
		t.Errorf("got %v, %v, want %v", got.Retention, err, want)
	}
}

// H4: the engine hears of a changed retention.
func TestEngineFollowsRetention(t *testing.T) {
	y := newYard(t)
	spy := &retentionSpy{Engine: y.Engine}
	b := open(t, Config{Engine: spy, Meta: y.Memory})
	mustCreate(t, b, "orders", 2)
	want := Retention{Bytes: 1 << 20}
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{Age: &want.Age, Bytes: &want.Bytes})))
	testkit.Equal(t, spy.newest, eventlog.Shape{Partitions: 2, Kind: eventlog.KindHub, Retention: want}, "the log")
	spy.newest = eventlog.Shape{}
	open(t, Config{Engine: spy, Meta: y.Memory})
	testkit.Equal(t, spy.newest, eventlog.Shape{Partitions: 2, Kind: eventlog.KindHub, Retention: want}, "the log after a start")
}

type retentionSpy struct {
	eventlog.Engine
	newest eventlog.Shape // written by one at a time
}

func (s *retentionSpy) Provide(ctx context.Context, log string, shape eventlog.Shape) error {
	s.newest = shape
	return s.Engine.Provide(ctx, log, shape)
}

// C5: a hub whose log cannot be provided is stored, and ready once the log can be; also at a start.
func TestLogsAreProvidedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		y.Engine.Fail(eventlog.ErrUnavailable, logtest.OpProvide)
		_, err := b.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 1, Age: new(time.Hour)})
		testkit.ErrorIs(t, err, eventlog.ErrUnavailable, "create")
		testkit.Must(t, testkit.Err(b.Hub("orders")))
		_, err = b.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Minute)})
		testkit.ErrorIs(t, err, eventlog.ErrUnavailable, "update")
		b = y.open(t)
		defer testkit.Run(t, b.Run)()
		time.Sleep(time.Minute)
		before := y.Engine.Count(logtest.OpProvide)
		y.Engine.Inject(nil)
		time.Sleep(2 * time.Second)
		testkit.Equal(t, y.Engine.Count(logtest.OpProvide), before+1, "calls until it is provided")
		testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Minute)})))
		time.Sleep(time.Minute)
		testkit.Equal(t, y.Engine.Count(logtest.OpProvide), before+1, "calls when nothing has changed")
	})
}

// H1: a configuration file makes what is missing and is never quietly ignored.
func TestEnsureHub(t *testing.T) {
	b := newYard(t).open(t)
	cfg := HubConfig{Name: "orders", Partitions: 2}
	for range 2 {
		h, err := b.EnsureHub(t.Context(), cfg, []string{"$default", "billing", "Billing"})
		if err != nil || h.Partitions != 2 {
			t.Fatalf("got %+v, %v", h, err)
		}
	}
	groups, err := b.Groups(t.Context(), "orders")
	if err != nil || len(groups) != 3 {
		t.Errorf("groups %v, %v", groups, err)
	}
	if h, err := b.EnsureHub(t.Context(), HubConfig{Name: "ORDERS"}, nil); err != nil || h.Partitions != 2 || h.Name != "orders" {
		t.Errorf("without a number: got %+v, %v", h, err)
	}
	// What an operator has set stays where the file says nothing of it.
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{Bytes: new(int64(1 << 20)), QuotaBytes: new(int64(1000)), MaxFrameBytes: new(77)})))
	cfg.Age, cfg.QuotaEvents = new(time.Hour), new(int64(5000))
	h := testkit.Value(b.EnsureHub(t.Context(), cfg, nil))(t)
	testkit.Equal(t, h.Retention, Retention{Age: time.Hour, Bytes: 1 << 20}, "the retention")
	testkit.Equal(t, h.Quota, quota.Limit{Events: 5000, Bytes: 1000}, "the quota")
	testkit.Equal(t, h.Frames, FrameRules{MaxBytes: 77}, "the rules of frames")
	cfg.Partitions = 3
	testkit.ErrorIs(t, testkit.Err(b.EnsureHub(t.Context(), cfg, nil)), ErrPartitionsFixed, "with another number")
	if _, err := b.EnsureHub(t.Context(), HubConfig{Name: "new"}, []string{"no good"}); !errors.Is(err, ErrInvalidName) {
		t.Errorf("with a bad group: got %v", err)
	}
}

// A broker says what is wrong instead of starting without a hub.
func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	tests := []struct{ what, key, value string }{
		{"no JSON", "hubs/orders", "{"},
		{"another hub's definition", "hubs/orders", `{"name":"other","log":"x-1","partitions":1}`},
		{"no log", "hubs/orders", `{"name":"orders","partitions":1}`},
		{"no partitions", "hubs/orders", `{"name":"orders","log":"x-1"}`},
		{"an age that is none", "hubs/orders", `{"name":"orders","log":"x-1","partitions":1,"retention":{"age":"old"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), tt.key, 0, []byte(tt.value))))
			_, err := Open(t.Context(), Config{Engine: y.Engine, Meta: y.Memory, Log: testkit.Quiet()})
			if err == nil || !strings.Contains(err.Error(), tt.key) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	y := newYard(t)
	testkit.Equal(t, y.open(t).Namespace(), "eventyard", "by default it")
	if got := open(t, Config{Engine: y.Engine, Meta: y.Memory, Namespace: "factory"}).Namespace(); got != "factory" {
		t.Errorf("got %q", got)
	}
}

func TestOpenNeedsEngineAndStore(t *testing.T) {
	if _, err := Open(t.Context(), Config{}); err == nil {
		t.Error("opened without anything")
	}
}

// A change that somebody else beats to it is tried again.
func TestUpdatesOfOneHubAtOnce(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := b.UpdateHub(t.Context(), "orders", HubChange{Bytes: new(int64(i + 1))})
			testkit.Check(t, err)
		})
	}
	wg.Wait()
	stored, known := must(y.open(t).Hub("orders")), must(b.Hub("orders"))
	if stored != known {
		t.Errorf("known is %v, stored %v", known, stored)
	}
}

func ExampleHub_PartitionIDs() {
	fmt.Println(Hub{Name: "orders", Partitions: 4}.PartitionIDs())
	// Output: [0 1 2 3]
}

// R1: nothing new gets a name that other programs may take for another; R4: what has one keeps it.
func TestAmbiguousNames(t *testing.T) {
	b := newYard(t).open(t)
	for _, name := range []string{"a//b", "a..b", "a/../b", "a./b"} {
		testkit.ErrorIs(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: name})), ErrInvalidName, "hub %q", name)
		testkit.ErrorIs(t, testkit.Err(b.EnsureHub(t.Context(), HubConfig{Name: name}, nil)), ErrInvalidName, "configured hub %q", name)
	}
	older := testkit.Value(define(HubConfig{Name: "a//b", Partitions: 1}))(t)
	testkit.Must(t, testkit.Err(b.definitions.Put(t.Context(), mirror.Item[definition]{Key: hubKey("a//b"), Value: older})))
	testkit.ErrorIs(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "a//b"})), ErrHubExists)
	testkit.Check(t, testkit.Err(b.EnsureHub(t.Context(), HubConfig{Name: "a//b", Partitions: 1}, []string{"billing"})))
	testkit.ErrorIs(t, testkit.Err(b.CreateGroup(t.Context(), "a//b", "x..y")), ErrInvalidName, "group")
	for _, group := range []string{"billing/partitions/0", "a/ConsumerGroups/b", "a/messages"} { // a token names partition 0 of billing by it
		testkit.ErrorIs(t, testkit.Err(b.CreateGroup(t.Context(), "a//b", group)), ErrReservedName, "group %q", group)
	}
	testkit.Check(t, b.DeleteHub(t.Context(), "a//b"))
}
