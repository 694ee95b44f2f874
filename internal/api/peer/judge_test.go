package peer

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// defined are the topics that a node knows, and those that it would find if it looked.
type defined struct {
	known, stored map[string]topics.Topic
	snapshot      topics.Snapshot
	looks         int
}

func (d *defined) Topic(name string) (topics.Topic, error) {
	t, ok := d.known[name]
	if !ok {
		return t, topics.ErrTopicNotFound
	}
	return t, nil
}

func (d *defined) LookUpTopic(_ context.Context, name string) (topics.Topic, error) {
	d.looks++
	if t, ok := d.stored[name]; ok {
		d.known[name] = t
	}
	return d.Topic(name)
}

func (d *defined) Snapshot() *topics.Snapshot { return &d.snapshot }

func newJudge(t *testing.T) (Judge, *access.Registry, *defined) {
	t.Helper()
	policies, err := access.Open(t.Context(), access.Config{
		Meta: storagetest.Entries(t), Hub: func(string) (time.Time, bool) { return time.Time{}, false }, Log: testkit.Quiet(),
	})
	testkit.Must(t, err)
	d := &defined{
		known:  map[string]topics.Topic{"shop": {Name: "shop", Key1: "one", Key2: "two"}, "closed": {Name: "closed", Key1: "one", DisableKeys: true}},
		stored: map[string]topics.Topic{"shop": {Name: "shop", Key1: "one", Key2: "renewed"}, "new": {Name: "new", Key1: "one"}},
		snapshot: topics.Snapshot{Subscriptions: topics.IndexOf(
			&topics.Subscription{ID: "s1", Name: "jobs", Source: topics.Source{Topic: "shop"}},
			&topics.Subscription{ID: "s2", Name: "mails", Source: topics.Source{Topic: "shop"}},
			&topics.Subscription{ID: "s3", Name: "jobs", Source: topics.Source{Topic: "new"}},
			&topics.Subscription{ID: "s4", Name: "jobs", Source: topics.Source{Topic: "closed"}},
		)},
	}
	return Judge{Access: policies, Topics: d}, policies, d
}

// C4: a key of a topic is judged by the topic as this node has it, for the one subscription that it was
// shown for.
func TestKeysOfTopics(t *testing.T) {
	j, _, d := newJudge(t)
	ago := func(age time.Duration) time.Time { return time.Now().Add(-age) }
	for name, tt := range map[string]struct {
		key          caller.TopicKey
		subscription string
		err          error
	}{
		"a key":                            {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one")}, "s1", nil},
		"in other letters":                 {caller.TopicKey{Topic: "shop", Subscription: "JOBS", Key: caller.Digest("one")}, "s1", nil},
		"the other key":                    {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("two")}, "s1", nil},
		"a key made anew elsewhere":        {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("renewed")}, "s1", nil},
		"a topic made elsewhere":           {caller.TopicKey{Topic: "new", Subscription: "jobs", Key: caller.Digest("one")}, "s3", nil},
		"a token":                          {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one"), Expires: ago(-time.Minute)}, "s1", nil},
		"one that has just expired":        {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one"), Expires: ago(time.Second)}, "s1", nil},
		"one that has expired":             {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one"), Expires: ago(time.Hour)}, "s1", topickey.ErrExpired},
		"another key":                      {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("guess")}, "s1", topickey.ErrSignature},
		"no key":                           {caller.TopicKey{Topic: "new", Subscription: "jobs", Key: caller.Digest("")}, "s3", topickey.ErrSignature},
		"no topic":                         {caller.TopicKey{Topic: "none", Subscription: "jobs", Key: caller.Digest("one")}, "s1", topickey.ErrSignature},
		"keys that are off":                {caller.TopicKey{Topic: "closed", Subscription: "jobs", Key: caller.Digest("one")}, "s4", topickey.ErrSignature},
		"another subscription":             {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one")}, "s2", topickey.ErrSignature},
		"a subscription of another topic":  {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one")}, "s3", topickey.ErrSignature},
		"a subscription that is not known": {caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one")}, "s9", delivery.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			d.known["shop"] = topics.Topic{Name: "shop", Key1: "one", Key2: "two"}
			text := caller.Caller{Topic: &tt.key}.Encode(auth.Entity{})
			testkit.ErrorIs(t, j.Allow(t.Context(), text, "grid.receive", tt.subscription), tt.err)
			testkit.ErrorIs(t, j.Allow(t.Context(), text, "grid.stats", tt.subscription), caller.ErrNone, "for what a key is not good for")
		})
	}
	d.looks = 0
	good := caller.Caller{Topic: &caller.TopicKey{Topic: "shop", Subscription: "jobs", Key: caller.Digest("one")}}.Encode(auth.Entity{})
	testkit.Must(t, j.Allow(t.Context(), good, "grid.receive", "s1"))
	testkit.Equal(t, d.looks, 0, "looks for a key that is known")
}

// C4: a grant is judged by this node's policies, and by its time with some leeway.
func TestGrants(t *testing.T) {
	j, policies, _ := newJudge(t)
	made, err := policies.Create(t.Context(), access.Policy{Name: "p", Rights: auth.Listen})
	testkit.Must(t, err)
	grant := testkit.Value(policies.Key(t.Context(), "p", made.Primary))(t)
	allow := func(subject string, change func(*auth.Grant)) error {
		g := grant
		g.Scopes = slices.Clone(g.Scopes)
		change(&g)
		return j.Allow(t.Context(), caller.Caller{Grant: g}.Encode(auth.Entity{}), subject, "s1")
	}
	expires := func(in time.Duration) func(*auth.Grant) {
		return func(g *auth.Grant) { g.Expires = time.Now().Add(in) }
	}
	same := func(*auth.Grant) {}
	testkit.Check(t, allow("grid.receive", same))
	testkit.Check(t, allow("grid.giveback", same))
	testkit.ErrorIs(t, allow("grid.stats", same), frame.ErrRights)
	testkit.ErrorIs(t, allow("grid.unknown", same), frame.ErrRights)
	testkit.ErrorIs(t, allow("", same), frame.ErrRights)
	testkit.Check(t, allow("grid.receive", expires(time.Minute)))
	testkit.Check(t, allow("grid.receive", expires(-Leeway/2)), "a moment after its end")
	testkit.ErrorIs(t, allow("grid.receive", expires(-2*Leeway)), auth.ErrExpired)
	testkit.ErrorIs(t, allow("grid.receive", func(g *auth.Grant) { g.Scopes[0].Path = "orders" }), auth.ErrAudience)
	testkit.ErrorIs(t, allow("grid.stats", func(g *auth.Grant) { g.Scopes[0].Rights = auth.Manage }), auth.ErrRevoked, "more rights than the policy has")
	for _, shown := range []string{"", "null", "{", `{"holder":"me","all":true}`} {
		err := j.Allow(t.Context(), []byte(shown), "grid.receive", "s1")
		testkit.That(t, frame.Judge(frame.EventGrid, err).Status == 401, "by %q it is %v", shown, err)
	}
	testkit.Equal(t, len(Shown(t.Context())), 0, "bytes of nobody")
	text := Shown(caller.With(t.Context(), caller.Caller{Grant: grant}))
	testkit.Check(t, j.Allow(t.Context(), text, "grid.receive", "s1"), "what is told")
}

// Each kind has a name of its own, and says whose it is.
func TestKinds(t *testing.T) {
	for i, k := range Kinds {
		found, ok := kindOf(k.Subject)
		testkit.That(t, ok && slices.Equal(found.Routes, k.Routes), "%s is there twice", k.Subject)
		own := k.Own != ""
		testkit.That(t, own == (k.Need.Reach == frame.Undeclared) && own == (len(k.Routes) == 0), "row %d, %s: it is for a caller or a node's own", i, k.Subject)
	}
}
