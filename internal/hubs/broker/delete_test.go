package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1, H4: a hub that is created again has nothing of the old one.
func TestRecreatedHubIsEmpty(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2, "billing")
	for range 4 {
		mustPublish(t, b, "orders", Target{}, "old")
	}
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	expectGone(t, b, "orders")
	mustCreate(t, b, "orders", 3)
	if groups, err := b.Groups(t.Context(), "orders"); err != nil || len(groups) != 1 {
		t.Errorf("groups %v, %v", groups, err)
	}
	testkit.Equal(t, mustPublish(t, b, "orders", Target{Partition: "1"}, "new").First, 0, "first number")
	for _, broker := range []*Broker{b, y.open(t)} {
		if got := readAll(t, broker, "orders"); len(got) != 3 || !slices.Equal(got[1], []string{"new"}) || len(got[0])+len(got[2]) > 0 {
			t.Errorf("got %q", got)
		}
	}
}

// expectGone checks that no call finds the hub.
func expectGone(t *testing.T, b *Broker, hub string) {
	t.Helper()
	ctx := t.Context()
	_, byName := b.Hub(hub)
	_, publish := b.Publish(ctx, hub, Target{}, events("x"))
	_, partition := b.Partition(ctx, hub, "0")
	_, cursor := b.Cursor(ctx, hub, DefaultGroup, "0", eventlog.Earliest())
	_, groups := b.Groups(ctx, hub)
	_, group := b.Group(ctx, hub, DefaultGroup)
	_, createGroup := b.CreateGroup(ctx, hub, "g")
	_, update := b.UpdateHub(ctx, hub, forEver())
	for what, err := range map[string]error{
		"Hub": byName, "Publish": publish, "Partition": partition, "Cursor": cursor, "Groups": groups,
		"Group": group, "CreateGroup": createGroup, "UpdateHub": update, "DeleteGroup": b.DeleteGroup(ctx, hub, "g"),
	} {
		if !isNotFound(err, KindHub) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestDeleteWhatIsNotThere(t *testing.T) {
	b := newYard(t).open(t)
	for _, name := range []string{"nowhere", "no name", ""} {
		wantNotFound(t, b.DeleteHub(t.Context(), name), KindHub, "%q", name)
	}
}

// H4: readers of a deleted hub are told.
func TestCursorsOfADeletedHubEnd(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	c, err := b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Latest())
	testkit.Must(t, err)
	defer c.Close()
	ended := make(chan error)
	go func() {
		_, err := c.Next(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	testkit.ErrorIs(t, <-ended, eventlog.ErrRemoved)
}

// H1, H4: wherever a deletion is cut off, the hub is either whole or, after the next
// start, gone with all it had; and its name is free for a new one, without any start.
func TestDeletionSurvivesACrashAtEveryStep(t *testing.T) {
	for _, answerLost := range []bool{false, true} {
		for _, next := range []string{"restart", "create", "delete"} {
			// Marking, removing the log, two groups, a record of one, the definition.
			for step := 1; step <= 6; step++ {
				t.Run(fmt.Sprintf("step %d, answer lost %v, then %s", step, answerLost, next), func(t *testing.T) {
					crashDeletion(t, &faults{step: step, answerLost: answerLost}, next)
				})
			}
		}
	}
}

func crashDeletion(t *testing.T, f *faults, next string) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustPublish(t, b, "orders", Target{}, "old")
	for _, group := range []string{"a", "b/c"} {
		testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", group)))
	}
	keepRecord(t, b, "orders", "a", "lease/0")
	log := b.hubs.find("orders").log
	// Another node, open since before, that knows nothing of the deletion.
	healthy := &faults{}
	node := y.node()
	b, dying := y.node().failRemovals(healthy).open(t), node.open(t)
	node.fail(f)
	testkit.MustErrorIs(t, dying.DeleteHub(t.Context(), "orders"), errCrashed)

	decided := f.step > 1 || f.answerLost
	switch next {
	case "restart":
		b = y.node().failRemovals(healthy).open(t)
	case "create":
		_, err := b.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 1})
		if decided && err != nil || !decided && !errors.Is(err, ErrHubExists) {
			t.Fatalf("create: %v", err)
		}
	case "delete":
		err := b.DeleteHub(t.Context(), "orders")
		if err != nil && !isNotFound(err, KindHub) {
			t.Fatal(err)
		}
		if err != nil {
			b = y.open(t) // what was finished elsewhere it would learn by watching
		}
		decided = true
	}
	if !decided {
		if got := readAll(t, b, "orders"); !slices.Equal(got[0], []string{"old"}) {
			t.Errorf("got %q", got)
		}
		return
	}
	expectNothingOf(t, y, log, append(f.removed, healthy.removed...))
	if next != "create" {
		expectGone(t, b, "orders")
		mustCreate(t, b, "orders", 1)
	}
	if got := readAll(t, b, "orders"); len(got[0]) != 0 {
		t.Errorf("the new hub holds %q", got)
	}
}

// expectNothingOf checks that no trace of a hub's incarnation is left.
func expectNothingOf(t *testing.T, y yard, log string, removed []string) {
	t.Helper()
	if !slices.Contains(removed, log) {
		t.Errorf("log %s was not removed, only %q", log, removed)
	}
	for _, prefix := range []string{groupKeys(log), hubRecordKeys(log)} {
		if left, err := y.Memory.List(t.Context(), prefix); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	hubs := testkit.Value(y.Memory.List(t.Context(), hubsPrefix))(t)
	for _, e := range hubs {
		if def, err := decodeDefinition(e); err != nil || def.Log == log {
			t.Errorf("definition left: %s, %v", e.Value, err)
		}
	}
}

// H1: storage that cannot be removed holds up no other hub, and the deletion can be
// asked for again.
func TestDeletionThatCannotBeFinished(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustCreate(t, b, "other", 1)
	stuck := &faults{step: 1}
	b = y.failRemovals(stuck).open(t)
	testkit.MustErrorIs(t, b.DeleteHub(t.Context(), "orders"), errCrashed)
	expectGone(t, b, "orders")
	b = y.open(t)
	expectGone(t, b, "orders")
	mustPublish(t, b, "other", Target{}, "x")
	testkit.ErrorIs(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "orders"})), errCrashed, "create")
	stuck.set(0)
	testkit.Check(t, b.DeleteHub(t.Context(), "orders"))
	wantNotFound(t, b.DeleteHub(t.Context(), "orders"), KindHub, "once more")
}

// H1: a deletion that is decided does not depend on who asked for it waiting.
func TestDeletionOutlivesItsCaller(t *testing.T) {
	for what, step := range map[string]func(y yard, leave func()){
		"who leaves before it is marked": func(y yard, leave func()) {
			y.Meta.InjectOnce(metatest.Op.Changes, func(metatest.Op) error { leave(); return nil })
		},
		"who leaves while the log is removed": func(y yard, leave func()) {
			y.Engine.Inject(func(op logtest.Op) error {
				if op.Kind == logtest.OpRemove {
					leave()
				}
				return nil
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 1)
			ctx, leave := context.WithCancel(t.Context())
			step(y, leave)
			testkit.Must(t, b.DeleteHub(ctx, "orders"))
			expectGone(t, b, "orders")
			if left, _ := y.Memory.List(t.Context(), hubsPrefix); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// H1: many who delete one hub do no harm to each other, nor to the next of that name.
func TestConcurrentDeletes(t *testing.T) {
	y := newYard(t)
	nodes := []*Broker{y.open(t), y.open(t)}
	mustCreate(t, nodes[0], "orders", 1)
	var wg sync.WaitGroup
	deleted := make(chan struct{}, 8)
	for i := range 8 {
		wg.Go(func() {
			err := nodes[i%2].DeleteHub(t.Context(), "orders")
			if err != nil && !isNotFound(err, KindHub) {
				t.Error(err)
			}
			if err == nil {
				deleted <- struct{}{}
			}
		})
	}
	wg.Wait()
	if len(deleted) == 0 {
		t.Error("nobody deleted it")
	}
	mustCreate(t, nodes[1], "orders", 1)
	mustPublish(t, nodes[1], "orders", Target{}, "x")
}

// A hub that another node has marked, and finishes at the same time, is gone for who deletes it
// here, whether or not the watch has reported anything yet.
func TestDeletionThatAnotherNodeFinishes(t *testing.T) {
	y := newYard(t)
	mustCreate(t, y.open(t), "orders", 1)
	b := y.open(t)
	there := testkit.Value(y.Memory.Get(t.Context(), hubKey("orders")))(t)
	def := testkit.Value(decodeDefinition(there))(t)
	def.State = stateDeleting
	marked := testkit.Value(y.Memory.CompareAndSet(t.Context(), there.Key, there.Revision, encode(def)))(t)
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpDelete && op.Key == there.Key {
			return y.Memory.Delete(t.Context(), there.Key, marked)
		}
		return nil
	})
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	expectGone(t, b, "orders")
}

// recall is an engine that says which logs were removed.
type recall struct {
	eventlog.Engine
	logs []string
}

func (r recall) Removed(context.Context) ([]string, error) { return r.logs, nil }

// C4: what a node wrote about a hub after its deletion, and did not take back, goes some time later; what
// is about other hubs stays, whatever their names.
func TestEntriesThatADeletionMissedAreCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		put := func(keys ...string) {
			for _, key := range keys {
				testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), key, 0, []byte("{}"))))
			}
		}
		kept := []string{"groups/gone-2/a", "producers/go/0", "records/gone-2/x/lease/0", "records/yard-shards/$shards/lease/1"}
		put(kept...)
		put("groups/gone/a", "producers/gone/0", "records/gone/x/lease/0", "records/gone/x/fact/circuit/f", "places/gone/a/0")
		b := open(t, Config{Engine: recall{newYard(t).Engine, []string{"gone"}}, Meta: store})
		testkit.Run(t, b.Run)
		time.Sleep(2 * leftInterval)
		var left []string
		for _, e := range testkit.Value(store.List(t.Context(), ""))(t) {
			left = append(left, e.Key)
		}
		testkit.Slices(t, left, kept)
	})
}
