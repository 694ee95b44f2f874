package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2, H3: what one caller submits to a partition is stored in that order, whoever waits
// for it and in whatever order, and its bytes may be used again at once.
func TestSubmitKeepsOrder(t *testing.T) {
	const publications = 200
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 2)
	var wg sync.WaitGroup
	var want []string
	body := make([]byte, 0, 16)
	for n := range publications {
		want = append(want, strconv.Itoa(n))
		body = strconv.AppendInt(body[:0], int64(n), 10)
		p, err := b.Submit(t.Context(), "orders", Target{Partition: "1"}, []eventlog.Event{{Message: body}})
		testkit.Must(t, err)
		wg.Go(func() {
			stored, err := p.Wait(t.Context())
			if err != nil || stored.Partition != "1" || stored.First != eventlog.Sequence(n) || stored.Count != 1 || stored.Time.IsZero() {
				t.Errorf("%d: %+v, %v", n, stored, err)
			}
		})
	}
	wg.Wait()
	testkit.Slices(t, readAll(t, b, "orders")[1], want)
}

// H2: what was refused under way is not appended again behind the caller's back, where it
// would come behind what was submitted meanwhile.
func TestSubmitDoesNotRepeat(t *testing.T) {
	for _, refusal := range []error{eventlog.ErrFenced, eventlog.ErrRemoved, eventlog.ErrNoSpace, eventlog.ErrUncertain} {
		t.Run(refusal.Error(), func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			y.Engine.Inject(nth(logtest.OpSubmit, 1, logtest.Refused(refusal)))
			mustCreate(t, b, "orders", 1)
			first, err1 := b.Submit(t.Context(), "orders", Target{}, events("first"))
			second, err2 := b.Submit(t.Context(), "orders", Target{}, events("second"))
			testkit.Must(t, errors.Join(err1, err2))
			testkit.ErrorIs(t, testkit.Err(first.Wait(t.Context())), refusal, "the first")
			testkit.Check(t, testkit.Err(second.Wait(t.Context())), "the second")
			testkit.Equal(t, y.Engine.Count(logtest.OpSubmit), 2, "appends")
			testkit.Slices(t, readAll(t, b, "orders")[0], []string{"second"})
		})
	}
}

// H2: what Submit itself is told about the hub, it acts on.
func TestSubmitFindsTheNewIncarnation(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	old := b.hubs.find("orders")
	testkit.Must(t, y.Engine.Remove(t.Context(), old.log))
	if _, err := b.Submit(t.Context(), "orders", Target{}, events("x")); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("a hub that is half deleted: %v", err)
	}
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	mustCreate(t, b, "orders", 1)
	p := testkit.Value(b.Submit(t.Context(), "orders", Target{}, events("x")))(t)
	testkit.Check(t, testkit.Err(p.Wait(t.Context())))
}

// H9: who means one incarnation of a hub does not reach the next.
func TestSubmitToOneIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newYard(t).open(t)
		mustCreate(t, b, "orders", 1)
		old := testkit.Value(b.Hub("orders"))(t)
		to := Target{Created: old.Created}
		testkit.Check(t, testkit.Err(b.Publish(t.Context(), "Orders", to, events("x"))), "while it is there")
		time.Sleep(time.Millisecond)
		testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
		mustCreate(t, b, "orders", 1)
		wantNotFound(t, testkit.Err(b.Publish(t.Context(), "orders", to, events("x"))), KindHub, "published")
		wantNotFound(t, testkit.Err(b.Submit(t.Context(), "orders", to, events("x"))), KindHub, "submitted")
		if info, err := b.Partition(t.Context(), "orders", "0"); err != nil || !info.Empty {
			t.Errorf("the new one has %+v, %v", info, err)
		}
	})
}

// H2: a hub that is deleted while something is under way is not found.
func TestWaitForADeletedHub(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	p := testkit.Value(b.Submit(t.Context(), "orders", Target{}, events("x")))(t)
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	_, err := p.Wait(t.Context())
	if err == nil && storagetest.OverServers() {
		return // they store what they are sent, whether anybody waits or not: that was before the deletion
	}
	wantNotFound(t, err, KindHub)
}

// H2: Submit refuses what Publish refuses, and Wait heeds its context.
func TestSubmitRefusals(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	for what, submit := range map[string]func() (*Pending, error){
		"hub":       func() (*Pending, error) { return b.Submit(t.Context(), "nowhere", Target{}, events("x")) },
		"partition": func() (*Pending, error) { return b.Submit(t.Context(), "orders", Target{Partition: "1"}, events("x")) },
		"key":       func() (*Pending, error) { return b.Submit(t.Context(), "orders", Target{Key: "\xff"}, events("x")) },
		"empty":     func() (*Pending, error) { return b.Submit(t.Context(), "orders", Target{}, nil) },
	} {
		if p, err := submit(); err == nil || p != nil {
			t.Errorf("%s: got %v, %v", what, p, err)
		}
	}
	stuck := Pending{broker: b, hub: b.hubs.find("orders"), flight: &flight{landed: make(chan struct{})}}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := fmt.Errorf("gave up: %w", context.Canceled)
	cancel(why)
	testkit.ErrorIs(t, testkit.Err(stuck.Wait(ctx)), why)
}

// H2: a publication under way costs one allocation of the broker's.
func TestSubmitAllocatesLittle(t *testing.T) {
	b := open(t, Config{Engine: nowhere{}, Meta: metatest.NewMemory()})
	mustCreate(t, b, "orders", 4)
	batch := make([]eventlog.Event, 10)
	allocs := testing.AllocsPerRun(100, func() {
		p := testkit.Value(b.Submit(t.Context(), "orders", Target{Partition: "3"}, batch))(t)
		testkit.Must(t, testkit.Err(p.Wait(t.Context())))
	})
	if allocs > 2 { // the engine's receipt is the other
		t.Errorf("%v allocations", allocs)
	}
}
