package topics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNamesOfTopics(t *testing.T) {
	k := newYard(t).open(t, Config{})
	for name, good := range map[string]bool{
		"abc": true, "Orders-2": true, "1-2": true, strings.Repeat("a", 50): true, "sys": true,
		"": false, "ab": false, strings.Repeat("a", 51): false, "a_b": false, "a b": false, "a/b": false, "größe": false,
		"Microsoft-x": false, "EVENTGRIDx": false, "systemx": false, "a.b": false,
	} {
		_, err := k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name}})
		if good != (err == nil) || !good && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// G9: a topic is what it was made as, also for a registry that opens later.
func TestCreatedTopicIsThere(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{})
	made, err := k.CreateTopic(t.Context(), TopicConfig{Topic{
		Name: "Orders", Schema: schema.Custom, Mapping: schema.Mapping{EventType: schema.Field{Source: "kind", Default: "x"}, Subject: schema.Field{Default: "s"}},
		Key1: "a-key-that-I-have-chosen", DisableKeys: true, Tags: map[string]string{"team": "a"},
	}})
	testkit.Must(t, err)
	const resource = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/yard/providers/Microsoft.EventGrid/topics/Orders"
	if made.Key1 != "a-key-that-I-have-chosen" || len(made.Key2) < 40 || !isID(made.ID) || made.Resource != resource || !made.DisableKeys {
		t.Errorf("made %+v", made)
	}
	for _, registry := range []*Registry{k, y.open(t, Config{})} {
		for _, name := range []string{"Orders", "orders", "ORDERS"} {
			found, err := registry.Topic(name)
			if err != nil || fmt.Sprint(found) != fmt.Sprint(made) {
				t.Errorf("%s: got %+v, %v", name, found, err)
			}
		}
	}
	wantError(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "ORDERS"}})), ErrTopicExists, "choose another name")
	testkit.ErrorIs(t, testkit.Err(k.Topic("nothing")), ErrTopicNotFound)
}

func TestTopicsThatAreNotAllowed(t *testing.T) {
	k := newYard(t).open(t, Config{})
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint(i)] = "x"
	}
	for says, topic := range map[string]Topic{
		"schema":               {Schema: "xml"},
		"a mapping is for":     {Mapping: schema.Mapping{ID: schema.Field{Source: "x"}}},
		"key has":              {Key2: "short"},
		"tags":                 {Tags: many},
		"a name of at most":    {Tags: map[string]string{"": "x"}},
		"a value of at most 2": {Tags: map[string]string{"x": strings.Repeat("x", 257)}},
	} {
		topic.Name = "orders"
		wantError(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{topic})), ErrInvalid, says)
	}
}

func TestYardEventsIsMadeOnceAndStays(t *testing.T) {
	y := newYard(t)
	first, err := y.open(t, Config{}).Topic(YardEvents)
	if err != nil || first.Schema != schema.EventGrid {
		t.Fatalf("got %+v, %v", first, err)
	}
	k := y.open(t, Config{})
	if again, _ := k.Topic("Yard-Events"); again.ID != first.ID || again.Key1 != first.Key1 {
		t.Errorf("made anew: %+v", again)
	}
	wantError(t, k.DeleteTopic(t.Context(), "YARD-events"), ErrReserved, "leave it unused")
	if got := k.Topics(); len(got) != 1 || got[0].Name != YardEvents {
		t.Errorf("topics %v", got)
	}
}

// R1: receivers of yard-events take its events for the yard's own word. Nobody else publishes
// there.
func TestOnlyTheYardPublishesToYardEvents(t *testing.T) {
	k := newYard(t).open(t, Config{})
	for _, name := range []string{YardEvents, "Yard-Events"} {
		wantError(t, k.Publish(t.Context(), name, [][]byte{[]byte("{}")}, nil), ErrReserved, "use another topic")
	}
	testkit.Must(t, k.Announce(t.Context(), [][]byte{[]byte("{}")}))
	own := testkit.Value(k.Topic(YardEvents))(t)
	bounds := testkit.Value(testkit.Value(k.Log(&own))(t).Bounds(t.Context()))(t)
	testkit.Equal(t, int(bounds.Next-bounds.First), 1, "events there")
}

// Several nodes that start at once have one yard-events.
func TestYardEventsOfSeveralNodes(t *testing.T) {
	y := newYard(t)
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			made, err := y.open(t, Config{}).Topic(YardEvents)
			testkit.Check(t, err)
			ids[i] = made.ID
		})
	}
	wg.Wait()
	testkit.Equal(t, len(slices.Compact(slices.Clone(ids))), 1, "got %v", ids)
}

func TestEnsureTopic(t *testing.T) {
	k := newYard(t).open(t, Config{})
	cfg := TopicConfig{Topic{Name: "orders", Schema: schema.CloudEvents, Tags: map[string]string{"a": "b"}}}
	first, err := k.EnsureTopic(t.Context(), cfg)
	testkit.Must(t, err)
	changes := 0
	defer k.OnChange(func() { changes++ })()
	if again, err := k.EnsureTopic(t.Context(), cfg); err != nil || fmt.Sprint(again) != fmt.Sprint(first) || changes != 0 {
		t.Errorf("again: %+v, %v, %d changes", again, err, changes)
	}
	cfg.Tags, cfg.Key1, cfg.DisableKeys, cfg.Schema = nil, "a-key-that-I-have-chosen", true, ""
	changed, err := k.EnsureTopic(t.Context(), cfg)
	if err != nil || changed.Key1 != cfg.Key1 || changed.Key2 != first.Key2 || !changed.DisableKeys || changed.Tags != nil ||
		changed.ID != first.ID || changed.Schema != schema.CloudEvents || changes != 1 {
		t.Errorf("changed: %+v, %v, %d changes", changed, err, changes)
	}
	cfg.Schema = schema.EventGrid
	wantError(t, testkit.Err(k.EnsureTopic(t.Context(), cfg)), ErrInvalid, "the schema is fixed")
}

// UpdateTopic changes what is there, beside what others change at the same time, and makes nothing.
func TestUpdateTopic(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{})
	made := mustTopic(t, k, "orders")
	raced := false
	changed, err := k.UpdateTopic(t.Context(), "ORDERS", func(t2 *Topic) error {
		if !raced {
			raced = true
			testkit.Must(t, testkit.Err(y.open(t, Config{}).RegenerateKey(t.Context(), "orders", Key1)))
		}
		t2.DisableKeys = true
		t2.Name, t2.ID, t2.Created = "other", "other", time.Time{}
		return nil
	})
	if err != nil || !changed.DisableKeys || changed.Key1 == made.Key1 || changed.Name != "orders" || changed.ID != made.ID || !changed.Created.Equal(made.Created) {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	wantError(t, testkit.Err(k.UpdateTopic(t.Context(), "orders", func(t *Topic) error { t.Schema = schema.CloudEvents; return nil })), ErrInvalid, "the schema is fixed")
	wantError(t, testkit.Err(k.UpdateTopic(t.Context(), "orders", func(t *Topic) error { t.Key2 = "short"; return nil })), ErrInvalid, "orders")
	stop := errors.New("stop")
	wantError(t, testkit.Err(k.UpdateTopic(t.Context(), "orders", func(t *Topic) error { t.DisableKeys = false; return stop })), stop, "orders")
	if now, err := k.Topic("orders"); err != nil || now.Schema != schema.EventGrid || now.Key2 != made.Key2 || !now.DisableKeys {
		t.Errorf("it is %+v, %v", now, err)
	}
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	wantError(t, testkit.Err(k.UpdateTopic(t.Context(), "orders", func(*Topic) error { return nil })), ErrTopicNotFound, "orders")
}

func TestRegenerateKey(t *testing.T) {
	k := newYard(t).open(t, Config{})
	made := mustTopic(t, k, "orders")
	one, err := k.RegenerateKey(t.Context(), "Orders", "key1")
	if err != nil || one.Key1 == made.Key1 || one.Key2 != made.Key2 {
		t.Errorf("got %+v, %v", one, err)
	}
	two, err := k.RegenerateKey(t.Context(), "orders", "KEY2")
	if err != nil || two.Key1 != one.Key1 || two.Key2 == one.Key2 {
		t.Errorf("got %+v, %v", two, err)
	}
	wantError(t, testkit.Err(k.RegenerateKey(t.Context(), "orders", "key3")), ErrInvalid, "key1 and key2")
	wantError(t, testkit.Err(k.RegenerateKey(t.Context(), "other", "key1")), ErrTopicNotFound, "other")
}

func TestNoMoreThanSoManyTopics(t *testing.T) {
	k := newYard(t).open(t, Config{})
	updates := make([]mirror.Update[*topicRecord], MaxTopics-2)
	for i := range updates {
		made := &topicRecord{Topic: Topic{Name: fmt.Sprintf("topic-%d", i), ID: newID()}}
		updates[i] = mirror.Update[*topicRecord]{Key: made.key(), New: mirror.Item[*topicRecord]{Key: made.key(), Revision: 1000, Value: made}}
	}
	k.view.showTopics(updates)
	mustTopic(t, k, "the-last")
	wantError(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "one-more"}})), ErrInvalid, "delete one first")
	testkit.Check(t, testkit.Err(k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "the-last", DisableKeys: true}})), "one that exists")
}

// G1, G12: what was published is stored, and a topic that is made again has nothing of it.
func TestRecreatedTopicIsEmpty(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{})
	first := mustTopic(t, k, "orders")
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
	mustPublish(t, k, "ORDERS", `{"a":1}`, `{"b":2}`)
	mustPublish(t, k, "orders", `{"c":3}`)
	testkit.Slices(t, stored(t, k, "orders"), []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}, "stored")
	testkit.Must(t, k.DeleteTopic(t.Context(), "Orders"))
	expectGone(t, k, first)
	second := mustTopic(t, k, "orders")
	if second.ID == first.ID || second.Key1 == first.Key1 {
		t.Errorf("the new topic is the old one: %+v", second)
	}
	for _, registry := range []*Registry{k, y.open(t, Config{})} {
		testkit.Equal(t, len(stored(t, registry, "orders")), 0, "stored")
		if list, err := registry.Subscriptions(topic("orders")); err != nil || len(list) != 0 {
			t.Errorf("subscriptions %v, %v", list, err)
		}
	}
}

// expectGone checks that no call finds the topic.
func expectGone(t *testing.T, k *Registry, gone Topic) {
	t.Helper()
	_, byName := k.Topic(gone.Name)
	_, find := k.Find(topic(gone.Name), "mailer")
	_, list := k.Subscriptions(topic(gone.Name))
	_, create := k.Create(t.Context(), topic(gone.Name), "mailer", hook(example))
	_, ensure := k.Ensure(t.Context(), topic(gone.Name), "mailer", hook(example))
	_, update := k.Update(t.Context(), topic(gone.Name), "mailer", func(*Settings) error { return nil })
	_, log := k.Log(&gone)
	_, key := k.RegenerateKey(t.Context(), gone.Name, "key1")
	for what, err := range map[string]error{
		"Topic": byName, "Find": find, "Subscriptions": list, "Create": create, "Ensure": ensure, "Update": update, "Log": log,
		"RegenerateKey": key, "Publish": k.Publish(t.Context(), gone.Name, [][]byte{[]byte("{}")}, nil),
		"Delete": k.Delete(t.Context(), topic(gone.Name), "mailer"), "DeleteTopic": k.DeleteTopic(t.Context(), gone.Name),
	} {
		testkit.ErrorIs(t, err, ErrTopicNotFound, "%s", what)
	}
	for s := range k.Snapshot().Subscriptions.All() {
		if s.SourceID == gone.ID {
			t.Errorf("subscription %s is still seen", s.Name)
		}
	}
	if its := k.Snapshot().BySource[gone.ID]; its != nil {
		t.Errorf("subscriptions of the topic are still seen: %v", its)
	}
}

// G8: wherever a deletion is cut off, the topic is either whole or, after the next start, gone
// with all it had; and its name is free for a new one, without any start.
func TestDeletionSurvivesACrashAtEveryStep(t *testing.T) {
	for _, answerLost := range []bool{false, true} {
		for _, next := range []string{"restart", "create", "delete", "ensure"} {
			// Marking, two subscriptions, removing the log, the definition.
			for step := 1; step <= 5; step++ {
				t.Run(fmt.Sprintf("step %d, answer lost %v, then %s", step, answerLost, next), func(t *testing.T) {
					crashDeletion(t, &faults{step: step, answerLost: answerLost}, next)
				})
			}
		}
	}
}

func crashDeletion(t *testing.T, f *faults, next string) {
	y := newYard(t)
	k := y.open(t, Config{})
	old := mustTopic(t, k, "orders")
	mustPublish(t, k, "orders", "old")
	for _, name := range []string{"mailer", "biller"} {
		mustCreate(t, k, topic("orders"), name, hook(example))
	}
	// Another node, open since before, that knows nothing of the deletion.
	healthy := &faults{}
	k = y.open(t, Config{Engine: healthy.engine(y.Engine)})
	dying := y.open(t, Config{Engine: f.engine(y.Engine), Meta: f.store(y.Memory)})
	testkit.MustErrorIs(t, dying.DeleteTopic(t.Context(), "orders"), errCrashed)
	decided := f.step > 1 || f.answerLost
	switch next {
	case "restart":
		k = y.open(t, Config{Engine: healthy.engine(y.Engine)})
	case "create":
		_, err := k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "orders"}})
		if decided && err != nil || !decided && !errors.Is(err, ErrTopicExists) {
			t.Fatalf("create: %v", err)
		}
	case "ensure":
		testkit.Must(t, testkit.Err(k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "orders"}})), "ensure")
	case "delete":
		err := k.DeleteTopic(t.Context(), "orders")
		if err != nil && !errors.Is(err, ErrTopicNotFound) {
			t.Fatal(err)
		}
		if err != nil {
			k = y.open(t, Config{}) // what was finished elsewhere it would learn by watching
		}
		decided = true
	}
	if !decided {
		testkit.Slices(t, stored(t, k, "orders"), []string{"old"})
		return
	}
	expectNothingOf(t, y, old, append(f.removed, healthy.removed...))
	if next == "restart" || next == "delete" {
		expectGone(t, k, old)
		mustTopic(t, k, "orders")
	}
	testkit.Equal(t, len(stored(t, k, "orders")), 0, "the new topic holds")
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
}

// expectNothingOf checks that no trace of a topic is left.
func expectNothingOf(t *testing.T, y *yard, gone Topic, removed []string) {
	t.Helper()
	if log := LogOf(&gone).Log; !slices.Contains(removed, log) {
		t.Errorf("log %s was not removed, only %q", log, removed)
	}
	for _, prefix := range []string{topicsPrefix, subscriptionsPrefix} {
		left, err := y.Memory.List(t.Context(), prefix)
		testkit.Must(t, err)
		for _, e := range left {
			if strings.Contains(string(e.Value), gone.ID) {
				t.Errorf("left: %s", e.Value)
			}
		}
	}
}

// Storage that cannot be removed holds up no other topic, and the deletion can be asked for again.
func TestDeletionThatCannotBeFinished(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{})
	old := mustTopic(t, k, "orders")
	mustTopic(t, k, "other")
	stuck := &faults{step: 1}
	k = y.open(t, Config{Engine: stuck.engine(y.Engine)})
	if err := k.DeleteTopic(t.Context(), "orders"); !errors.Is(err, errCrashed) || !strings.Contains(err.Error(), "delete it again") {
		t.Fatalf("got %v", err)
	}
	k = y.open(t, Config{Engine: stuck.engine(y.Engine)})
	testkit.ErrorIs(t, testkit.Err(k.Topic("orders")), ErrTopicNotFound)
	mustPublish(t, k, "other", "x")
	testkit.ErrorIs(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "orders"}})), errCrashed, "create")
	stuck.fail(0)
	testkit.Check(t, k.DeleteTopic(t.Context(), "orders"))
	expectGone(t, k, old)
}

// Who creates a subscription while its topic is deleted is told, and leaves nothing behind.
func TestSubscriptionOfATopicThatIsDeletedMeanwhile(t *testing.T) {
	y := newYard(t)
	deleter := y.open(t, Config{})
	deletion := func() {
		testkit.Check(t, deleter.DeleteTopic(t.Context(), "orders"))
	}
	for when, config := range map[string]func(deletion func()) Config{
		"before it is known": func(deletion func()) Config { return Config{} },
		"before it is stored": func(deletion func()) Config {
			return Config{Meta: y.on(metatest.OpSet, func(metatest.Op) error { deletion(); return nil })}
		},
		"after it is stored": func(deletion func()) Config {
			return Config{Meta: y.on(metatest.OpSet, func(metatest.Op) error {
				return metatest.After(func(err error) error { deletion(); return err })
			})}
		},
		"while the endpoint is asked": func(deletion func()) Config {
			return Config{Validate: &endpoint{answer: func(Subscription, string, string, string) Agreement {
				deletion()
				return Agreement{Agreed: true}
			}}}
		},
	} {
		t.Run(when, func(t *testing.T) {
			old := mustTopic(t, deleter, "orders")
			k := y.open(t, config(sync.OnceFunc(deletion)))
			if when == "before it is known" {
				deletion()
			}
			_, err := k.Create(t.Context(), topic("orders"), "mailer", hook(example))
			if !errors.Is(err, ErrTopicNotFound) && !errors.Is(err, ErrNotFound) {
				t.Errorf("got %v", err)
			}
			expectNothingOf(t, y, old, []string{LogOf(&old).Log})
		})
	}
}

// C4: who creates a subscription looks for its topic after Fresh, and who deletes the topic lists
// after Fresh, so that one of them sees the other.
func TestLooksForTheOtherSideAreFresh(t *testing.T) {
	y := newYard(t)
	y.open(t, Config{}, "orders")
	store := metatest.NewFaulty(y.Memory)
	k := y.open(t, Config{Meta: store})
	var asked []string
	note := func(op metatest.Op) error {
		if op.Kind != metatest.OpNext {
			asked = append(asked, op.Kind.String()+" "+op.Key)
		}
		return nil
	}
	order := func(what string, want ...string) {
		t.Helper()
		rest := asked
		for _, w := range want {
			i := slices.IndexFunc(rest, func(op string) bool { return strings.HasPrefix(op, w) })
			if i < 0 {
				t.Fatalf("%s: %q is not in its turn among %q", what, w, asked)
			}
			rest = rest[i+1:]
		}
		asked = nil
	}
	store.Inject(note)
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
	order("create", "set "+subscriptionsPrefix, "fresh "+topicsPrefix, "get "+topicsPrefix)
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	order("delete", "set "+topicsPrefix, "fresh "+subscriptionsPrefix, "list "+subscriptionsPrefix)
}

// A node that finishes a deletion late, when others have finished it and made the topic anew,
// harms nothing of the new one.
func TestDeletionIsFinishedLate(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{}, "orders")
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
	dying := &faults{step: 2}
	testkit.MustErrorIs(t, y.open(t, Config{Meta: dying.store(y.Memory)}).DeleteTopic(t.Context(), "orders"), errCrashed)
	marked, err := k.topics.Read(t.Context(), topicKey("orders"))
	if err != nil || !marked.Value.Deleting {
		t.Fatalf("got %+v, %v", marked, err)
	}
	made := mustTopic(t, k, "orders")
	sub := mustCreate(t, k, topic("orders"), "mailer", hook(example))
	mustPublish(t, k, "orders", "x")
	testkit.Must(t, y.open(t, Config{}).finishDeletion(t.Context(), marked))
	for _, registry := range []*Registry{k, y.open(t, Config{})} {
		if found, err := registry.Topic("orders"); err != nil || found.ID != made.ID {
			t.Errorf("found %+v, %v", found, err)
		}
		testkit.Equal(t, mustFind(t, registry, topic("orders"), "mailer").ID, sub.ID)
		testkit.Equal(t, len(stored(t, registry, "orders")), 1, "stored")
	}
}

func TestConcurrentDeletes(t *testing.T) {
	y := newYard(t)
	nodes := []*Registry{y.open(t, Config{}), y.open(t, Config{})}
	mustTopic(t, nodes[0], "orders")
	for i := range 20 {
		mustCreate(t, nodes[0], topic("orders"), fmt.Sprintf("sub-%d", i), hook(example))
	}
	var wg sync.WaitGroup
	deleted := make(chan struct{}, 8)
	for i := range 8 {
		wg.Go(func() {
			err := nodes[i%2].DeleteTopic(t.Context(), "orders")
			if err != nil && !errors.Is(err, ErrTopicNotFound) {
				t.Error(err)
			}
			if err == nil {
				deleted <- struct{}{}
			}
		})
	}
	wg.Wait()
	if len(deleted) == 0 {
		t.Error("nobody deleted it")
	}
	mustTopic(t, nodes[1], "orders")
	mustPublish(t, nodes[1], "orders", "x")
	y.wantNoSubscriptions(t)
}

// What a crash left behind of a deleted topic is seen by nobody, stands in nobody's way, and is
// swept away when it is old.
func TestLeftoversOfADeletedTopic(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{}, "orders")
	mustCreate(t, k, topic("orders"), "mailer", hook(example))
	mustCreate(t, k, topic("orders"), "biller", hook(example))
	left, err := y.Memory.List(t.Context(), subscriptionsPrefix)
	if err != nil || len(left) != 2 {
		t.Fatal(left, err)
	}
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	for _, e := range left {
		old := strings.Replace(string(e.Value), `"updated":"2`, `"updated":"1`, 1) // a thousand years ago
		if strings.Contains(e.Key, "biller") {
			old = string(e.Value)
		}
		testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), e.Key, 0, []byte(old))))
	}
	k = y.open(t, Config{})
	testkit.Equal(t, k.Snapshot().Subscriptions.Len(), 0, "subscriptions are seen")
	if now, _ := y.Memory.List(t.Context(), subscriptionsPrefix); len(now) != 1 || !strings.Contains(now[0].Key, "biller") {
		t.Errorf("stored: %v", now)
	}
	mustTopic(t, k, "orders")
	if list, err := k.Subscriptions(topic("orders")); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	mustCreate(t, k, topic("orders"), "biller", hook(example))
	testkit.Equal(t, len(slices.Collect(maps.Keys(k.Snapshot().BySource))), 1, "sources")
}

func TestKeysOfTheStoreAreOnesOwn(t *testing.T) {
	testkit.Equal(t, topicKey("Orders"), "grid/topics/orders")
	testkit.Equal(t, subscriptionKey(Source{Hub: "a/B.c"}, "Xyz"), "grid/subscriptions/h/a%2Fb.c/xyz")
	testkit.Equal(t, subscriptionKey(Source{Topic: "Orders"}, "Xyz"), "grid/subscriptions/t/orders/xyz")
	testkit.Equal(t, LogOf(&Topic{ID: "abc"}), (eventlog.PartitionID{Log: "topic-abc"}))
}
