package topics

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: what one node changes, the others know.
func TestChangesReachOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k, other := y.open(t, Config{}), y.open(t, Config{})
		mustTopic(t, k, "before") // while nobody watches
		defer testkit.Run(t, other.Run)()
		synctest.Wait()
		testkit.Check(t, testkit.Err(other.Topic("before")))
		var watched atomic.Int64 // topics and subscriptions are watched by one goroutine each
		defer other.OnChange(func() { watched.Add(1) })()
		made := mustTopic(t, k, "orders")
		sub := mustCreate(t, k, topic("orders"), "mailer", hook(example))
		synctest.Wait()
		if found := mustFind(t, other, topic("orders"), "mailer"); found.ID != sub.ID || found.State != Active || watched.Load() == 0 {
			t.Errorf("found %+v, told %d times", found, watched.Load())
		}
		mustPublish(t, other, "orders", "x")
		testkit.Equal(t, len(stored(t, k, "orders")), 1, "stored")
		testkit.Must(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.MaxEvents = 9 }))))
		synctest.Wait()
		testkit.Equal(t, mustFind(t, other, topic("orders"), "mailer").MaxEvents, 9)
		testkit.Must(t, k.Delete(t.Context(), topic("orders"), "mailer"))
		synctest.Wait()
		testkit.ErrorIs(t, testkit.Err(other.Find(topic("orders"), "mailer")), ErrNotFound)
		mustCreate(t, k, topic("orders"), "mailer", hook(example))
		testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
		synctest.Wait()
		expectGone(t, other, made)
	})
}

// C2: whether a subscription was deleted is the store's to say, not that of a node that may not have
// heard of it.
func TestDeletedAsksTheStore(t *testing.T) {
	y := newYard(t)
	k, late := y.open(t, Config{}), y.open(t, Config{Meta: y.Meta}) // which does not run, and so hears of nothing
	mustTopic(t, k, "orders")
	sub := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	if late.Snapshot().Subscriptions.Get(sub.ID) != nil {
		t.Fatal("the other node has heard of it")
	}
	testkit.Equal(t, testkit.Value(late.Deleted(t.Context(), sub.ID))(t), false, "it is there")
	testkit.Must(t, k.Delete(t.Context(), topic("orders"), "mailer"))
	testkit.Equal(t, testkit.Value(late.Deleted(t.Context(), sub.ID))(t), true, "it was deleted")
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
	testkit.Equal(t, testkit.Value(late.Deleted(t.Context(), sub.ID))(t), true, "another has its name")
	for _, kind := range []metatest.OpKind{metatest.OpFresh, metatest.OpList} {
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == kind {
				return meta.ErrUnavailable
			}
			return nil
		})
		testkit.ErrorIs(t, testkit.Err(late.Deleted(t.Context(), sub.ID)), meta.ErrUnavailable, "nobody knows")
	}
}

var errBroken = errors.New("no such store")

// Where either of them cannot be watched the registry says so, and follows neither.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{Meta: y.on(metatest.OpWatch, func(op metatest.Op) error {
			if op.Key == subscriptionsPrefix {
				return errBroken
			}
			return nil
		})})
		testkit.ErrorIs(t, k.Run(t.Context()), errBroken)
	})
}

// A definition that cannot be read stops none of the others, while the yard runs; a start says so.
func TestUnreadableDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{}, "orders")
		stop := testkit.Run(t, k.Run)
		synctest.Wait()
		for _, key := range []string{topicKey("broken"), subscriptionKey(topic("orders"), "broken"), topicKey("other")} {
			value := "{"
			if strings.HasSuffix(key, "other") {
				value = `{"name":"another"}`
			}
			testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), key, 0, []byte(value))))
		}
		mustCreate(t, k, topic("orders"), "mailer", hook(example))
		synctest.Wait()
		mustFind(t, k, topic("orders"), "mailer")
		stop()
		if _, err := Open(t.Context(), Config{Engine: y.Engine, Meta: y.Memory, Broker: y.Broker, Log: testkit.Quiet()}); err == nil || strings.Contains(err.Error(), "}") {
			t.Errorf("got %v", err)
		}
	})
}

// Many change everything at once on two nodes that follow each other. In the end both see what
// is stored, and nothing that belongs to no topic is left.
func TestStorm(t *testing.T) { synctest.Test(t, storm) }

func storm(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	var all consents
	listener := &endpoint{answer: func(s Subscription, _, _, _ string) Agreement {
		a := [...]Agreement{{Agreed: true}, {Awaiting: true}, {Why: "no"}}[rand.IntN(3)]
		if a.Agreed {
			all.give(&s)
		}
		time.Sleep(rand.N(20 * time.Second))
		return a
	}}
	nodes := []*Registry{y.open(t, Config{Validate: listener}), y.open(t, Config{Validate: listener})}
	for _, k := range nodes {
		defer testkit.Run(t, k.Run)()
		k.OnChange(func() {
			checkSnapshot(t, k.Snapshot())
			all.check(t, k.Snapshot())
		})
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 60 {
				stir(t, nodes[i%2], &all)
				time.Sleep(rand.N(time.Minute))
			}
		})
	}
	wg.Wait()
	fresh := y.open(t, Config{})
	synctest.Wait() // until the watches have told the last
	for i, k := range nodes {
		if summary(k) != summary(fresh) {
			t.Errorf("node %d sees\n%s\nstored is\n%s", i, summary(k), summary(fresh))
		}
	}
	left, err := y.Memory.List(t.Context(), topicSubscriptionsPrefix)
	testkit.Must(t, err)
	for _, e := range left {
		if s, err := fresh.sources.decodeSubscription(e); err != nil || fresh.Snapshot().Subscriptions.Get(s.ID) == nil {
			t.Errorf("left behind: %s, %v", e.Key, err)
		}
	}
}

// stir does something at random; that it may come too late is no fault.
func stir(t *testing.T, k *Registry, all *consents) {
	ctx := t.Context()
	name, source := fmt.Sprintf("sub-%d", rand.IntN(4)), Source{Topic: fmt.Sprintf("topic-%d", rand.IntN(2))}
	if rand.IntN(3) == 0 {
		source = Source{Hub: "sensors"}
	}
	var err error
	switch rand.IntN(12) {
	case 0:
		_, err = k.EnsureTopic(ctx, TopicConfig{Topic{Name: "topic-0", DisableKeys: rand.IntN(2) == 0}})
	case 1:
		_, err = k.CreateTopic(ctx, TopicConfig{Topic{Name: "topic-1"}})
	case 2:
		if rand.IntN(3) == 0 {
			err = k.DeleteTopic(ctx, source.Topic)
		}
	case 3, 4:
		_, err = k.Create(ctx, source, name, hook(example))
	case 5:
		_, err = k.Ensure(ctx, source, name, with(func(s *Settings) { s.MaxEvents = rand.IntN(9) }))
	case 6:
		_, err = k.Update(ctx, source, name, change(func(s *Settings) {
			s.Webhook.URL, s.SkipValidation = fmt.Sprintf("https://example.com/%d", rand.IntN(3)), rand.IntN(2) == 0
			s.Expires, s.Paused = time.Now().Add(rand.N(20*time.Minute)), rand.IntN(3) == 0
		}))
	case 7:
		err = k.Delete(ctx, source, name)
	case 8:
		for s := range k.Snapshot().Subscriptions.All() {
			if s.State == Pending {
				all.give(s)
			}
			_, err = k.Confirm(ctx, s.ID, s.Validation.Token, 1)
			break
		}
	case 9:
		_, err = k.RotateKey(ctx, source, name, signature.HMAC, 0)
	case 10:
		for s := range k.Snapshot().Subscriptions.All() {
			err = k.DisableAt(ctx, s.ID, s.Webhook.URL, "so")
			break
		}
	default:
		err = k.Publish(ctx, "topic-0", [][]byte{[]byte("{}")}, nil)
	}
	for _, fine := range []error{
		nil, ErrTopicExists, ErrTopicNotFound, ErrExists, ErrNotFound, ErrHandshake, ErrToken, ErrInvalid, errSuperseded, meta.ErrConflict,
	} {
		if errors.Is(err, fine) {
			return
		}
	}
	t.Errorf("got %v", err)
}

// consents are the endpoints that have agreed, by the subscription: G11.
type consents struct{ given sync.Map }

func (c *consents) give(s *Subscription) { c.given.Store(s.ID+s.Webhook.URL, true) }

// check looks for those who are sent events, or would be, and never agreed.
func (c *consents) check(t *testing.T, s *Snapshot) {
	for sub := range s.Subscriptions.All() {
		if _, agreed := c.given.Load(sub.ID + sub.Webhook.URL); !agreed && !sub.SkipValidation && sub.State != Pending && sub.State != Failed {
			t.Errorf("%s is %s, and %s never agreed", sub.Name, sub.State, sub.Webhook.URL)
		}
	}
}

// checkSnapshot holds the parts of a snapshot to each other.
func checkSnapshot(t *testing.T, s *Snapshot) {
	n := 0
	for id, list := range s.BySource {
		n += len(list)
		for _, sub := range list {
			testkit.Equal(t, sub.SourceID, id, "%s", sub.Name)
			testkit.Equal(t, s.Subscriptions.Get(sub.ID), sub, "%s", sub.Name)
			if its := s.Topics[strings.ToLower(sub.Source.Topic)]; sub.Source.Hub == "" && (its == nil || its.ID != id) {
				t.Errorf("%s is seen without %s", sub.Name, sub.Source)
			}
		}
	}
	if n != s.Subscriptions.Len() {
		t.Errorf("%d by source, %d by id", n, s.Subscriptions.Len())
	}
}

// summary is all that a registry sees, but what only Run tells.
func summary(k *Registry) string {
	var b strings.Builder
	for _, its := range k.Topics() {
		fmt.Fprintln(&b, its.Name, its.ID, its.DisableKeys)
	}
	list, _ := k.Subscriptions(Source{})
	for _, s := range list {
		fmt.Fprintln(&b, s.Source, s.Name, s.ID, s.State, string(s.encode()))
	}
	return b.String()
}
