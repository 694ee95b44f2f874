package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H9: a new yard has a root policy with keys of its own.
func TestFirstOpenMakesTheRootPolicy(t *testing.T) {
	store := storagetest.Entries(t)
	k := open(t, Config{Meta: store})
	testkit.Equal(t, k.Created(), true, "it does not say that it made the root policy")
	root := testkit.Value(k.Policy("", "rootmanagesharedaccesskey"))(t)
	if root.Name != auth.RootPolicy || root.Rights != auth.Manage || root.Primary == root.Secondary {
		t.Errorf("got %+v", root)
	}
	for _, key := range []string{root.Primary, root.Secondary} {
		if bits, err := base64.StdEncoding.DecodeString(key); err != nil || len(bits) != 32 || len(key) != 44 {
			t.Errorf("key %q", key)
		}
	}
	again := open(t, Config{Meta: store})
	testkit.Equal(t, again.Created(), false, "it was made twice")
	if same, _ := again.Policy("", auth.RootPolicy); !reflect.DeepEqual(same, root) {
		t.Errorf("got %+v, was %+v", same, root)
	}
	if other, _ := open(t, Config{}).Policy("", auth.RootPolicy); other.Primary == root.Primary {
		t.Error("two yards have the same key")
	}
}

// Two nodes that start at once agree on one root policy.
func TestNodesAgreeOnTheRootPolicy(t *testing.T) {
	store := storagetest.Entries(t)
	var winner *Registry
	slower := metatest.NewFaulty(store)
	slower.InjectOnce(metatest.Op.Changes, func(metatest.Op) error {
		winner = open(t, Config{Meta: store})
		return nil
	})
	loser := open(t, Config{Meta: slower})
	testkit.Equal(t, winner.Created(), true, "created")
	testkit.Equal(t, loser.Created(), false, "created")
	x, _ := winner.Policy("", auth.RootPolicy)
	y, _ := loser.Policy("", auth.RootPolicy)
	if x.Primary != y.Primary || x.Primary == "" {
		t.Errorf("%+v and %+v", x, y)
	}
}

func TestOpenRefuses(t *testing.T) {
	broken := storagetest.Entries(t)
	testkit.Must(t, testkit.Err(broken.CompareAndSet(t.Context(), "policies/namespace/x", 0, []byte("{"))))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	hub := newHubs().find
	tests := []struct {
		what string
		ctx  context.Context
		cfg  Config
	}{
		{"no store", t.Context(), Config{Hub: hub}},
		{"no view of the hubs", t.Context(), Config{Meta: storagetest.Entries(t)}},
		{"any bearer token beyond development", t.Context(), Config{Meta: storagetest.Entries(t), Hub: hub, AnyBearer: true}},
		{"a policy that cannot be read", t.Context(), Config{Meta: broken, Hub: hub}},
		{"a store that fails", ended, Config{Meta: storagetest.Entries(t), Hub: hub}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if k, err := Open(tt.ctx, tt.cfg); err == nil || k != nil {
				t.Errorf("got %v, %v", k, err)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	k := open(t, Config{Hub: newHubs("Orders", "a/b").find})
	made := mustCreate(t, k, "orders", "Send-Only", auth.Send)
	if made.Hub != "orders" || made.Name != "Send-Only" || made.Rights != auth.Send || len(made.Primary) != 44 || made.Created.IsZero() {
		t.Errorf("made %+v", made)
	}
	testkit.Deep(t, testkit.Value(k.Policy("ORDERS", "send-only"))(t), made)
	mustCreate(t, k, "a/b", "send-only", auth.Send)
	mustCreate(t, k, "", "send-only", auth.Send)
	mustCreate(t, k, "", "admin", auth.Manage)
	testkit.Slices(t, names(t, k, "Orders"), []string{"Send-Only"}, "orders")
	testkit.Slices(t, names(t, k, "a/b"), []string{"send-only"}, "a/b")
	testkit.Slices(t, names(t, k, ""), []string{"admin", auth.RootPolicy, "send-only"}, "the namespace")
}

func TestCreateWithGivenKeys(t *testing.T) {
	k := open(t, Config{})
	const given = "0123456789abcdef"
	p, err := k.Create(t.Context(), Policy{Name: "p", Rights: auth.Listen, Primary: given})
	if err != nil || p.Primary != given || len(p.Secondary) != 44 {
		t.Errorf("got %+v, %v", p, err)
	}
	p, err = k.Create(t.Context(), Policy{Name: "q", Rights: auth.Listen, Secondary: given})
	if err != nil || p.Secondary != given || len(p.Primary) != 44 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders").find})
	mustCreate(t, k, "orders", "taken", auth.Send)
	tests := []struct {
		what   string
		policy Policy
		want   error
	}{
		{"a name taken, in any case", Policy{Hub: "Orders", Name: "TAKEN", Rights: auth.Send}, ErrExists},
		{"the root policy", Policy{Name: auth.RootPolicy, Rights: auth.Send}, ErrExists},
		{"a hub that is not there", Policy{Hub: "none", Name: "p", Rights: auth.Send}, ErrNotFound},
		{"no name", Policy{Rights: auth.Send}, ErrInvalid},
		{"a long name", Policy{Name: strings.Repeat("a", 65), Rights: auth.Send}, ErrInvalid},
		{"a slash in the name", Policy{Name: "a/b", Rights: auth.Send}, ErrInvalid},
		{"a blank in the name", Policy{Name: "a b", Rights: auth.Send}, ErrInvalid},
		{"two dots in the name", Policy{Name: "a..b", Rights: auth.Send}, ErrInvalid},
		{"a dot at the beginning", Policy{Name: ".a", Rights: auth.Send}, ErrInvalid},
		{"a dash at the end", Policy{Name: "a-", Rights: auth.Send}, ErrInvalid},
		{"a letter beyond ASCII", Policy{Name: "größe", Rights: auth.Send}, ErrInvalid},
		{"no right", Policy{Name: "p"}, ErrInvalid},
		{"a right that is none", Policy{Name: "p", Rights: 0x80 | auth.Send}, ErrInvalid},
		{"a short key", Policy{Name: "p", Rights: auth.Send, Primary: "short"}, ErrInvalid},
		{"the well-known key", Policy{Name: "p", Rights: auth.Send, Secondary: auth.DevelopmentKey}, ErrInvalid},
		{"a long key", Policy{Name: "p", Rights: auth.Send, Primary: strings.Repeat("k", 257)}, ErrInvalid},
		{"a key that a connection string cannot carry", Policy{Name: "p", Rights: auth.Send, Primary: "0123456789abcdef;"}, ErrInvalid},
		{"a key with a blank", Policy{Name: "p", Rights: auth.Send, Primary: "0123456789 abcdef"}, ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if p, err := k.Create(t.Context(), tt.policy); !errors.Is(err, tt.want) || p != (Policy{}) {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	if got := mustCreate(t, k, "", strings.Repeat("a", 64), auth.Send); got.Name == "" {
		t.Error("a name of 64 characters is refused")
	}
}

func TestPoliciesAreBounded(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders").find})
	for i := range MaxPolicies {
		mustCreate(t, k, "orders", fmt.Sprint("p", i), auth.Send)
	}
	testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), Policy{Hub: "orders", Name: "more", Rights: auth.Send})), ErrInvalid)
	mustCreate(t, k, "", "elsewhere", auth.Send)
	testkit.Must(t, k.Delete(t.Context(), "orders", "p7"))
	mustCreate(t, k, "orders", "more", auth.Send)
}

func TestRegenerate(t *testing.T) {
	store := storagetest.Entries(t)
	k := open(t, Config{Meta: store, Hub: newHubs("orders").find})
	before := mustCreate(t, k, "orders", "p", auth.Send)
	after, err := k.Regenerate(t.Context(), "Orders", "P", PrimaryKey)
	if err != nil || after.Primary == before.Primary || after.Secondary != before.Secondary || len(after.Primary) != 44 {
		t.Errorf("got %+v, %v; was %+v", after, err, before)
	}
	last, err := k.Regenerate(t.Context(), "orders", "p", SecondaryKey)
	if err != nil || last.Primary != after.Primary || last.Secondary == after.Secondary {
		t.Errorf("got %+v, %v", last, err)
	}
	for what, registry := range map[string]*Registry{"this node": k, "a later one": open(t, Config{Meta: store, Hub: newHubs("orders").find})} {
		testkit.Deep(t, testkit.Value(registry.Policy("orders", "p"))(t), last, "%s has", what)
	}
	for what, call := range map[string]struct {
		hub, name string
		key       Key
		want      error
	}{
		"no policy":             {"orders", "none", PrimaryKey, ErrNotFound},
		"no hub":                {"none", "p", PrimaryKey, ErrNotFound},
		"no key of that name":   {"orders", "p", "third", ErrInvalid},
		"a name no policy has":  {"", "a//b", PrimaryKey, ErrNotFound},
		"a name without an end": {"", strings.Repeat("x", 4000), PrimaryKey, ErrNotFound},
	} {
		t.Run(what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(k.Regenerate(t.Context(), call.hub, call.name, call.key)), call.want)
		})
	}
}

func TestRegenerateAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storagetest.Entries(t)
		store := metatest.NewFaulty(memory)
		k := open(t, Config{Meta: store})
		mustCreate(t, k, "", "p", auth.Send)
		left := 3
		store.Inject(func(op metatest.Op) error { // somebody else is always a little faster
			if op.Kind != metatest.OpSet || left == 0 {
				return nil
			}
			left--
			return testkit.Err(memory.CompareAndSet(t.Context(), op.Key, op.Expected, op.Value))
		})
		p := testkit.Value(k.Regenerate(t.Context(), "", "p", PrimaryKey))(t)
		if got, _ := open(t, Config{Meta: memory}).Policy("", "p"); got.Primary != p.Primary {
			t.Error("another key was stored than was given out")
		}
		left = -1
		testkit.ErrorIs(t, testkit.Err(k.Regenerate(t.Context(), "", "p", PrimaryKey)), meta.ErrConflict)
	})
}

// R6: a policy is replaced by one change, so that it stays as it was where there is no room.
func TestReplace(t *testing.T) {
	store := metatest.NewFaulty(storagetest.Entries(t))
	k := open(t, Config{Meta: store, Hub: newHubs("orders").find})
	before := mustCreate(t, k, "orders", "p", auth.Send)
	want := Policy{Hub: "orders", Name: "P", Rights: auth.Listen, Primary: "another-key-of-the-policy"}
	changes := 0
	full := meta.ErrNoSpace
	store.Inject(func(op metatest.Op) error {
		if op.Changes() {
			changes++
			return full
		}
		return nil
	})
	testkit.ErrorIs(t, testkit.Err(k.Replace(t.Context(), want)), meta.ErrNoSpace)
	testkit.Equal(t, testkit.Value(k.Policy("orders", "p"))(t), before)
	full = nil
	after := testkit.Value(k.Replace(t.Context(), want))(t)
	testkit.Equal(t, changes, 2, "one change each")
	testkit.Equal(t, after, testkit.Value(k.Policy("orders", "p"))(t))
	want.Secondary, want.Created = before.Secondary, after.Created
	testkit.Equal(t, after, want)

	for what, call := range map[string]struct {
		p    Policy
		want error
	}{
		"no such policy":  {Policy{Hub: "orders", Name: "q", Rights: auth.Send}, ErrNotFound},
		"no such hub":     {Policy{Hub: "nosuch", Name: "p", Rights: auth.Send}, ErrNotFound},
		"no rights":       {Policy{Hub: "orders", Name: "p"}, ErrInvalid},
		"the root policy": {Policy{Name: auth.RootPolicy, Rights: auth.Manage}, ErrRootPolicy},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := k.Replace(t.Context(), call.p); !errors.Is(err, call.want) {
				t.Errorf("got %v, want %v", err, call.want)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	store := storagetest.Entries(t)
	k := open(t, Config{Meta: store, Hub: newHubs("orders").find})
	mustCreate(t, k, "orders", "p", auth.Send)
	testkit.Must(t, k.Delete(t.Context(), "Orders", "P"))
	testkit.ErrorIs(t, testkit.Err(k.Policy("orders", "p")), ErrNotFound)
	if got := stored(t, store); len(got) != 1 {
		t.Errorf("the store has %q", got)
	}
	for what, call := range map[string]struct {
		hub, name string
		want      error
	}{
		"twice":            {"orders", "p", ErrNotFound},
		"no hub":           {"none", "p", ErrNotFound},
		"the root policy":  {"", "rootManageSharedAccessKey", ErrRootPolicy},
		"no name":          {"", "", ErrNotFound},
		"a hub's namesake": {"orders", auth.RootPolicy, ErrNotFound},
	} {
		t.Run(what, func(t *testing.T) {
			testkit.ErrorIs(t, k.Delete(t.Context(), call.hub, call.name), call.want)
		})
	}
	mustCreate(t, k, "orders", "p", auth.Listen)
	testkit.Equal(t, testkit.Value(k.Policy("orders", "p"))(t).Rights, auth.Listen)
}

func TestPoliciesOfNoHub(t *testing.T) {
	k := open(t, Config{})
	testkit.ErrorIs(t, testkit.Err(k.Policies("none")), ErrNotFound)
	testkit.ErrorIs(t, testkit.Err(k.Policy("none", "p")), ErrNotFound)
}

// A store that fails is told as it is, and nothing is taken into use.
func TestFailingStore(t *testing.T) {
	store := metatest.NewFaulty(storagetest.Entries(t))
	k := open(t, Config{Meta: store})
	made := mustCreate(t, k, "", "p", auth.Send)
	store.Inject(func(op metatest.Op) error {
		if op.Changes() {
			return meta.ErrNoSpace
		}
		return nil
	})
	testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), Policy{Name: "q", Rights: auth.Send})), meta.ErrNoSpace, "create")
	testkit.ErrorIs(t, testkit.Err(k.Regenerate(t.Context(), "", "p", PrimaryKey)), meta.ErrNoSpace, "regenerate")
	testkit.ErrorIs(t, k.Delete(t.Context(), "", "p"), meta.ErrNoSpace, "delete")
	testkit.Equal(t, testkit.Value(k.Policy("", "p"))(t).Primary, made.Primary)
	if got := names(t, k, ""); len(got) != 2 {
		t.Errorf("knows %q", got)
	}
}
