package access

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// ways are all the ways to be let in by a policy of the hub orders.
var ways = map[string]func(t *testing.T, k *Registry, p Policy) (auth.Grant, error){
	"a signature": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		return k.Token(t.Context(), sign("sb://ns/orders", p), "")
	},
	"a signature for a part": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		return k.Token(t.Context(), sign("sb://ns/orders/publishers/me", p), "")
	},
	"a signature by the secondary key": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		p.Primary = p.Secondary
		return k.Token(t.Context(), sign("sb://ns/orders", p), "")
	},
	"the key": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		return k.Key(t.Context(), p.Name, p.Primary)
	},
	"the secondary key": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		return k.Key(t.Context(), p.Name, p.Secondary)
	},
	"a certificate": func(t *testing.T, k *Registry, p Policy) (auth.Grant, error) {
		return k.Named(t.Context(), p.Hub+"/"+p.Name)
	},
}

// H9: what was granted ends with the policy, the key or the hub that it stands on, and
// with nothing else.
func TestGrantsStandOnTheirPolicy(t *testing.T) {
	regenerate := func(key Key) func(*testing.T, *Registry, *hubs, Policy) error {
		return func(t *testing.T, k *Registry, _ *hubs, p Policy) error {
			_, err := k.Regenerate(t.Context(), p.Hub, p.Name, key)
			return err
		}
	}
	all := []string{"a signature", "a signature for a part", "a signature by the secondary key", "the key", "the secondary key", "a certificate"}
	primary := []string{"a signature", "a signature for a part", "the key"}
	tests := []struct {
		what   string
		change func(t *testing.T, k *Registry, h *hubs, p Policy) error
		ends   []string
	}{
		{"the policy is deleted", func(t *testing.T, k *Registry, _ *hubs, p Policy) error {
			return k.Delete(t.Context(), p.Hub, p.Name)
		}, all},
		{"the policy is made anew with its keys", func(t *testing.T, k *Registry, _ *hubs, p Policy) error {
			time.Sleep(time.Millisecond)
			return errors.Join(k.Delete(t.Context(), p.Hub, p.Name), again(t, k, p))
		}, all},
		{"the policy is made anew with fewer rights, in no time", func(t *testing.T, k *Registry, _ *hubs, p Policy) error {
			p.Rights = auth.Listen
			return errors.Join(k.Delete(t.Context(), p.Hub, p.Name), again(t, k, p))
		}, all},
		{"the primary key is made anew", regenerate(PrimaryKey), primary},
		{"the secondary key is made anew", regenerate(SecondaryKey), []string{"a signature by the secondary key", "the secondary key"}},
		{"the hub is deleted", func(_ *testing.T, _ *Registry, h *hubs, p Policy) error { h.delete(p.Hub); return nil }, all},
		{"the hub is made anew", func(_ *testing.T, _ *Registry, h *hubs, p Policy) error {
			h.make(p.Hub, time.UnixMilli(1700000000001))
			return nil
		}, all},
		{"a policy of that name is made elsewhere", func(t *testing.T, k *Registry, _ *hubs, p Policy) error {
			mustCreate(t, k, "", p.Name, auth.Manage)
			return k.Delete(t.Context(), "", p.Name)
		}, nil},
		{"nothing", func(*testing.T, *Registry, *hubs, Policy) error { return nil }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHubs("orders")
				k := open(t, Config{Hub: h.find})
				p := mustCreate(t, k, "orders", "p", auth.Send)
				entity := auth.At("orders", "publishers", "me")
				grants := map[string]auth.Grant{}
				for way, enter := range ways {
					grant, err := enter(t, k, p)
					if err != nil || !grant.Allows(entity, auth.Send, time.Now()) {
						t.Fatalf("%s gives %+v, %v", way, grant, err)
					}
					grants[way] = grant
				}
				testkit.Must(t, tt.change(t, k, h, p))
				for way, grant := range grants {
					if ended := !grant.Allows(entity, auth.Send, time.Now()); ended != slices.Contains(tt.ends, way) {
						t.Errorf("what %s gave has ended: %t", way, ended)
					}
				}
			})
		})
	}
}

func again(t *testing.T, k *Registry, p Policy) error {
	_, err := k.Create(t.Context(), p)
	return err
}

// H9: what a namespace's policy gives to a hub ends with that hub; what it gives to the
// namespace does not.
func TestGrantsOfTheNamespaceStandOnTheHub(t *testing.T) {
	h := newHubs("orders")
	k := open(t, Config{Hub: h.find})
	p := mustCreate(t, k, "", "p", auth.Send)
	hub, err := k.Token(t.Context(), sign("sb://ns/orders", p), "")
	all, err2 := k.Token(t.Context(), sign("sb://ns", p), "")
	testkit.Must(t, errors.Join(err, err2))
	h.make("orders", time.UnixMilli(1700000000001))
	testkit.Equal(t, hub.Rights(auth.At("orders")), 0, "the hub's gives")
	testkit.Equal(t, all.Rights(auth.At("orders")), auth.Send, "the hub's gives")
	if anew, err := k.Token(t.Context(), sign("sb://ns/orders", p), ""); err != nil || anew.Rights(auth.At("orders")) != auth.Send {
		t.Errorf("a new grant: %+v, %v", anew, err)
	}
}

// H9: bearer tokens stand on the hubs they name.
func TestBearerGrantsStandOnTheHub(t *testing.T) {
	h := newHubs("orders", "other")
	k := open(t, Config{Hub: h.find, Bearer: verifier(func(context.Context, string) (auth.Grant, error) {
		return auth.Grant{Scopes: []auth.Scope{{Path: "orders", Rights: auth.Send}, {Path: "other", Rights: auth.Send}, {Path: "later", Rights: auth.Send}}}, nil
	})})
	grant := testkit.Value(k.Token(t.Context(), "token", ""))(t)
	h.make("orders", time.UnixMilli(1700000000001))
	h.make("later", time.UnixMilli(1700000000001))
	for hub, want := range map[string]auth.Rights{"orders": 0, "other": auth.Send, "later": 0} {
		testkit.Equal(t, grant.Rights(auth.At(hub)), want, "%s", hub)
	}
}

// H9: who may manage a hub gains nothing by deleting it: names that begin with its name
// are those of other hubs, also when it is not there.
func TestADeletedHubReachesNoOther(t *testing.T) {
	h := newHubs("a", "a/b")
	k := open(t, Config{Hub: h.find})
	p := mustCreate(t, k, "a", "p", auth.Manage)
	own := testkit.Value(k.Key(t.Context(), "p", p.Primary))(t)
	root, _ := k.Policy("", auth.RootPolicy)
	signed := sign("sb://ns/a", root)
	h.delete("a")
	late := testkit.Value(k.Token(t.Context(), signed, ""))(t)
	for what, grant := range map[string]auth.Grant{"the policy's": own, "a signature's": late} {
		for _, entity := range []auth.Entity{auth.At("a/b"), auth.At("a/b", "partitions", "0"), namespace} {
			testkit.Equal(t, grant.Rights(entity), 0, "%s rights to %+v", what, entity)
		}
	}
	if late.Rights(auth.At("a")) != auth.Manage { // so that one hears that it is not there
		t.Error("the signature says nothing of what it was made for")
	}
}

// A hub made before its name was reserved gives no right to the part that it is named
// like, not even if both were made in the same moment.
func TestAHubNamedLikeAPartOfAnother(t *testing.T) {
	store := storagetest.Entries(t)
	h := newHubs("a", "a/partitions/0")
	k := open(t, Config{Meta: store, Hub: h.find})
	if _, err := k.Create(t.Context(), Policy{Hub: "a/Partitions/0", Name: "p", Rights: auth.Send}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	at := level{hub: "a/partitions/0", created: time.UnixMilli(1700000000000)}
	old := record{Policy: Policy{Hub: at.hub, Name: "p", Rights: auth.Send, Primary: newKey(), Secondary: newKey(), Created: now()}, level: at}
	testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), old.key(), 0, old.encode())))
	k = open(t, Config{Meta: store, Hub: h.find})
	if grant, err := k.Key(t.Context(), "p", old.Primary); err == nil {
		t.Errorf("the key gives %+v", grant)
	}
	if grant, err := k.Named(t.Context(), "a/partitions/0/p"); err == nil {
		t.Errorf("the name gives %+v", grant)
	}
	if grant, err := k.Token(t.Context(), sign("sb://ns/a/partitions/0", old.Policy), ""); err == nil {
		t.Errorf("the token gives %+v", grant)
	}
}

// Who listens is told of every change, finds it done, and is told no more when he has left.
func TestOnChange(t *testing.T) {
	k := open(t, Config{})
	p := mustCreate(t, k, "", "p", auth.Send)
	grant := testkit.Value(k.Key(t.Context(), "p", p.Primary))(t)
	watched, stood := 0, true
	stop := k.OnChange(func() { watched++; stood = grant.Stands() })
	mustCreate(t, k, "", "q", auth.Send)
	testkit.Equal(t, watched, 1, "told")
	testkit.Equal(t, stood, true, "told")
	if _, err := k.Regenerate(t.Context(), "", "p", SecondaryKey); err != nil || watched != 2 || !stood {
		t.Errorf("told %d times, it stood: %t, %v", watched, stood, err)
	}
	if err := k.Delete(t.Context(), "", "p"); err != nil || watched != 3 || stood {
		t.Errorf("told %d times, it stood: %t, %v", watched, stood, err)
	}
	if err := k.Delete(t.Context(), "", "p"); err == nil || watched != 3 {
		t.Errorf("told %d times, %v", watched, err)
	}
	stop()
	stop()
	mustCreate(t, k, "", "r", auth.Send)
	testkit.Equal(t, watched, 3, "told after he had left")
}

// H9: what another node takes back ends here as well, and who listens is told.
func TestGrantsEndByAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storagetest.Entries(t)
		here, there := open(t, Config{Meta: store}), open(t, Config{Meta: store})
		defer testkit.Run(t, here.Run)()
		p := mustCreate(t, there, "", "p", auth.Send)
		synctest.Wait()
		grant := testkit.Value(here.Key(t.Context(), "p", p.Primary))(t)
		ended := make(chan bool, 1)
		defer here.OnChange(func() { ended <- !grant.Stands() })()
		testkit.Must(t, there.Delete(t.Context(), "", "p"))
		testkit.Equal(t, <-ended, true, "it stands")
	})
}

// H9: both of the root policy's keys are made anew at once.
func TestRegenerateRoot(t *testing.T) {
	k := open(t, Config{})
	old, _ := k.Policy("", auth.RootPolicy)
	grant := testkit.Value(k.Key(t.Context(), old.Name, old.Secondary))(t)
	watched := 0
	defer k.OnChange(func() { watched++ })()
	fresh := testkit.Value(k.RegenerateRoot(t.Context(), ""))(t)
	testkit.MustEqual(t, watched, 1, "told")
	if there, _ := k.Policy("", auth.RootPolicy); there != fresh || fresh.Rights != auth.Manage || !fresh.Created.Equal(old.Created) {
		t.Errorf("it is %+v", there)
	}
	for _, key := range []string{old.Primary, old.Secondary} {
		testkit.ErrorIs(t, testkit.Err(k.Key(t.Context(), old.Name, key)), auth.ErrSignature, "an old key")
	}
	testkit.Equal(t, grant.Stands(), false, "what stood on an old key stands")
	for _, key := range []string{fresh.Primary, fresh.Secondary} {
		testkit.Check(t, testkit.Err(k.Key(t.Context(), old.Name, key)), "a new key")
	}
}

func TestAll(t *testing.T) {
	h := newHubs("b", "A", "gone")
	k := open(t, Config{Hub: h.find})
	for _, at := range [][2]string{{"b", "y"}, {"b", "X"}, {"A", "z"}, {"gone", "p"}, {"", "x"}} {
		mustCreate(t, k, at[0], at[1], auth.Send)
	}
	h.delete("gone")
	var got []string
	for _, p := range k.All() {
		got = append(got, p.Hub+"/"+p.Name)
	}
	testkit.Slices(t, got, []string{"/" + auth.RootPolicy, "/x", "A/z", "b/X", "b/y"})
}
