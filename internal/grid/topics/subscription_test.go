package topics

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: a subscription is what it was made as, also for a registry that opens later.
func TestCreatedSubscriptionIsThere(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{})
	its := mustTopic(t, k, "Orders")
	s := with(func(s *Settings) { s.Retry = retry.Policy{MaxAttempts: 3, TimeToLive: time.Minute, NoRetry: []int{}} })
	s.Headers = []Header{{Name: "X-Env", Value: "prod", Secret: true}}
	made := mustCreate(t, k, topic("orders"), "Mailer", s)
	if made.State != Active || made.Source != topic("Orders") || made.SourceID != its.ID || !isID(made.ID) || made.Output != schema.EventGrid ||
		made.Resource != its.Resource || made.Created.IsZero() || made.Retry.NoRetry == nil {
		t.Errorf("made %+v", made)
	}
	s.Headers[0].Value = "mine to change"
	for _, registry := range []*Registry{k, y.open(t, Config{})} {
		for _, name := range []string{"mailer", "MAILER"} {
			for _, source := range []Source{topic("ORDERS"), {}} {
				found, err := registry.Find(source, name)
				if err != nil || !found.Settings.equal(made.Settings) || found.ID != made.ID || found.Headers[0].Value != "prod" {
					t.Errorf("%v, %s: got %+v, %v", source, name, found, err)
				}
			}
		}
		if got := registry.Snapshot().Subscriptions.Get(made.ID); got == nil || got.Name != "Mailer" {
			t.Errorf("by id: %+v", got)
		}
	}
	_, err := k.Create(t.Context(), topic("orders"), "MAILER", hook(example))
	wantError(t, err, ErrExists, "choose another name")
	wantError(t, testkit.Err(k.Create(t.Context(), topic("orders"), "m", hook(example))), ErrInvalid, "3 to 64")
	wantError(t, testkit.Err(k.Create(t.Context(), Source{}, "mailer", hook(example))), ErrInvalid, "name a topic or a hub")
	wantError(t, testkit.Err(k.Create(t.Context(), Source{Topic: "orders", Hub: "orders"}, "mailer", hook(example))), ErrInvalid, "only one of them")
	wantError(t, testkit.Err(k.Find(Source{Topic: "orders", Hub: "orders"}, "mailer")), ErrInvalid, "only one of them")
	wantError(t, testkit.Err(k.Subscriptions(Source{Topic: "orders", Hub: "orders"})), ErrInvalid, "only one of them")
	wantError(t, k.Delete(t.Context(), Source{Topic: "orders", Hub: "orders"}, "mailer"), ErrInvalid, "only one of them")
	wantError(t, testkit.Err(k.Find(topic("orders"), "other")), ErrNotFound, "other")
	if _, err = k.Create(t.Context(), Source{Hub: "nowhere"}, "mailer", hook(example)); !isNoHub(err) {
		t.Errorf("got %v", err)
	}
}

func isNoHub(err error) bool {
	var missing *broker.NotFoundError
	return errors.As(err, &missing) && missing.Kind == broker.KindHub
}

// G1: whatever is published once a subscription is active is behind its start.
func TestStarts(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{}, "orders")
	mustPublish(t, k, "orders", "a", "b", "c")
	testkit.Slices(t, mustCreate(t, k, topic("orders"), "from-now", hook(example)).Starts, []int64{3}, "starts at")
	all := with(func(s *Settings) { s.FromStart = true })
	testkit.Slices(t, mustCreate(t, k, topic("orders"), "from-start", all).Starts, []int64{0}, "starts at")
	y.Hub(t, "sensors/cellar", 3)
	y.Publish(t, "sensors/cellar", "1", "a", "b", "c", "d", "e")
	if s := mustCreate(t, k, Source{Hub: "Sensors/Cellar"}, "from-now", hook(example)); !slices.Equal(s.Starts, []int64{0, 5, 0}) || s.Output != schema.CloudEvents {
		t.Errorf("starts at %v, output %s", s.Starts, s.Output)
	}
	testkit.Slices(t, mustCreate(t, k, Source{Hub: "sensors/cellar"}, "from-start", all).Starts, []int64{0, 0, 0}, "starts at")
}

// G1, G11: the ends are read before the definition is in force, whichever way it gets there: an
// event published the very moment it is lies behind them.
func TestStartsMissNothing(t *testing.T) {
	for _, how := range []string{"at once", "agreed", "confirmed", "updated"} {
		t.Run(how, func(t *testing.T) {
			y := newYard(t)
			publisher := y.open(t, Config{}, "orders")
			published := int64(-1)
			var k *Registry
			store := y.on(metatest.OpSet, func(op metatest.Op) error {
				if !op.Under(subscriptionsPrefix) || published >= 0 {
					return nil
				}
				return metatest.After(func(err error) error {
					there, unread := publisher.subscriptions.Read(t.Context(), op.Key)
					if unread == nil && there.Value.State == Active {
						published = int64(len(stored(t, publisher, "orders")))
					}
					mustPublish(t, publisher, "orders", "x")
					return err
				})
			})
			listener := &endpoint{}
			k = y.open(t, Config{Meta: store, Validate: listener, ValidationURL: link})
			s := hook(example)
			var url string
			listener.answer = func(_ Subscription, _, _, u string) Agreement {
				mustPublish(t, publisher, "orders", "while asked")
				url = u
				return Agreement{Agreed: how == "agreed", Awaiting: how != "agreed"}
			}
			s.SkipValidation = how == "at once"
			mustCreate(t, k, topic("orders"), "mailer", s)
			switch how {
			case "confirmed":
				mustPublish(t, publisher, "orders", "before")
				testkit.Must(t, testkit.Err(confirm(t, k, url, 0)))
			case "updated":
				testkit.Must(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", change(func(s *Settings) { s.SkipValidation = true }))))
			}
			found := mustFind(t, k, topic("orders"), "mailer")
			if found.State != Active || published < 0 || len(found.Starts) != 1 || found.Starts[0] > published {
				t.Errorf("starts at %v, published %d, %s", found.Starts, published, found.State)
			}
			if how == "confirmed" && found.Starts[0] == 0 {
				t.Error("it starts before it was active")
			}
		})
	}
}

func TestListsOfSubscriptions(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	y.Hub(t, "empty", 1)
	k := y.open(t, Config{}, "orders")
	for _, name := range []string{"bbb", "AAA", "ccc"} {
		mustCreate(t, k, topic("orders"), name, hook(example))
	}
	mustCreate(t, k, Source{Hub: "sensors"}, "aaa", hook(example))
	for source, want := range map[Source]string{
		topic("Orders"): "[AAA bbb ccc]", {Hub: "Sensors"}: "[aaa]", {Hub: "empty"}: "[]", {}: "[AAA aaa bbb ccc]", topic(YardEvents): "[]",
	} {
		list, err := k.Subscriptions(source)
		names := []string{}
		for _, s := range list {
			names = append(names, s.Name)
		}
		if err != nil || fmt.Sprint(names) != want {
			t.Errorf("%s: got %v, %v", source, names, err)
		}
	}
	order := []string{}
	its, _ := k.Topic("orders")
	for _, s := range k.Snapshot().BySource[its.ID] {
		order = append(order, s.Name)
	}
	testkit.Slices(t, order, []string{"bbb", "AAA", "ccc"}, "in order of creation")
	wantError(t, testkit.Err(k.Find(Source{}, "aaa")), ErrAmbiguous, "say whose is meant")
	wantError(t, k.Delete(t.Context(), Source{}, "AAA"), ErrAmbiguous, "say whose is meant")
	if _, err := k.Subscriptions(Source{Hub: "nowhere"}); !isNoHub(err) {
		t.Errorf("got %v", err)
	}
	wantError(t, testkit.Err(k.Subscriptions(topic("nowhere"))), ErrTopicNotFound, "nowhere")
}

func TestDeletedSubscriptionIsGone(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	first := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	watched := 0
	defer k.OnChange(func() { watched++ })()
	testkit.Must(t, k.Delete(t.Context(), Source{}, "Mailer"))
	if watched != 1 || k.Snapshot().Subscriptions.Get(first.ID) != nil || k.Snapshot().BySource[first.SourceID] != nil {
		t.Errorf("still there, told %d times", watched)
	}
	wantError(t, k.Delete(t.Context(), topic("orders"), "mailer"), ErrNotFound, "mailer")
	wantError(t, k.Delete(t.Context(), Source{}, "mailer"), ErrNotFound, "mailer")
	wantError(t, testkit.Err(k.Update(t.Context(), topic("orders"), "mailer", func(*Settings) error { return nil })), ErrNotFound, "mailer")
	if again := mustCreate(t, k, topic("orders"), "mailer", hook(example)); again.ID == first.ID {
		t.Error("an id is used twice")
	}
}

// A hub that is deleted leaves its subscriptions behind: they say so, and give way to new ones.
func TestSubscriptionsOfADeletedHub(t *testing.T) { synctest.Test(t, orphanHub) }

func orphanHub(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 2)
	k := y.open(t, Config{})
	source := Source{Hub: "sensors"}
	old := mustCreate(t, k, source, "mailer", hook(example))
	mustCreate(t, k, source, "biller", hook(example))
	testkit.Must(t, y.Broker.DeleteHub(t.Context(), "sensors"))
	expectOrphan := func(why string) {
		t.Helper()
		list, err := k.Subscriptions(source)
		if err != nil || len(list) != 2 {
			t.Errorf("got %v, %v", list, err)
		}
		for _, s := range append(list, mustFind(t, k, source, "mailer"), mustFind(t, k, Source{}, "biller")) {
			if s.State != Failed || !strings.Contains(s.Why, why) {
				t.Errorf("%s is %s, %q", s.Name, s.State, s.Why)
			}
		}
	}
	expectOrphan(`hub "sensors" is gone: delete`)
	if _, err := k.Create(t.Context(), source, "mailer", hook(example)); !isNoHub(err) {
		t.Errorf("create: %v", err)
	}
	time.Sleep(time.Millisecond) // a hub made in the same one could not be told apart
	y.Hub(t, "sensors", 3)
	expectOrphan(`another has its name`)
	wantError(t, testkit.Err(k.Update(t.Context(), source, "mailer", func(s *Settings) error { s.MaxEvents = 2; return nil })), ErrNotFound, "gone")
	made := mustCreate(t, k, source, "mailer", hook(example))
	if made.ID == old.ID || made.SourceID == old.SourceID || len(made.Starts) != 3 || made.State != Active {
		t.Errorf("made %+v", made)
	}
	if ensured, err := k.Ensure(t.Context(), source, "biller", hook(example)); err != nil || ensured.SourceID != made.SourceID {
		t.Errorf("ensured %+v, %v", ensured, err)
	}
	testkit.Equal(t, k.Snapshot().Subscriptions.Len(), 2, "subscriptions are seen")
}

func TestOrphansCanBeDeleted(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	k := y.open(t, Config{})
	mustCreate(t, k, Source{Hub: "sensors"}, "mailer", hook(example))
	testkit.Must(t, y.Broker.DeleteHub(t.Context(), "sensors"))
	testkit.Check(t, k.Delete(t.Context(), Source{Hub: "sensors"}, "mailer"))
	testkit.Equal(t, k.Snapshot().Subscriptions.Len(), 0, "are left")
}

func TestNoMoreThanSoManySubscriptions(t *testing.T) {
	k := newYard(t).open(t, Config{})
	its := mustTopic(t, k, "orders")
	updates := make([]mirror.Update[*record], MaxSubscriptions-1)
	for i := range updates {
		r := &record{Subscription: Subscription{Name: fmt.Sprintf("sub-%d", i), ID: newID(), Source: topic("orders"), SourceID: its.ID, Created: now()}}
		updates[i] = mirror.Update[*record]{Key: r.key(), New: mirror.Item[*record]{Key: r.key(), Revision: 1000, Value: r}}
	}
	k.view.showSubscriptions(updates)
	mustCreate(t, k, topic("orders"), "the-last", hook(example))
	wantError(t, testkit.Err(k.Create(t.Context(), topic("orders"), "one-more", hook(example))), ErrInvalid, "delete one first")
	mustCreate(t, k, topic(YardEvents), "elsewhere", hook(example))
}

// While a failed subscription is replaced its name is found all the time: first the old one, then
// the new one. The view's lock holds the replacement at the moment when the table has the new one
// and readers do not see it yet.
func TestFindWhileAFailedOneIsReplaced(t *testing.T) {
	e := &endpoint{}
	e.says(Agreement{Awaiting: true})
	k := newYard(t).open(t, Config{Validate: e, ValidationURL: link}, "orders")
	old := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	key := subscriptionKey(topic("orders"), "mailer")
	_, err := k.change(t.Context(), key, func(r *record) error {
		r.lapse(r.Validation.Until)
		return nil
	})
	testkit.Must(t, err)
	e.says(Agreement{Agreed: true})
	k.view.mu.Lock()
	replaced := make(chan error)
	go func() {
		_, err := k.Create(t.Context(), topic("orders"), "mailer", hook(example))
		replaced <- err
	}()
	for there, _ := k.subscriptions.Get(key); there.Value.ID == old.ID; there, _ = k.subscriptions.Get(key) {
		runtime.Gosched()
	}
	found, err := k.Find(topic("orders"), "mailer")
	if err != nil || found.ID != old.ID {
		t.Errorf("got %q, %v, want the old one: readers see no other yet", found.ID, err)
	}
	k.view.mu.Unlock()
	testkit.Must(t, <-replaced)
	if found := mustFind(t, k, topic("orders"), "mailer"); found.ID == old.ID || found.State != Active {
		t.Errorf("got %+v, want the new one", found)
	}
}

// G1: a node that has not heard yet that a topic was made anew takes nothing from the new one: to
// it the new one's subscriptions look like leftovers.
func TestStaleNodeReplacesNothingOfANewTopic(t *testing.T) {
	for _, how := range []string{"create", "ensure"} {
		t.Run(how, func(t *testing.T) {
			y := newYard(t)
			k := y.open(t, Config{}, "orders")
			mustCreate(t, k, topic("orders"), "mailer", hook(example))
			stale := y.open(t, Config{Validate: &endpoint{}}) // it does not run, and so hears nothing
			testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
			mustTopic(t, k, "orders")
			made := mustCreate(t, k, topic("orders"), "mailer", hook(example))
			var err error
			if how == "create" {
				_, err = stale.Create(t.Context(), topic("orders"), "mailer", hook(example))
			} else {
				_, err = stale.Ensure(t.Context(), topic("orders"), "mailer", hook(example))
			}
			testkit.ErrorIs(t, err, ErrTopicNotFound)
			testkit.Equal(t, mustFind(t, y.open(t, Config{}), topic("orders"), "mailer").ID, made.ID)
		})
	}
}

// The same, where a hub was made anew.
func TestStaleNodeReplacesNothingOfANewHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "sensors", 1)
		deaf, err := broker.Open(t.Context(), broker.Config{Engine: y.Engine, Meta: y.Memory, Namespace: "yard", Log: testkit.Quiet()})
		testkit.Must(t, err)
		stale, err := Open(t.Context(), Config{Engine: y.Engine, Meta: y.Memory, Broker: deaf, Validate: &endpoint{}, Log: testkit.Quiet()})
		testkit.Must(t, err)
		time.Sleep(time.Second)
		testkit.Must(t, y.Broker.DeleteHub(t.Context(), "sensors"))
		y.Hub(t, "sensors", 1)
		k := y.open(t, Config{})
		time.Sleep(time.Second)
		made := mustCreate(t, k, Source{Hub: "sensors"}, "mailer", hook(example))
		wantError(t, testkit.Err(stale.Create(t.Context(), Source{Hub: "sensors"}, "mailer", hook(example))), ErrExists, "delete it first")
		if found, err := y.open(t, Config{}).Find(Source{Hub: "sensors"}, "mailer"); err != nil || found.ID != made.ID || found.State != Active {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}
