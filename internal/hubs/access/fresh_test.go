package access

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// late is a node that hears of nothing by itself.
type late struct {
	*Registry
	store *metatest.Faulty
	hubs  *hubs
}

// two are nodes over one store. The second does not run: it knows what it has looked for.
func two(t *testing.T, cfg Config) (a *Registry, b late) {
	t.Helper()
	entries := metatest.NewMemory()
	all := newHubs()
	a = open(t, Config{Meta: entries, Hub: all.find})
	b.store, b.hubs = metatest.NewFaulty(metatest.NewLateNode(entries)), newHubs()
	testkit.Must(t, b.store.Fresh(t.Context(), ""))
	cfg.Meta, cfg.Hub, cfg.Looks = b.store, b.hubs.find, looks.New(b.store)
	cfg.FindHub = func(ctx context.Context, name string) error {
		if created, exists := all.find(name); exists {
			b.hubs.make(name, created)
		}
		return b.store.Fresh(ctx, "hubs/")
	}
	b.Registry = open(t, cfg)
	all.make("orders", time.UnixMilli(1700000000000))
	return a, b
}

// C3, H9: a policy or a key that was made through one node is good at another at once.
func TestWhatAnotherNodeHasJustMade(t *testing.T) {
	for _, hub := range []string{"", "orders"} {
		shows := map[string]func(ctx context.Context, k *Registry, p Policy) (auth.Grant, error){
			"signature": func(ctx context.Context, k *Registry, p Policy) (auth.Grant, error) {
				return k.Token(ctx, sign("sb://ns/"+hub, p), "")
			},
			"key": func(ctx context.Context, k *Registry, p Policy) (auth.Grant, error) {
				return k.Key(ctx, p.Name, p.Primary)
			},
			"certificate": func(ctx context.Context, k *Registry, p Policy) (auth.Grant, error) {
				if hub == "" {
					return k.Named(ctx, p.Name)
				}
				return k.Named(ctx, hub+"/"+p.Name)
			},
		}
		for name, show := range shows {
			t.Run(fmt.Sprintf("%s of %q", name, hub), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := admission.WithRemote(t.Context(), "192.0.2.1:1")
					a, b := two(t, Config{})
					p := mustCreate(t, a, hub, "p", auth.Send)
					g, err := show(ctx, b.Registry, p)
					testkit.Must(t, err)
					testkit.That(t, g.Allows(auth.At(hub), auth.Send, time.Now()), "it allows nothing")
					p = testkit.Value(a.Regenerate(ctx, hub, "p", PrimaryKey))(t)
					testkit.Check(t, testkit.Err(show(ctx, b.Registry, p)), "by the new key")
					testkit.Equal(t, g.Stands(), name == "certificate", "what the old key has opened stands")
					_, err = show(ctx, b.Registry, Policy{Hub: hub, Name: "nobody", Primary: p.Primary})
					testkit.ErrorIs(t, err, auth.ErrSignature, "of a policy that nobody has made")
				})
			})
		}
	}
}

// C3: a token for a hub that another node has just made is good here, also when this node hears of the hub later.
func TestTokenForAHubThatAnotherNodeHasJustMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, Config{})
		p := mustCreate(t, a, "", "p", auth.Send)
		testkit.Must(t, testkit.Err(b.Key(t.Context(), p.Name, p.Primary))) // the policy is known
		g := testkit.Value(b.Token(t.Context(), sign("sb://ns/orders", p), "sb://ns/orders"))(t)
		testkit.Must(t, b.others.findHub(t.Context(), "orders")) // as who attaches a link does
		testkit.That(t, g.Allows(auth.At("orders"), auth.Send, time.Now()), "it ended when the hub was heard of")
		none := testkit.Value(b.Token(t.Context(), sign("sb://ns/none", p), ""))(t)
		testkit.That(t, none.Allows(auth.At("none"), auth.Send, time.Now()), "for a hub that is none it is good, too")
	})
}

// C3, C5: where the store is out of reach, what this node does not know is not refused: who shows it is told to come
// back, and it does not count as a failure of his.
func TestWhatCannotBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := admission.WithRemote(t.Context(), "192.0.2.1:1")
		a, b := two(t, Config{})
		p := mustCreate(t, a, "", "p", auth.Send)
		b.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpFresh {
				return meta.ErrUnavailable
			}
			return nil
		})
		shows := map[string]func() error{
			"signature":   func() error { return testkit.Err(b.Token(ctx, sign("sb://ns/", p), "")) },
			"key":         func() error { return testkit.Err(b.Key(ctx, p.Name, p.Primary)) },
			"certificate": func() error { return testkit.Err(b.Named(ctx, p.Name)) },
		}
		for i := range 100 { // more than there may be looks
			for name, show := range shows {
				err := show()
				testkit.MustErrorIs(t, err, auth.ErrUnavailable, "try %d by %s", i, name)
				testkit.MustEqual(t, b.RefusedFor("192.0.2.1:1", err), 0, "the answer waits")
			}
		}
		b.store.Inject(nil)
		time.Sleep(time.Second)
		for name, show := range shows {
			testkit.Check(t, show(), "by %s", name)
		}
		root := testkit.Value(b.Policy("", auth.RootPolicy))(t)
		b.store.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		testkit.ErrorIs(t, testkit.Err(b.Token(ctx, sign("sb://ns/orders", root), "")), auth.ErrUnavailable, "for a hub that is not known here")
	})
}

// C3, R4: names that strangers invent cost the store little: of an address that is refused too often
// none at all, and of all addresses together so many in a second.
func TestLooksForInventedPoliciesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := two(t, Config{})
		try := func(from, name string) {
			ctx := admission.WithRemote(t.Context(), from)
			_, err := b.Key(ctx, name, "guess")
			testkit.ErrorIs(t, err, auth.ErrSignature)
			b.note(from, err, time.Now()) // as listeners do before they answer
		}
		made := func() int { return b.store.Count(metatest.OpFresh) }
		before := made()
		for i := range 1000 {
			try("192.0.2.1:1", fmt.Sprint("p", i))
		}
		testkit.That(t, made()-before <= int(failurePace.Burst)+1, "%d looks of one address", made()-before)
		time.Sleep(time.Minute)
		before = made()
		try("192.0.2.1:1", "p")
		testkit.Equal(t, made()-before, 0, "looks of an address whose answers wait")
		try("192.0.2.2:1", "p")
		testkit.Equal(t, made()-before, 1, "looks of another address")
		before, began := made(), time.Now()
		for i := range 1000 {
			try(fmt.Sprintf("198.51.%d.%d:1", i/250, i%250), fmt.Sprint("p", i))
		}
		most := looks.Burst + int(time.Since(began).Seconds()*looks.PerSecond) + 1
		testkit.That(t, made()-before <= most, "%d looks of many addresses within %v", made()-before, time.Since(began))
		before = made()
		try("192.0.2.3:1", "no/name")
		testkit.Equal(t, made()-before, 0, "looks for what is no name")
	})
}

// C8: one machine looks nowhere, and reviews nothing.
func TestOneMachineLooksNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewFaulty(metatest.NewMemory())
		k := open(t, Config{Meta: store})
		defer testkit.Run(t, k.Run)()
		testkit.ErrorIs(t, testkit.Err(k.Key(t.Context(), "p", "guess")), auth.ErrSignature)
		time.Sleep(10 * ReviewInterval)
		testkit.Equal(t, store.Count(metatest.OpFresh), 0, "looks")
	})
}

// C3, C4: a policy that is deleted through one node, and a key that is made anew there, are good for
// nothing at another after ReviewInterval, be its watch as late as it likes; what stands on them ends.
func TestWhatEndsElsewhereEndsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, entries := t.Context(), metatest.NewMemory()
		a := open(t, Config{Meta: entries})
		deleted, renewed, stays := mustCreate(t, a, "", "deleted", auth.Send), mustCreate(t, a, "", "renewed", auth.Send), mustCreate(t, a, "", "stays", auth.Send)
		store := metatest.NewFaulty(entries)
		b := open(t, Config{Meta: store, Looks: looks.New(store)})
		hold := make(chan struct{})
		store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpNext {
				return metatest.After(func(err error) error { <-hold; return err })
			}
			return nil
		})
		stop := testkit.Run(t, b.Run)
		var grants []auth.Grant
		for _, p := range []Policy{deleted, renewed, stays} {
			grants = append(grants, testkit.Value(b.Key(ctx, p.Name, p.Primary))(t))
		}
		changes := 0
		b.OnChange(func() { changes++ })
		testkit.Must(t, a.Delete(ctx, "", "deleted"))
		testkit.Must(t, testkit.Err(a.Regenerate(ctx, "", "renewed", PrimaryKey)))
		account := testkit.Value(a.RegenerateAccount(ctx, PrimaryKey))(t)
		synctest.Wait()
		testkit.That(t, grants[0].Stands() && grants[1].Stands(), "the watch has told, and this tests nothing")
		time.Sleep(ReviewInterval + time.Second)
		for i, p := range []Policy{deleted, renewed} {
			testkit.ErrorIs(t, testkit.Err(b.Key(ctx, p.Name, p.Primary)), auth.ErrSignature, "%s", p.Name)
			testkit.That(t, !grants[i].Stands(), "what stood on %s goes on", p.Name)
		}
		testkit.That(t, grants[2].Stands(), "what nobody has changed has ended")
		testkit.Equal(t, b.Account().Primary, account.Primary, "the blob account's key")
		heard := changes
		time.Sleep(10 * ReviewInterval)
		testkit.Equal(t, changes, heard, "changes where there are none")
		close(hold)
		stop()
	})
}

// C4: what another node says of a caller stands on what this node knows.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		a, b := two(t, Config{})
		p := mustCreate(t, a, "", "p", auth.Listen)
		heard := func(g auth.Grant) auth.Grant { return g.While(nil) }
		grant := testkit.Value(a.Key(ctx, "p", p.Primary))(t)
		g := testkit.Value(b.Adopt(ctx, heard(grant)))(t)
		testkit.That(t, g.Allows(namespace, auth.Listen, time.Now()), "it allows nothing, though the policy is new")

		changed := func(how func(s *auth.Scope)) auth.Grant {
			s := grant.Scopes[0]
			how(&s)
			return auth.Grant{Holder: "p", Scopes: []auth.Scope{s}}
		}
		for what, forged := range map[string]auth.Grant{
			"more rights":         changed(func(s *auth.Scope) { s.Rights = auth.Manage }),
			"another key":         changed(func(s *auth.Scope) { s.Basis.Key = digest("guess") }),
			"another policy":      changed(func(s *auth.Scope) { s.Basis.Policy = level{}.key(auth.RootPolicy) }),
			"no policy's key":     changed(func(s *auth.Scope) { s.Basis.Policy = "nodes/a" }),
			"what is no key":      changed(func(s *auth.Scope) { s.Basis.Policy = policiesPrefix + "/\x00" }),
			"another time":        changed(func(s *auth.Scope) { s.Basis.Made++ }),
			"a hub that is not":   changed(func(s *auth.Scope) { s.Path = "none"; s.Basis.Hub = 7 }),
			"the one before this": changed(func(s *auth.Scope) { s.Basis.Made-- }),
		} {
			testkit.ErrorIs(t, testkit.Err(b.Adopt(ctx, forged)), auth.ErrRevoked, "%s", what)
			time.Sleep(time.Second) // or there would be too many looks
		}
		none := testkit.Value(b.Adopt(ctx, auth.Grant{Holder: "own"}))(t)
		testkit.That(t, !none.Allows(namespace, 0, time.Now()), "a grant for something else allows something")
		bearer := auth.Grant{Holder: "me", Scopes: []auth.Scope{{Rights: auth.Manage}}}
		testkit.ErrorIs(t, testkit.Err(b.Adopt(ctx, bearer)), auth.ErrUnsupported, "a bearer token, where none is taken")

		named := testkit.Value(a.Named(ctx, "p"))(t)
		testkit.ErrorIs(t, testkit.Err(b.Adopt(ctx, heard(named))), auth.ErrUnsupported, "a policy's name without a key")

		testkit.Must(t, testkit.Err(a.Regenerate(ctx, "", "p", PrimaryKey)))
		testkit.Must(t, testkit.Err(b.Adopt(ctx, heard(grant))), "before this node has heard of the new key")
		testkit.Must(t, b.others.review(ctx))
		testkit.ErrorIs(t, testkit.Err(b.Adopt(ctx, heard(grant))), auth.ErrRevoked, "after it has")
		_, c := two(t, Config{Issuer: true})
		testkit.That(t, testkit.Value(c.Adopt(ctx, bearer))(t).Allows(namespace, auth.Manage, time.Now()), "a bearer token allows nothing")
	})
}
