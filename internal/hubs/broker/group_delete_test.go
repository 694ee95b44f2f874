package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// keepRecord keeps something of a group, as a service does.
func keepRecord(t *testing.T, b *Broker, hub, group, name string) GroupRecords {
	t.Helper()
	r := recordsOf(t, b, hub, group)
	testkit.Must(t, testkit.Err(b.meta.CompareAndSet(t.Context(), r.Prefix+name, 0, []byte("x"))))
	return r
}

func recordsLeft(t *testing.T, s meta.Store) (keys []string) {
	t.Helper()
	left := testkit.Value(s.List(t.Context(), RecordsPrefix))(t)
	for _, e := range left {
		keys = append(keys, e.Key)
	}
	return keys
}

// H1: each incarnation of a group, and of its hub, has a place of its own for its records, and
// no two groups share one.
func TestGroupRecords(t *testing.T) {
	b := newYard(t).open(t)
	seen := map[string]string{}
	look := func(what, hub, group string) GroupRecords {
		t.Helper()
		r, err := b.GroupRecords(t.Context(), hub, group)
		if err != nil || !strings.HasSuffix(r.Prefix, "/") {
			t.Fatalf("%s: %+v, %v", what, r, err)
		}
		if other, twice := seen[r.Prefix]; twice {
			t.Errorf("%s has the place of %s", what, other)
		}
		seen[r.Prefix] = what
		return r
	}
	create := func(hub string) {
		t.Helper()
		mustCreate(t, b, hub, 2)
		for _, group := range []string{"b", "B", "a/b"} {
			testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), hub, group)))
		}
	}
	create("Orders")
	create("orders/a")
	for _, hub := range []string{"orders", "orders/a"} {
		for _, group := range []string{DefaultGroup, "b", "B", "a/b"} {
			look(hub+" "+group, hub, group)
		}
	}
	r, err := b.GroupRecords(t.Context(), "ORDERS", "$DEFAULT")
	if err != nil || seen[r.Prefix] != "orders "+DefaultGroup || r.Hub.Name != "Orders" || r.Hub.Partitions != 2 || r.Group.Name != DefaultGroup {
		t.Errorf("got %+v, %v", r, err)
	}

	old := recordsOf(t, b, "orders", "b")
	if b.GroupGone(t.Context(), old) || b.GroupGone(t.Context(), r) {
		t.Error("what is there is called gone")
	}
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "b"))
	if !b.GroupGone(t.Context(), old) {
		t.Error("a deleted group is not called gone")
	}
	testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", "b")))
	look("the group created anew", "orders", "b")
	if !b.GroupGone(t.Context(), old) {
		t.Error("the group created anew is taken for the old one")
	}
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	create("orders")
	if !b.GroupGone(t.Context(), r) {
		t.Error("the hub created anew is taken for the old one")
	}
	look("$Default of the hub created anew", "orders", DefaultGroup)
	look("b of the hub created anew", "orders", "b")
	for group, kind := range map[string]string{"x": KindGroup, "": KindGroup} {
		wantNotFound(t, testkit.Err(b.GroupRecords(t.Context(), "orders", group)), kind, "%q", group)
	}
	wantNotFound(t, testkit.Err(b.GroupRecords(t.Context(), "nowhere", DefaultGroup)), KindHub)
}

func recordsOf(t *testing.T, b *Broker, hub, group string) GroupRecords {
	t.Helper()
	r := testkit.Value(b.GroupRecords(t.Context(), hub, group))(t)
	return r
}

// A group that was stored before there were ids has a place for records, too.
func TestRecordsOfAGroupWithoutID(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	key := groupKey(b.hubs.find("orders").log, "old")
	testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), key, 0, []byte(`{"name":"old","created":"2026-11-15T08:00:00.123Z"}`))))
	r := keepRecord(t, b, "orders", "old", "lease/0")
	if b.GroupGone(t.Context(), r) {
		t.Error("it is called gone")
	}
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "old"))
	if left := recordsLeft(t, y.Memory); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// H1: wherever the deletion of a group is cut off, the group is either whole or, after the
// next start, gone with all that was recorded of it; and its name is free for a new one,
// without any start.
func TestGroupDeletionSurvivesACrashAtEveryStep(t *testing.T) {
	for _, answerLost := range []bool{false, true} {
		for _, next := range []string{"restart", "create", "delete"} {
			for step := 1; step <= 4; step++ { // marking, two records, the group
				t.Run(fmt.Sprintf("step %d, answer lost %v, then %s", step, answerLost, next), func(t *testing.T) {
					crashGroupDeletion(t, &faults{step: step, answerLost: answerLost}, next)
				})
			}
		}
	}
}

func crashGroupDeletion(t *testing.T, f *faults, next string) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1, "a/b", "other")
	keepRecord(t, b, "orders", "a/b", "lease/0")
	keepRecord(t, b, "orders", "a/b", "checkpoint/0")
	kept := keepRecord(t, b, "orders", "other", "lease/0").Prefix + "lease/0"
	dying := y.node().fail(f).open(t)
	testkit.MustErrorIs(t, dying.DeleteGroup(t.Context(), "orders", "a/b"), errCrashed)

	decided := f.step > 1 || f.answerLost
	_, err := b.Group(t.Context(), "orders", "a/b")
	if gone := isNotFound(err, KindGroup); gone != decided || slices.Contains(groupNames(t, b, "orders"), "a/b") == decided {
		t.Errorf("decided %v, found: %v, %v", decided, groupNames(t, b, "orders"), err)
	}
	switch next {
	case "restart":
		y.open(t)
	case "create":
		_, err := b.CreateGroup(t.Context(), "orders", "a/b")
		if decided && err != nil || !decided && !errors.Is(err, ErrGroupExists) {
			t.Fatalf("create: %v", err)
		}
	case "delete":
		if err := b.DeleteGroup(t.Context(), "orders", "a/b"); err != nil && !isNotFound(err, KindGroup) {
			t.Fatal(err)
		}
		decided = true
	}
	left := recordsLeft(t, y.Memory)
	if decided && !slices.Equal(left, []string{kept}) || !decided && len(left) != 3 {
		t.Errorf("decided %v, and left is %v", decided, left)
	}
}

// H1: a record that is changed while it is being deleted is deleted all the same.
func TestARecordChangedDuringItsDeletion(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1, "billing")
	r := keepRecord(t, b, "orders", "billing", "lease/0")
	renewed := 0
	y.Meta.Inject(func(op metatest.Op) (err error) {
		if op.Kind == metatest.OpDelete && op.Key == r.Prefix+"lease/0" && renewed < 3 {
			renewed++
			_, err = y.Memory.CompareAndSet(t.Context(), op.Key, op.Expected, []byte("renewed"))
		}
		return err
	})
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "billing"))
	if left := recordsLeft(t, y.Memory); len(left) > 0 || renewed != 3 {
		t.Errorf("left: %v, after %d renewals", left, renewed)
	}
}

// P6: who reads for a group is told, with names and epochs, by partition.
func TestReceivers(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 2, "billing", "other")
	show := func(group string) (all []string) {
		t.Helper()
		there := testkit.Value(b.Receivers(t.Context(), "Orders", group))(t)
		for _, r := range there {
			epoch := "none"
			if r.Epoch != nil {
				epoch = fmt.Sprint(*r.Epoch)
			}
			all = append(all, r.Partition+" "+r.Name+" "+epoch)
		}
		return all
	}
	if got := show("billing"); len(got) != 0 {
		t.Errorf("nobody reads, and %q does", got)
	}
	plain := mustReceive(t, b, "billing", "plain", nil)
	mustReceive(t, b, "other", "elsewhere", new(int64(1)))
	testkit.Slices(t, show("billing"), []string{"0 plain none"})
	mustReceive(t, b, "billing", "one", new(int64(3)))
	testkit.Slices(t, show("billing"), []string{"0 one 3"})
	plain.Close()
	if got := show("$default"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	wantNotFound(t, testkit.Err(b.Receivers(t.Context(), "orders", "nobody")), KindGroup)
}
