package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H9: who signs with a policy's key gets its rights, for what was signed.
func TestSignatures(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders", "orders/eu", "other").find})
	root, _ := k.Policy("", auth.RootPolicy)
	listen := mustCreate(t, k, "", "listen", auth.Listen)
	send := mustCreate(t, k, "orders", "send", auth.Send)
	secondary := send
	secondary.Primary = send.Secondary
	tests := []struct {
		what               string
		policy             Policy
		resource, audience string
		want               error
	}{
		{"the namespace, for itself", root, "sb://ns/", "sb://ns/", nil},
		{"the namespace, for a hub", root, "sb://ns", "amqps://ns/orders/Partitions/0", nil},
		{"a bare host is the namespace", root, "ns.example.net", "amqps://ns/orders", nil},
		{"a hub's path, by the namespace's policy", listen, "amqp://localhost:5672/orders", "amqp://localhost:5672/orders/ConsumerGroups/g/Partitions/0", nil},
		{"hosts are not compared", listen, "sb://one/orders", "sb://two/orders", nil},
		{"case is not either", listen, "sb://ns/ORDERS", "sb://ns/orders", nil},
		{"no audience in particular", send, "sb://ns/orders", "", nil},
		{"an audience without a scheme begins with a host, as resources do", send, "ns/orders", "ns/Orders/$management", nil},
		{"so it is no path alone", send, "sb://ns/orders", "orders", auth.ErrAudience},
		{"a hub's policy, for its hub", send, "sb://ns/orders", "sb://ns/orders", nil},
		{"and for what is in it", send, "sb://ns/orders/Partitions/1", "sb://ns/orders/partitions/1", nil},
		{"the secondary key", secondary, "sb://ns/orders", "sb://ns/orders", nil},
		{"a hub's policy, for the namespace", send, "sb://ns/", "sb://ns/orders", auth.ErrSignature},
		{"for another hub", send, "sb://ns/other", "sb://ns/other", auth.ErrSignature},
		{"for a hub whose name begins with its hub's", send, "sb://ns/orders/eu", "sb://ns/orders/eu", auth.ErrSignature},
		{"for what is no hub", send, "sb://ns/none", "sb://ns/none", auth.ErrSignature},
		{"for what is no part of its hub", send, "sb://ns/orders/none", "sb://ns/orders/none", auth.ErrSignature},
		{"an audience that is another hub", listen, "sb://ns/orders", "sb://ns/other", auth.ErrAudience},
		{"one that begins like it", listen, "sb://ns/orders", "sb://ns/orders2", auth.ErrAudience},
		{"one above", listen, "sb://ns/orders/Partitions/0", "sb://ns/orders", auth.ErrAudience},
		{"a hub beneath in name only", listen, "sb://ns/orders", "sb://ns/orders/eu", auth.ErrAudience},
		{"an audience that is none", listen, "sb://ns/orders", "ftp://ns/orders", auth.ErrMalformed},
		{"a wrong key", Policy{Name: "listen", Primary: "SAS_KEY_VALUE"}, "sb://ns", "", auth.ErrSignature},
		{"an empty key", Policy{Name: "listen"}, "sb://ns", "", auth.ErrSignature},
		{"no such policy", Policy{Name: "none", Primary: listen.Primary}, "sb://ns", "", auth.ErrSignature},
		{"a policy with another's key", Policy{Name: "listen", Primary: root.Primary}, "sb://ns", "", auth.ErrSignature},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant, err := k.Token(t.Context(), sign(tt.resource, tt.policy), tt.audience)
			testkit.MustErrorIs(t, err, tt.want)
			if err != nil {
				testkit.Equal(t, len(grant.Scopes), 0, "got %+v all the same", grant)
				return
			}
			path, _ := auth.Path(tt.resource)
			entity := auth.EntityOf(path)
			if !grant.Allows(entity, tt.policy.Rights, time.Now()) || grant.Rights(entity) != tt.policy.Rights {
				t.Errorf("got %+v", grant)
			}
			if path != "" && grant.Rights(namespace) != 0 || grant.Rights(auth.At("other")) != 0 && path != "" {
				t.Errorf("reaches too far: %+v", grant)
			}
			if grant.Holder != tt.policy.Name || grant.Expired(time.Now()) || !grant.Expired(time.Now().Add(2*time.Hour)) {
				t.Errorf("got %+v", grant)
			}
		})
	}
}

// Names of policies are found in any case, and escaped as Python escapes them.
func TestSignatureNamesThePolicyInAnyForm(t *testing.T) {
	k := open(t, Config{})
	p := mustCreate(t, k, "", "Read.Only", auth.Listen)
	for _, name := range []string{"Read.Only", "read.only", "READ%2EONLY"} {
		p.Name = name
		testkit.Check(t, testkit.Err(k.Token(t.Context(), sign("sb://ns", p), "")), "%s", name)
	}
}

// The same key at two levels gives what both allow.
func TestSignatureOfTwoPoliciesWithOneKey(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders").find})
	const key = "0123456789abcdef"
	for hub, rights := range map[string]auth.Rights{"": auth.Listen, "orders": auth.Send} {
		testkit.Must(t, testkit.Err(k.Create(t.Context(), Policy{Hub: hub, Name: "app", Rights: rights, Primary: key})))
	}
	grant, err := k.Token(t.Context(), sign("sb://ns/orders", Policy{Name: "app", Primary: key}), "")
	testkit.Must(t, err)
	testkit.Equal(t, grant.Rights(auth.At("orders")), auth.Send|auth.Listen, "got %+v", grant)
	grant, err = k.Key(t.Context(), "app", key)
	if err != nil || grant.Rights(auth.At("orders")) != auth.Send|auth.Listen || grant.Rights(namespace) != auth.Listen {
		t.Errorf("got %+v, %v", grant, err)
	}
}

// H9: a token is good until its end, and then the error says when that was.
func TestExpiredSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := open(t, Config{})
		root, _ := k.Policy("", auth.RootPolicy)
		end := time.Now().Add(time.Minute).Truncate(time.Second)
		token := auth.Sign("sb://ns", root.Name, root.Primary, end)
		time.Sleep(time.Until(end) - time.Nanosecond)
		testkit.Check(t, testkit.Err(k.Token(t.Context(), token, "")), "a moment before its end")
		time.Sleep(time.Nanosecond)
		_, err := k.Token(t.Context(), token, "")
		var expired *auth.ExpiredError
		if !errors.As(err, &expired) || !expired.At.Equal(end) || !errors.Is(err, auth.ErrExpired) {
			t.Errorf("at its end: %v", err)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "ExpiredToken: The token is expired. Expiration time: ") {
			t.Errorf("its text is %q", err)
		}
		forged := auth.Sign("sb://ns", root.Name, "guess", end)
		testkit.ErrorIs(t, testkit.Err(k.Token(t.Context(), forged, "")), auth.ErrSignature, "forged and expired")
	})
}

// H9: a key made anew, or deleted with its policy, ends there and then.
func TestRevokedKeys(t *testing.T) {
	k := open(t, Config{})
	p := mustCreate(t, k, "", "p", auth.Send)
	old := sign("sb://ns", p)
	changed := testkit.Value(k.Regenerate(t.Context(), "", "p", PrimaryKey))(t)
	testkit.ErrorIs(t, testkit.Err(k.Token(t.Context(), old, "")), auth.ErrSignature, "with the old key")
	testkit.Check(t, testkit.Err(k.Token(t.Context(), sign("sb://ns", changed), "")), "with the new key")
	testkit.Must(t, k.Delete(t.Context(), "", "p"))
	testkit.ErrorIs(t, testkit.Err(k.Token(t.Context(), sign("sb://ns", changed), "")), auth.ErrSignature, "after the policy")
	testkit.ErrorIs(t, testkit.Err(k.Key(t.Context(), "p", changed.Primary)), auth.ErrSignature, "the key after the policy")
}

// H9: the well-known key is good for the root policy in development, and for nothing
// else and nowhere else.
func TestDevelopmentKey(t *testing.T) {
	for _, development := range []bool{true, false} {
		k := open(t, Config{Hub: newHubs("orders").find, Development: development})
		testkit.Equal(t, k.Development(), development, "says")
		mustCreate(t, k, "", "other", auth.Manage)
		mustCreate(t, k, "orders", auth.RootPolicy, auth.Manage)
		check := func(what string, want bool, grant auth.Grant, err error) {
			t.Helper()
			if got := err == nil; got != want || got && grant.Rights(namespace) != auth.Manage {
				t.Errorf("development %t, %s: %+v, %v", development, what, grant, err)
			}
			if err != nil && !errors.Is(err, auth.ErrSignature) {
				t.Errorf("%s: %v", what, err)
			}
		}
		well := Policy{Name: auth.RootPolicy, Primary: auth.DevelopmentKey}
		grant, err := k.Token(t.Context(), sign("amqp://localhost", well), "amqp://localhost:5672/orders")
		check("token", development, grant, err)
		grant, err = k.Key(t.Context(), "rootmanagesharedaccesskey", auth.DevelopmentKey)
		check("key", development, grant, err)
		grant, err = k.Token(t.Context(), sign("sb://ns", Policy{Name: "other", Primary: auth.DevelopmentKey}), "")
		check("token of another policy", false, grant, err)
		grant, err = k.Key(t.Context(), "other", auth.DevelopmentKey)
		check("key of another policy", false, grant, err)
		root, _ := k.Policy("", auth.RootPolicy)
		grant, err = k.Key(t.Context(), root.Name, root.Secondary)
		check("a real key", true, grant, err)
	}
}

type verifier func(ctx context.Context, token string) (auth.Grant, error)

func (v verifier) Verify(ctx context.Context, token string) (auth.Grant, error) { return v(ctx, token) }

// H9: bearer tokens are told from signatures by how they begin, and reach what their scopes say.
func TestBearerTokens(t *testing.T) {
	issuer := verifier(func(_ context.Context, token string) (auth.Grant, error) {
		switch token {
		case "good":
			return auth.Grant{Scopes: []auth.Scope{{Path: "orders", Rights: auth.Send}, {Path: "other", Rights: auth.Listen}}}, nil
		case "none":
			return auth.Grant{}, nil
		}
		return auth.Grant{}, auth.ErrUnavailable
	})
	hub := newHubs("orders", "orders/eu", "other").find
	strict, none := open(t, Config{Hub: hub, Bearer: issuer}), open(t, Config{Hub: hub})
	tests := []struct {
		what            string
		registry        *Registry
		token, audience string
		want            error
	}{
		{"for one of its hubs", strict, "good", "sb://ns/orders", nil},
		{"for another", strict, "good", "sb://ns/other/consumergroups/g", nil},
		{"for no audience", strict, "good", "", nil},
		{"for a hub it does not reach", strict, "good", "sb://ns/third", auth.ErrAudience},
		{"for a hub beneath in name only", strict, "good", "sb://ns/orders/eu", auth.ErrAudience},
		{"for the namespace", strict, "good", "sb://ns/", auth.ErrAudience},
		{"a token without rights", strict, "none", "sb://ns/orders", auth.ErrAudience},
		{"a token without rights, for no audience", strict, "none", "", nil},
		{"the issuer's error", strict, "bad", "", auth.ErrUnavailable},
		{"no issuer", none, "good", "", auth.ErrUnsupported},
		{"nothing", strict, "", "", auth.ErrMalformed},
		{"too much", strict, strings.Repeat("x", auth.MaxTokenBytes+1), "", auth.ErrMalformed},
		{"a broken signature is no bearer token", strict, "SharedAccessSignature x", "", auth.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(tt.registry.Token(t.Context(), tt.token, tt.audience)), tt.want)
		})
	}
}

// In development any bearer token may be everything: Go's SDK sends a word in its tests.
func TestAnyBearer(t *testing.T) {
	k := open(t, Config{Development: true, AnyBearer: true})
	grant, err := k.Token(t.Context(), "Sanitized", "amqps://ns/orders")
	if err != nil || grant.Rights(namespace) != auth.Manage || grant.Expired(time.Now().AddDate(100, 0, 0)) {
		t.Errorf("got %+v, %v", grant, err)
	}
	testkit.ErrorIs(t, testkit.Err(k.Token(t.Context(), "", "")), auth.ErrMalformed, "nothing")
	forged := sign("sb://ns", Policy{Name: auth.RootPolicy, Primary: "guess"})
	testkit.ErrorIs(t, testkit.Err(k.Token(t.Context(), forged, "")), auth.ErrSignature, "a forged signature")
}

func TestKeys(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders", "other").find})
	space := mustCreate(t, k, "", "app", auth.Listen)
	own := mustCreate(t, k, "orders", "App", auth.Send)
	tests := []struct {
		what, name, key   string
		space, hub, other auth.Rights
	}{
		{"the namespace's", "app", space.Primary, auth.Listen, auth.Listen, auth.Listen},
		{"its secondary", "APP", space.Secondary, auth.Listen, auth.Listen, auth.Listen},
		{"the hub's", "app", own.Primary, 0, auth.Send, 0},
		{"a wrong key", "app", "wrong", 0, 0, 0},
		{"an empty key", "app", "", 0, 0, 0},
		{"an unknown name", "none", space.Primary, 0, 0, 0},
		{"a name that is a key's beginning", "app/", space.Primary, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant, err := k.Key(t.Context(), tt.name, tt.key)
			if got := [3]auth.Rights{grant.Rights(namespace), grant.Rights(auth.At("orders")), grant.Rights(auth.At("other"))}; got != [3]auth.Rights{tt.space, tt.hub, tt.other} {
				t.Errorf("got %v", got)
			}
			if (err == nil) != (tt.hub != 0) || err != nil && !errors.Is(err, auth.ErrSignature) {
				t.Errorf("got %v", err)
			}
			if err == nil && grant.Expired(time.Now().AddDate(100, 0, 0)) {
				t.Error("it ends")
			}
		})
	}
}

// K5: who has to know what its client knows is given the keys of all policies of a name.
func TestKeysOfAName(t *testing.T) {
	k := open(t, Config{Hub: newHubs("orders").find})
	space := mustCreate(t, k, "", "app", auth.Listen)
	own := mustCreate(t, k, "orders", "App", auth.Send)
	got := testkit.Value(k.Keys(t.Context(), "APP"))(t)
	want := []string{space.Primary, space.Secondary, own.Primary, own.Secondary}
	slices.Sort(got)
	slices.Sort(want)
	testkit.Slices(t, got, want)
	testkit.Equal(t, len(testkit.Value(k.Keys(t.Context(), "none"))(t)), 0)
}

func TestNamed(t *testing.T) {
	k := open(t, Config{Hub: newHubs("a/b", "other").find})
	mustCreate(t, k, "", "app", auth.Listen)
	mustCreate(t, k, "a/b", "own", auth.Send)
	tests := []struct {
		what, name string
		space, hub auth.Rights
	}{
		{"the namespace's", "App", auth.Listen, auth.Listen},
		{"a hub's, with the hub", "A/b/Own", 0, auth.Send},
		{"a hub's, without it", "own", 0, 0},
		{"another hub's", "other/own", 0, 0},
		{"the namespace's with a hub", "a/b/app", 0, 0},
		{"no hub", "none/own", 0, 0},
		{"nothing", "", 0, 0},
		{"a slash", "/", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant, err := k.Named(t.Context(), tt.name)
			if grant.Rights(namespace) != tt.space || grant.Rights(auth.At("a/b")) != tt.hub || grant.Rights(auth.At("other")) != tt.space {
				t.Errorf("got %+v", grant)
			}
			if (err == nil) != (tt.hub != 0) || err != nil && !errors.Is(err, auth.ErrSignature) {
				t.Errorf("got %v", err)
			}
		})
	}
}
