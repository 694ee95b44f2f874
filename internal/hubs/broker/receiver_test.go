package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// reader is a receiver in a test, with what it was told.
type reader struct {
	*Receiver
	mu      sync.Mutex
	watched []*EvictedError // guarded by mu
}

func (r *reader) evictions() []*EvictedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watched)
}

// receive asks for a slot at partition 0 of hub "orders".
func receive(t *testing.T, b *Broker, group, name string, epoch *int64) (*reader, error) {
	t.Helper()
	r := &reader{}
	got, err := b.Receive(t.Context(), ReceiverConfig{
		Hub: "orders", Group: group, Partition: "0", At: eventlog.Latest(), Name: name, Epoch: epoch,
		Evict: func(err *EvictedError) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.watched = append(r.watched, err)
		},
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { got.Cursor.Close() })
	r.Receiver = got
	return r, nil
}

func mustReceive(t *testing.T, b *Broker, group, name string, epoch *int64) *reader {
	t.Helper()
	r := testkit.Value(receive(t, b, group, name, epoch))(t)
	return r
}

func refusedByEpoch(err error) bool {
	var refusal *EpochError
	return errors.As(err, &refusal)
}

// H5: a receiver loses its slot to one of an equal or higher epoch, and is told once, by
// the time the other has it.
func TestEpochTakesTheSlot(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	first := mustReceive(t, b, DefaultGroup, "first", new(int64(4)))
	second := mustReceive(t, b, DefaultGroup, "second", new(int64(4)))
	want := EvictedError{Name: "first", Epoch: new(int64(4)), NewName: "second", NewEpoch: 4}
	if got := first.evictions(); len(got) != 1 || got[0].Error() != want.Error() {
		t.Fatalf("first was told %v", got)
	}
	if _, err := receive(t, b, DefaultGroup, "third", new(int64(3))); !refusedByEpoch(err) {
		t.Errorf("a lower epoch: %v", err)
	}
	if _, err := receive(t, b, DefaultGroup, "fourth", nil); !refusedByEpoch(err) {
		t.Errorf("without epoch: %v", err)
	}
	if got := second.evictions(); len(got) != 0 {
		t.Errorf("those refused disturbed the second: %v", got)
	}
	first.Close() // it lost its slot already: this frees nobody's
	if _, err := receive(t, b, DefaultGroup, "fifth", nil); !refusedByEpoch(err) {
		t.Errorf("an evicted one's Close freed the slot of another: %v", err)
	}
	third := mustReceive(t, b, DefaultGroup, "third", new(int64(5)))
	if len(first.evictions()) != 1 || len(second.evictions()) != 1 {
		t.Errorf("told %v and %v", first.evictions(), second.evictions())
	}
	third.Close()
	third.Close()
	testkit.Check(t, testkit.Err(receive(t, b, DefaultGroup, "low", new(int64(0)))), "an epoch that is gone still counts")
}

// H6, H7: five without epoch, not six; the slot of one that leaves is free at once; an
// epoch evicts them all; and when it is gone they may come again.
func TestReceiversWithoutEpoch(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	var readers []*reader
	for range MaxReceivers {
		readers = append(readers, mustReceive(t, b, DefaultGroup, "", nil))
	}
	var quota *ReceiverQuotaError
	if _, err := receive(t, b, DefaultGroup, "", nil); !errors.As(err, &quota) || len(quota.Names) != MaxReceivers {
		t.Fatalf("the sixth: %v", err)
	}
	readers[2].Close()
	readers[2] = mustReceive(t, b, DefaultGroup, "", nil)
	epoch := mustReceive(t, b, DefaultGroup, "owner", new(int64(0)))
	for i, r := range readers {
		if got := r.evictions(); len(got) != 1 || got[0].NewName != "owner" || got[0].Epoch != nil {
			t.Errorf("%d was told %v", i, got)
		}
	}
	epoch.Close()
	mustReceive(t, b, DefaultGroup, "", nil)
}

// H1, H5: a slot belongs to a group and a partition of one hub. $Default is one group in
// any case, others differ by it.
func TestSlotsAreApart(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 2, "billing", "Billing")
	first := mustReceive(t, b, DefaultGroup, "", new(int64(1)))
	billing := mustReceive(t, b, "billing", "", new(int64(1)))
	mustReceive(t, b, "Billing", "", new(int64(1)))
	other, err := b.Receive(t.Context(), ReceiverConfig{Hub: "ORDERS", Group: DefaultGroup, Partition: "1", Epoch: new(int64(1))})
	testkit.Must(t, err)
	defer other.Cursor.Close()
	if len(first.evictions())+len(billing.evictions()) > 0 {
		t.Errorf("told %v, %v", first.evictions(), billing.evictions())
	}
	mustReceive(t, b, "$DEFAULT", "", new(int64(1)))
	testkit.Equal(t, len(first.evictions()), 1, "$DEFAULT is another group than $Default")
}

// H5: what is not there, or not to be read, evicts nobody.
func TestReceiveRefusals(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	there := mustReceive(t, b, DefaultGroup, "", new(int64(1)))
	past := func(err error) bool { return errors.As(err, new(*eventlog.PositionError)) }
	tests := []struct {
		what string
		cfg  ReceiverConfig
		is   func(error) bool
	}{
		{"an unknown hub", ReceiverConfig{Hub: "nowhere", Group: DefaultGroup, Partition: "0"}, func(err error) bool { return isNotFound(err, KindHub) }},
		{"an unknown group", ReceiverConfig{Hub: "orders", Group: "nobody", Partition: "0"}, func(err error) bool { return isNotFound(err, KindGroup) }},
		{"an unknown partition", ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "1"}, func(err error) bool { return isNotFound(err, KindPartition) }},
		{"a partition misspelled", ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "00"}, func(err error) bool { return isNotFound(err, KindPartition) }},
		{"a position past the end", ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.At(7)}, past},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			tt.cfg.Epoch = new(int64(9))
			if _, err := b.Receive(t.Context(), tt.cfg); !tt.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := there.evictions(); len(got) > 0 {
		t.Errorf("told %v", got)
	}
}

// H5: a hub created anew has none of the old one's receivers, and those of a deleted
// group keep their slots until they close.
func TestReceiversOfWhatIsDeleted(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1, "billing")
	billing := mustReceive(t, b, "billing", "", new(int64(9)))
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "billing"))
	testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", "billing")))
	if _, err := receive(t, b, "billing", "", new(int64(8))); !refusedByEpoch(err) {
		t.Errorf("got %v", err)
	}
	billing.Close()

	old := mustReceive(t, b, DefaultGroup, "", new(int64(9)))
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	testkit.ErrorIs(t, testkit.Err(old.Cursor.TryNext(t.Context())), eventlog.ErrRemoved, "a reader of a deleted hub")
	mustCreate(t, b, "orders", 1)
	fresh := mustReceive(t, b, DefaultGroup, "", new(int64(0)))
	old.Close()
	if _, err := receive(t, b, DefaultGroup, "", nil); !refusedByEpoch(err) {
		t.Errorf("the old hub's receiver freed a slot of the new one: %v", err)
	}
	if len(fresh.evictions())+len(old.evictions()) > 0 {
		t.Error("receivers of different hubs met")
	}
}

// H4: a receiver that begins at the end gets what is published once it is there.
func TestReceiveFromTheEnd(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	mustPublish(t, b, "orders", Target{}, "before")
	r := mustReceive(t, b, DefaultGroup, "", nil)
	mustPublish(t, b, "orders", Target{}, "after")
	run, err := r.Cursor.TryNext(t.Context())
	if err != nil || len(run.Events) != 1 || string(run.Events[0].Message) != "after" {
		t.Errorf("got %+v, %v", run, err)
	}
}

// K4: readers of a hub's events come to a frame, and are told so: it is not the end.
func TestReadersOfEventsMeetAFrame(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	mustPublish(t, b, "orders", Target{}, "event")
	receiver := mustReceive(t, b, DefaultGroup, "", nil).Cursor
	cursor := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Latest()))(t)
	h, _, err := b.locate(t.Context(), "orders", "0")
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), h.partitions[0], logtest.Opaque(2, "frame"))))
	for name, c := range map[string]eventlog.Cursor{"a receiver": receiver, "a cursor": cursor} {
		testkit.ErrorIs(t, testkit.Err(c.TryNext(t.Context())), eventlog.ErrForm, name)
		testkit.Equal(t, c.At(), 1, name)
	}
}

// H10: the newest event is told beside deliveries.
func TestAReceiverKnowsTheNewestEvent(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "Orders", 1)
	r := mustReceive(t, b, DefaultGroup, "", nil)
	if info := r.Newest(); info.Last != eventlog.NoSequence || !info.Empty {
		t.Errorf("before the first event: %+v", info)
	}
	p := mustPublish(t, b, "orders", Target{}, "a", "b")
	info := r.Newest()
	if info.Hub != "Orders" || info.ID != "0" || info.Last != 1 || info.LastOffset != "1" || !info.LastTime.Equal(p.Time) || info.Retrieved.IsZero() {
		t.Errorf("got %+v", info)
	}
	allocs := testing.AllocsPerRun(100, func() { r.Newest() })
	if allocs > 1 {
		t.Errorf("%v allocations", allocs)
	}
}

// H5: who comes while another is still evicting waits for it, so that nobody reads any
// more when the last one begins; and may give up waiting.
func TestNewcomersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newYard(t).open(t)
		mustCreate(t, b, "orders", 1)
		slow := make(chan struct{})
		var order []string
		old, err := b.Receive(t.Context(), ReceiverConfig{
			Hub: "orders", Group: DefaultGroup, Partition: "0", Epoch: new(int64(1)),
			Evict: func(*EvictedError) { <-slow; order = append(order, "old left") },
		})
		testkit.Must(t, err)
		defer old.Cursor.Close()
		var second, third *reader
		go func() { second, _ = receive(t, b, DefaultGroup, "second", new(int64(2))) }()
		synctest.Wait()
		go func() {
			third, _ = receive(t, b, DefaultGroup, "third", new(int64(3)))
			order = append(order, "third came")
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Receive(ctx, ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0", Epoch: new(int64(9))}); !errors.Is(err, context.Canceled) {
			t.Errorf("an impatient one got %v", err)
		}
		old.Close() // while it is being evicted
		if second != nil || third != nil {
			t.Fatal("one is let in while another still reads")
		}
		close(slow)
		synctest.Wait()
		if !slices.Equal(order, []string{"old left", "third came"}) || second == nil || third == nil {
			t.Fatalf("order %q, second %v, third %v", order, second, third)
		}
		if len(second.evictions()) != 1 || len(third.evictions()) != 0 {
			t.Errorf("told %v, %v", second.evictions(), third.evictions())
		}
	})
}

// H5: closing inside the eviction, and closing twice, is fine; slots that nobody has or
// wants are forgotten; the gauge counts those who have one.
func TestSlotsAreForgotten(t *testing.T) {
	y := newYard(t)
	registry := prometheus.NewPedanticRegistry()
	b := open(t, Config{Engine: y.Engine, Meta: y.Memory, Metrics: registry})
	mustCreate(t, b, "orders", 1)
	count := func() float64 { return testutil.ToFloat64(b.metrics.receivers) }
	var self *Receiver
	self, err := b.Receive(t.Context(), ReceiverConfig{
		Hub: "orders", Group: DefaultGroup, Partition: "0", Evict: func(*EvictedError) { self.Close() },
	})
	testkit.Must(t, err)
	defer self.Cursor.Close()
	quiet, err := b.Receive(t.Context(), ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0"})
	testkit.Must(t, err)
	defer quiet.Cursor.Close()
	testkit.Equal(t, count(), 2, "receivers are counted")
	owner := mustReceive(t, b, DefaultGroup, "", new(int64(0)))
	testkit.Equal(t, count(), 1, "receivers are counted")
	for _, r := range []*Receiver{self, quiet, owner.Receiver, owner.Receiver} {
		r.Close()
	}
	if count() != 0 || len(b.slots.all) != 0 {
		t.Errorf("%v receivers are counted, %d slots are kept", count(), len(b.slots.all))
	}
}
