package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1: $Default is there in any case; other groups are told apart by it.
func TestGroups(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	h := mustCreate(t, b, "orders", 1)
	for _, name := range []string{"billing", "Billing", "a/b", "zebra"} {
		if g, err := b.CreateGroup(t.Context(), "Orders", name); err != nil || g.Name != name {
			t.Fatalf("got %v, %v", g, err)
		}
	}
	want := []string{DefaultGroup, "Billing", "a/b", "billing", "zebra"}
	for _, broker := range []*Broker{b, y.open(t)} {
		testkit.Slices(t, groupNames(t, broker, "orders"), want)
	}
	for _, spelling := range []string{"$Default", "$default", "$DEFAULT"} {
		g, err := b.Group(t.Context(), "orders", spelling)
		if err != nil || g.Name != DefaultGroup || !g.Created.Equal(h.Created) {
			t.Errorf("%s: got %v, %v", spelling, g, err)
		}
	}
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "billing"))
	if got := groupNames(t, b, "orders"); slices.Contains(got, "billing") || !slices.Contains(got, "Billing") {
		t.Errorf("after deleting one: %q", got)
	}
}

func groupNames(t *testing.T, b *Broker, hub string) []string {
	t.Helper()
	groups := testkit.Value(b.Groups(t.Context(), hub))(t)
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return all
}

// H1: groups of one name in two hubs are two groups.
func TestGroupsBelongToTheirHub(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "a", 1)
	mustCreate(t, b, "a/b", 1, "c")
	if got := groupNames(t, b, "a"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// H1: what is refused, and how.
func TestGroupErrors(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1, "Billing")
	create := func(group string) error { _, err := b.CreateGroup(t.Context(), "orders", group); return err }
	find := func(group string) error { _, err := b.Group(t.Context(), "orders", group); return err }
	remove := func(group string) error { return b.DeleteGroup(t.Context(), "orders", group) }
	tests := []struct {
		what  string
		do    func(string) error
		group string
		want  error
	}{
		{"a group cannot be created twice", create, "Billing", ErrGroupExists},
		{"$Default exists", create, "$Default", ErrGroupExists},
		{"$Default exists in any case", create, "$dEFAULT", ErrGroupExists},
		{"no other group has a dollar sign", create, "$Billing", ErrInvalidName},
		{"a blank is refused", create, "my group", ErrInvalidName},
		{"nothing is no name", create, "", ErrInvalidName},
		{"too long a name is refused", create, strings.Repeat("g", 257), ErrInvalidName},
		{"$Default cannot be deleted", remove, "$default", ErrDefaultGroup},
		{"what is not there cannot be deleted", remove, "other", &NotFoundError{}},
		{"what is not there is not found", find, "other", &NotFoundError{}},
		{"what could not be there is not found", find, "my group", &NotFoundError{}},
		{"nothing is not found", find, "", &NotFoundError{}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			err := tt.do(tt.group)
			if _, missing := tt.want.(*NotFoundError); missing && isNotFound(err, KindGroup) {
				return
			}
			testkit.ErrorIs(t, err, tt.want)
		})
	}
	var missing *NotFoundError
	if err := find("billing"); !errors.As(err, &missing) || missing.Similar != "Billing" {
		t.Errorf("another spelling: got %v", err)
	}
}

// H4: a reader needs a group that exists.
func TestCursorNeedsItsGroup(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1, "billing")
	mustPublish(t, b, "orders", Target{}, "x")
	for _, group := range []string{"$DEFAULT", "billing"} {
		testkit.Slices(t, read(t, b, "orders", group, 0, eventlog.Earliest()), []string{"x"},
			"%s reads", group)
	}
	for _, group := range []string{"Billing", "other", ""} {
		wantNotFound(t, testkit.Err(b.Cursor(t.Context(), "orders", group, "0", eventlog.Earliest())), KindGroup, "%s", group)
	}
}

// H1: a group made while its hub is being deleted does not stay behind.
func TestGroupOfAHubDeletedMeanwhile(t *testing.T) {
	y := newYard(t)
	other := y.open(t)
	node := y.node()
	b := node.open(t)
	mustCreate(t, b, "orders", 1)
	node.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpSet && op.Under(groupsPrefix) {
			testkit.Check(t, other.DeleteHub(t.Context(), "orders"))
		}
		return nil
	})
	wantNotFound(t, testkit.Err(b.CreateGroup(t.Context(), "orders", "billing")), KindHub)
	left := testkit.Value(y.Memory.List(t.Context(), ""))(t)
	left = slices.DeleteFunc(left, func(e meta.Entry) bool { return strings.HasPrefix(e.Key, "logs/") }) // an engine's own
	testkit.That(t, len(left) == 0, "left: %v", left)
}
