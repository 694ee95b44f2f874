package sessions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// node is one of several over a store.
type node struct {
	*sessions.Sessions
	access *access.Registry
}

func newNode(t *testing.T, store meta.Store) node {
	t.Helper()
	k := testkit.Value(access.Open(t.Context(), access.Config{
		Meta: store, Log: testkit.Quiet(),
		Hub: func(name string) (time.Time, bool) { return time.UnixMilli(1700000000000), name == "orders" },
	}))(t)
	return node{sessions.New(sessions.Config{Meta: store, Access: k, Log: testkit.Quiet()}), k}
}

func (n node) policy(t *testing.T, hub, name string) access.Policy {
	t.Helper()
	return testkit.Value(n.access.Create(t.Context(), access.Policy{Hub: hub, Name: name, Rights: auth.Manage}))(t)
}

// begin signs in with the primary key of a policy.
func (n node) begin(t *testing.T, p access.Policy) (token string) {
	t.Helper()
	g := testkit.Value(n.access.Key(t.Context(), p.Name, p.Primary))(t)
	return testkit.Value(n.Begin(t.Context(), g))(t)
}

// V3: a session is known at every node, with the rights of its policy, and the store holds neither its
// token nor the key.
func TestASessionIsKnownAtEveryNode(t *testing.T) {
	store := metatest.NewMemory()
	here := newNode(t, store)
	p := here.policy(t, "orders", "own")
	token := here.begin(t, p)
	there := newNode(t, store)
	s := testkit.Value(there.Find(t.Context(), token))(t)
	testkit.Equal(t, s.Grant.Rights(auth.At("orders")), auth.Manage)
	testkit.Equal(t, s.Grant.Rights(auth.Entity{}), 0, "rights to the namespace")
	testkit.Equal(t, s.Grant.Holder, "own")
	for _, e := range testkit.Value(store.List(t.Context(), "sessions/"))(t) {
		for _, secret := range []string{token, p.Primary} {
			testkit.That(t, !strings.Contains(e.Key+string(e.Value), secret), "the store holds a secret: %s", e.Value)
		}
	}
	testkit.Must(t, there.End(t.Context(), token))
	testkit.Must(t, there.End(t.Context(), token))
	testkit.ErrorIs(t, testkit.Err(here.Find(t.Context(), token)), sessions.ErrEnded)
	testkit.ErrorIs(t, testkit.Err(here.Find(t.Context(), "")), sessions.ErrEnded)
}

// V3: a session ends with the key that was shown, and with its policy.
func TestASessionEndsWithWhatItStandsOn(t *testing.T) {
	for name, change := range map[string]struct {
		do    func(n node) error
		stays bool
	}{
		"its key is made anew": {do: func(n node) error { return testkit.Err(n.access.Regenerate(t.Context(), "", "ops", access.PrimaryKey)) }},
		"the other key is made anew": {do: func(n node) error {
			return testkit.Err(n.access.Regenerate(t.Context(), "", "ops", access.SecondaryKey))
		}, stays: true},
		"its policy is deleted": {do: func(n node) error { return n.access.Delete(t.Context(), "", "ops") }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, metatest.NewMemory())
			token := n.begin(t, n.policy(t, "", "ops"))
			found := testkit.Value(n.Find(t.Context(), token))(t)
			testkit.Must(t, change.do(n))
			_, err := n.Find(t.Context(), token)
			testkit.Equal(t, err == nil, change.stays, "it stays: %v", err)
			testkit.Equal(t, found.Grant.Stands(), change.stays, "what was found before stands")
		})
	}
}

// V3: a session ends unused after eight hours, and used after a day; what has ended is removed.
func TestASessionEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		n := newNode(t, store)
		p := n.policy(t, "", "ops")
		unused, used := n.begin(t, p), n.begin(t, p)
		for range 5 {
			testkit.Check(t, testkit.Err(n.Find(t.Context(), used)))
			time.Sleep(sessions.MaxIdle / 2)
		}
		testkit.Check(t, testkit.Err(n.Find(t.Context(), used)))
		testkit.ErrorIs(t, testkit.Err(n.Find(t.Context(), unused)), sessions.ErrEnded)
		time.Sleep(sessions.MaxIdle / 2)
		testkit.ErrorIs(t, testkit.Err(n.Find(t.Context(), used)), sessions.ErrEnded)
		n.begin(t, p)
		testkit.Equal(t, len(testkit.Value(store.List(t.Context(), "sessions/"))(t)), 1, "entries after somebody has signed in")
	})
}

// R2: who has one policy signs in a thousand times at most, and keeps nobody else out by it; also not
// where the others are counted anew.
func TestOnePolicyKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, metatest.NewMemory())
		greedy, other := n.policy(t, "", "greedy"), n.policy(t, "", "other")
		g := testkit.Value(n.access.Key(t.Context(), "greedy", greedy.Primary))(t)
		for range 1000 {
			testkit.Must(t, testkit.Err(n.Begin(t.Context(), g)))
		}
		for range 2 {
			testkit.ErrorIs(t, testkit.Err(n.Begin(t.Context(), g)), sessions.ErrFull)
			n.begin(t, other)
			time.Sleep(2 * time.Minute)
		}
		n.begin(t, testkit.Value(n.access.Regenerate(t.Context(), "", "greedy", access.PrimaryKey))(t))
	})
}

// away is what judges where the store is out of reach.
type away struct{}

func (away) Adopt(context.Context, auth.Grant) (auth.Grant, error) {
	return auth.Grant{}, fmt.Errorf("%w: no majority", auth.ErrUnavailable)
}

// V3, C5: whoever is signed in stays so while nobody can tell whether the key is good; and nothing is
// removed for it.
func TestASessionOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewMemory()
		n := newNode(t, store)
		p := n.policy(t, "", "ops")
		token := n.begin(t, p)
		there := node{sessions.New(sessions.Config{Meta: store, Access: away{}, Log: testkit.Quiet()}), n.access}
		testkit.ErrorIs(t, testkit.Err(there.Find(t.Context(), token)), auth.ErrUnavailable)
		there.begin(t, p) // which removes those that have ended
		testkit.Check(t, testkit.Err(n.Find(t.Context(), token)))
	})
}
