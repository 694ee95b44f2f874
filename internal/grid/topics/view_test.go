package topics

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// known is what a view was shown.
type known struct {
	revision      meta.Revision
	topics        map[string]mirror.Item[*topicRecord]
	subscriptions map[string]mirror.Item[*record]
}

// set notes what a key holds now, nil for nothing, and gives the update; false where nothing was
// there before either.
func set[T any](all map[string]mirror.Item[*T], key string, revision meta.Revision, value *T) (u mirror.Update[*T], any bool) {
	u.Key, u.Old = key, all[key]
	delete(all, key)
	if value != nil {
		u.New = mirror.Item[*T]{Key: key, Revision: revision, Value: value}
		all[key] = u.New
	}
	return u, u.Old.Exists() || u.New.Exists()
}

// nextTopic and nextSubscription draw a change of one of a few of them.
func (k *known) nextTopic(t *rapid.T) (mirror.Update[*topicRecord], bool) {
	k.revision++
	n := rapid.IntRange(0, 2).Draw(t, "topic")
	r := &topicRecord{Topic: Topic{Name: fmt.Sprintf("Topic-%d", n), ID: fmt.Sprintf("id-%d-%d", n, rapid.IntRange(0, 1).Draw(t, "incarnation"))}}
	r.Deleting = rapid.IntRange(0, 3).Draw(t, "deleting") == 0
	key := r.key()
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		r = nil
	}
	return set(k.topics, key, k.revision, r)
}

func (k *known) nextSubscription(t *rapid.T) (mirror.Update[*record], bool) {
	k.revision++
	n := rapid.IntRange(0, 2).Draw(t, "topic")
	r := &record{Subscription: Subscription{
		Name: fmt.Sprintf("sub-%d", rapid.IntRange(0, 4).Draw(t, "sub")), ID: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "id")),
		Source: Source{Topic: fmt.Sprintf("Topic-%d", n)}, SourceID: fmt.Sprintf("id-%d-%d", n, rapid.IntRange(0, 1).Draw(t, "source")),
	}}
	if n == 2 {
		r.Source, r.SourceID = Source{Hub: "hub"}, "hub-id"
	}
	r.ID = r.SourceID + r.Name + r.ID
	r.Created = time.Unix(int64(len(r.ID)*7+int(r.ID[len(r.ID)-1])%3), 0)
	key := r.key()
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		r = nil
	}
	return set(k.subscriptions, key, k.revision, r)
}

// portion draws what comes at once.
func portion[T any](t *rapid.T, next func(*rapid.T) (mirror.Update[*T], bool)) (all []mirror.Update[*T]) {
	for range rapid.IntRange(1, 4).Draw(t, "portion") {
		if u, any := next(t); any {
			all = append(all, u)
		}
	}
	return all
}

// seen is what readers see, or should, in maps of its own.
type seen struct {
	topics        map[string]*Topic
	subscriptions map[string]*Subscription
	bySource      map[string][]*Subscription
}

// rebuilt is what readers should see of what is known.
func (k *known) rebuilt() seen {
	s := seen{map[string]*Topic{}, map[string]*Subscription{}, map[string][]*Subscription{}}
	ids := map[string]bool{}
	for _, x := range k.topics {
		if !x.Value.Deleting {
			s.topics[auth.Fold(x.Value.Name)] = &x.Value.Topic
			ids[x.Value.ID] = true
		}
	}
	for _, x := range k.subscriptions {
		if x.Value.Source.Hub != "" || ids[x.Value.SourceID] {
			s.subscriptions[x.Value.ID] = &x.Value.Subscription
			s.bySource[x.Value.SourceID] = append(s.bySource[x.Value.SourceID], &x.Value.Subscription)
		}
	}
	for _, list := range s.bySource {
		slices.SortFunc(list, func(x, y *Subscription) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	}
	return s
}

// look copies what is seen of a snapshot, by every way there is.
func look(t *rapid.T, of Snapshot) seen {
	s := seen{maps.Clone(of.Topics), map[string]*Subscription{}, maps.Clone(of.BySource)}
	for one := range of.Subscriptions.All() {
		s.subscriptions[one.ID] = one
		testkit.MustEqual(t, of.Subscriptions.Get(one.ID), one, "by its ID")
	}
	testkit.MustEqual(t, of.Subscriptions.Len(), len(s.subscriptions), "by count")
	testkit.MustEqual(t, of.Subscriptions.Get("nobody's"), nil, "of an ID that nobody has")
	for id, list := range s.bySource {
		s.bySource[id] = slices.Clone(list)
	}
	return s
}

func same(x, y seen) bool {
	return maps.Equal(x.topics, y.topics) && maps.Equal(x.subscriptions, y.subscriptions) &&
		maps.EqualFunc(x.bySource, y.bySource, slices.Equal[[]*Subscription])
}

// Whatever comes, in whatever portions: readers see exactly what is known, and what they hold never
// changes. Listeners are called when there is something new to see, and only then.
func TestReadersSeeWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newView(func(*Topic) (eventlog.Partition, error) { return nil, nil })
		heard := 0
		v.listeners.Add(func() { heard++ })
		k := known{topics: map[string]mirror.Item[*topicRecord]{}, subscriptions: map[string]mirror.Item[*record]{}}
		type held struct {
			live *live
			was  seen
		}
		var all []held
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before, heardBefore := v.live.Load(), heard
			if rapid.Bool().Draw(t, "topics") {
				v.showTopics(portion(t, k.nextTopic))
			} else {
				v.showSubscriptions(portion(t, k.nextSubscription))
			}
			after := v.live.Load()
			now := look(t, after.Snapshot)
			if !same(now, k.rebuilt()) {
				t.Fatalf("readers see %v\nknown is %v", now, k.rebuilt())
			}
			if len(after.logs) != len(after.Topics) {
				t.Fatalf("%d logs of %d topics", len(after.logs), len(after.Topics))
			}
			testkit.MustEqual(t, (before == after), (heard == heardBefore),
				"listeners were not called, or in vain")
			all = append(all, held{after, now})
		}
		for _, h := range all {
			if !same(look(t, h.live.Snapshot), h.was) {
				t.Fatal("an old snapshot was changed")
			}
		}
	})
}

func TestDeadlines(t *testing.T) {
	d := newDeadlines()
	now := time.Now()
	d.set("never", time.Time{})
	for i, at := range []int{3, 1, 2} {
		d.set(fmt.Sprint("in ", at), now.Add(time.Duration(at)*time.Minute))
		if woken := len(d.sooner) == 1; woken != (i < 2) {
			t.Errorf("%d: woken %v", at, woken)
		} else if woken {
			<-d.sooner
		}
	}
	for i := range 10 {
		d.set("in 3", now.Add(time.Duration(i)*time.Hour))
		d.set(fmt.Sprint("forgotten ", i), now.Add(time.Hour))
		d.set(fmt.Sprint("forgotten ", i), time.Time{})
	}
	d.set("in 3", now.Add(3*time.Minute))
	testkit.Equal(t, len(d.all), 3, "are noted")
	if keys, next := d.due(now); keys != nil || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("got %v, %v", keys, next)
	}
	if keys, next := d.due(now.Add(2 * time.Minute)); !slices.Equal(keys, []string{"in 1", "in 2"}) || !next.Equal(now.Add(3*time.Minute)) {
		t.Errorf("got %v, %v", keys, next)
	}
	if keys, next := d.due(now.Add(time.Hour)); len(keys) != 1 || !next.IsZero() || len(d.all) != 0 {
		t.Errorf("got %v, %v", keys, next)
	}
}

// What is deleted, or ends later than was said at first, costs no memory until it would have ended:
// there are those who prolong, or make and delete, subscriptions for years.
func TestDeadlinesOfWhatIsGone(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	expiring := func(years int) Settings {
		return with(func(s *Settings) { s.Expires = time.Date(2200+years, 1, 1, 0, 0, 0, 0, time.UTC) })
	}
	for i := range 10 {
		name := fmt.Sprintf("sub-%d", i)
		mustCreate(t, k, topic("orders"), name, expiring(i))
		testkit.Must(t, testkit.Err(k.Ensure(t.Context(), topic("orders"), "prolonged", expiring(i))))
		testkit.Must(t, k.Delete(t.Context(), topic("orders"), name))
	}
	testkit.Equal(t, len(k.view.deadlines.all), 1, "deadlines of one subscription")
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	testkit.Equal(t, len(k.view.deadlines.all), 0, "deadlines of no subscription")
}

// Who is woken too early, since a lapse could not be stored while somebody else prolonged it, notes
// the right moment again.
func TestDeadlineIsNotLost(t *testing.T) {
	k := newYard(t).open(t, Config{}, "orders")
	ends := time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
	mustCreate(t, k, topic("orders"), "mailer", with(func(s *Settings) { s.Expires = ends }))
	key := subscriptionKey(topic("orders"), "mailer")
	k.view.deadlines.set(key, time.Now())
	if keys, _ := k.view.deadlines.due(time.Now()); !slices.Equal(keys, []string{key}) {
		t.Fatalf("due: %v", keys)
	}
	k.lapse(t.Context(), key)
	if _, next := k.view.deadlines.due(time.Now()); !next.Equal(ends) {
		t.Errorf("next: %v", next)
	}
}

// G1: thousands of subscriptions of one topic can be made one by one, by somebody who waits for
// them, and deleted with their topic. Were each change to build everything anew, it would take
// minutes; over servers, which take some milliseconds for each, that would not show.
func TestThousandsOfSubscriptions(t *testing.T) {
	const many = 5_000
	y := newYard(t)
	k := y.open(t, Config{})
	its := mustTopic(t, k, "orders")
	began := time.Now()
	for i := range many {
		mustCreate(t, k, topic("orders"), fmt.Sprintf("sub-%d", i), hook(example))
	}
	created := time.Since(began)
	testkit.MustEqual(t, len(k.Snapshot().BySource[its.ID]), many, "there")
	began = time.Now()
	for i := range 100 {
		testkit.Must(t, testkit.Err(k.Update(t.Context(), topic("orders"), fmt.Sprintf("sub-%d", 47*i), change(func(s *Settings) { s.MaxEvents = 2 }))))
	}
	updated := time.Since(began)
	began = time.Now()
	k = y.open(t, Config{})
	opened := time.Since(began)
	checkSnapshot(t, k.Snapshot())
	began = time.Now()
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	deleted := time.Since(began)
	t.Logf("%d created in %v, 100 updated in %v, opened in %v, deleted in %v", many, created, updated, opened, deleted)
	if limit := 30 * time.Second; !storagetest.OverServers() && (created > limit || opened > limit || deleted > limit) {
		t.Errorf("that is too slow")
	}
	testkit.Equal(t, k.Snapshot().Subscriptions.Len(), 0, "are left")
}

// R3: what one more subscription costs does not follow how many there are: of a hundred thousand it copies
// hundreds.
func TestOneMoreAmongAHundredThousand(t *testing.T) {
	allocated := func(many int) int64 {
		v := newView(func(*Topic) (eventlog.Partition, error) { return nil, nil })
		updates := make([]mirror.Update[*record], many+100)
		for i := range updates {
			r := &record{Subscription: Subscription{
				ID: newID(), Name: fmt.Sprint("sub-", i), Source: Source{Hub: "hub"}, SourceID: fmt.Sprint("hub-", i%100), Created: time.Unix(int64(i), 0),
			}}
			updates[i].Key, updates[i].New = r.key(), mirror.Item[*record]{Key: r.key(), Revision: 1, Value: r}
		}
		v.showSubscriptions(updates[:many])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range 100 {
			v.showSubscriptions(updates[many+i : many+i+1])
		}
		runtime.ReadMemStats(&after)
		testkit.Equal(t, v.live.Load().Subscriptions.Len(), many+100, "subscriptions")
		return int64(after.TotalAlloc-before.TotalAlloc) / 100
	}
	few, many := allocated(1_000), allocated(100_000)
	t.Logf("bytes that one more allocates: %d among 1,000, %d among 100,000", few, many)
	testkit.That(t, many < few+64<<10, "one more allocates %d bytes among 100,000, and %d among 1,000", many, few)
}

// A topic with thousands of subscriptions is deleted in one go, on a slow disk too.
func TestDeletionOfThousandsOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{})
		its := mustTopic(t, k, "orders")
		made := mustCreate(t, k, topic("orders"), "sub-0", hook(example))
		for i := 1; i < 8000; i++ {
			made.Name, made.ID = fmt.Sprintf("sub-%d", i), newID()
			r := &record{Subscription: made}
			testkit.Must(t, testkit.Err(y.Memory.CompareAndSet(t.Context(), r.key(), 0, encode(r))))
		}
		began := time.Now()
		// It does many deletions at once, as one on a disk does.
		k = y.open(t, Config{Meta: y.on(metatest.OpDelete, func(metatest.Op) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})})
		testkit.Check(t, k.DeleteTopic(t.Context(), "orders"))
		if took := time.Since(began); took > finishTimeout/2 {
			t.Errorf("it took %v", took)
		}
		expectNothingOf(t, y, its, []string{LogOf(&its).Log})
	})
}
