package topics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// history is what a store goes through, as its watch tells it.
type history struct {
	revision meta.Revision
	watched  []sighting
}

// next draws a change of one of a few topics and subscriptions.
func (h *history) next(t *rapid.T) sighting {
	h.revision++
	n := rapid.IntRange(0, 2).Draw(t, "topic")
	s := sighting{revision: h.revision, watched: true}
	if rapid.Bool().Draw(t, "is topic") {
		r := &topicRecord{Topic: Topic{Name: fmt.Sprintf("Topic-%d", n), ID: fmt.Sprintf("id-%d-%d", n, rapid.IntRange(0, 1).Draw(t, "incarnation"))}}
		r.Deleting = rapid.IntRange(0, 3).Draw(t, "deleting") == 0
		s.key, s.topic = r.key(), r
	} else {
		r := &record{Subscription: Subscription{
			Name: fmt.Sprintf("sub-%d", rapid.IntRange(0, 4).Draw(t, "sub")), ID: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "id")),
			Source: Source{Topic: fmt.Sprintf("Topic-%d", n)}, SourceID: fmt.Sprintf("id-%d-%d", n, rapid.IntRange(0, 1).Draw(t, "source")),
		}}
		if n == 2 {
			r.Source, r.SourceID = Source{Hub: "hub"}, "hub-id"
		}
		r.ID = r.SourceID + r.Name + r.ID
		r.Created = time.Unix(int64(len(r.ID)*7+int(r.ID[len(r.ID)-1])%3), 0)
		s.key, s.sub = r.key(), r
	}
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		s.gone, s.topic, s.sub = true, nil, nil
	}
	h.watched = append(h.watched, s)
	return s
}

// rebuilt is what readers should see of what is known.
func rebuilt(seen map[string]sighting) Snapshot {
	s := Snapshot{map[string]*Topic{}, map[string]*Subscription{}, map[string][]*Subscription{}}
	ids := map[string]bool{}
	for _, x := range seen {
		if x.topic != nil && !x.topic.Deleting {
			s.Topics[auth.Fold(x.topic.Name)] = &x.topic.Topic
			ids[x.topic.ID] = true
		}
	}
	for _, x := range seen {
		if x.sub != nil && (x.sub.Source.Hub != "" || ids[x.sub.SourceID]) {
			s.Subscriptions[x.sub.ID] = &x.sub.Subscription
			s.BySource[x.sub.SourceID] = append(s.BySource[x.sub.SourceID], &x.sub.Subscription)
		}
	}
	for _, list := range s.BySource {
		slices.SortFunc(list, func(x, y *Subscription) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	}
	return s
}

func sameSnapshot(x, y Snapshot) bool {
	return maps.Equal(x.Topics, y.Topics) && maps.Equal(x.Subscriptions, y.Subscriptions) &&
		maps.EqualFunc(x.BySource, y.BySource, slices.Equal[[]*Subscription])
}

func copySnapshot(s Snapshot) Snapshot {
	s.Topics, s.Subscriptions, s.BySource = maps.Clone(s.Topics), maps.Clone(s.Subscriptions), maps.Clone(s.BySource)
	for id, list := range s.BySource {
		s.BySource[id] = slices.Clone(list)
	}
	return s
}

// Whatever comes, in whatever portions, late or twice: readers see exactly what is known, and
// what they hold never changes.
func TestReadersSeeWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRegistry(func(*Topic) (eventlog.Partition, error) { return nil, nil })
		watched := 0
		r.listeners.Add(func() { watched++ })
		var h history
		type held struct {
			live *live
			was  Snapshot
		}
		var all []held
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var news []sighting
			for range rapid.IntRange(1, 4).Draw(t, "portion") {
				news = append(news, h.next(t))
			}
			before, reportedBefore := r.live.Load(), watched
			switch rapid.IntRange(0, 4).Draw(t, "how") {
			case 0: // our own change, told to us by the watch first
				own := news[0]
				own.watched = false
				r.begin()
				r.apply(news...)
				r.apply(own)
				r.end()
			case 1: // a watch that begins anew tells old news
				r.begin()
				r.apply(append(slices.Clone(news), h.watched[rapid.IntRange(0, len(h.watched)-1).Draw(t, "late")])...)
				r.end()
			case 2: // something was deleted while nobody watched
				r.apply(news...)
				if known := r.known(func(string) bool { return true }); len(known) > 0 {
					r.drop(known[:1])
				}
			default:
				r.apply(news...)
			}
			after := r.live.Load()
			if !sameSnapshot(after.Snapshot, rebuilt(r.seen)) {
				t.Fatalf("readers see %v\nknown is %v", after.Snapshot, rebuilt(r.seen))
			}
			if len(after.logs) != len(after.Topics) {
				t.Fatalf("%d logs of %d topics", len(after.logs), len(after.Topics))
			}
			if (before == after) != (watched == reportedBefore) {
				t.Fatal("a change was not told")
			}
			all = append(all, held{after, copySnapshot(after.Snapshot)})
		}
		for _, h := range all {
			if !sameSnapshot(h.live.Snapshot, h.was) {
				t.Fatal("an old snapshot was changed")
			}
		}
	})
}

// Nothing older overwrites anything newer, and what was deleted does not come back.
func TestOldNewsIsNoNews(t *testing.T) {
	r := newRegistry(func(*Topic) (eventlog.Partition, error) { return nil, nil })
	at := func(revision meta.Revision, tag string) sighting {
		made := &topicRecord{Topic: Topic{Name: "orders", ID: "id", Tags: map[string]string{"": tag}}}
		return sighting{key: made.key(), revision: revision, topic: made}
	}
	gone := func(revision meta.Revision, watched bool) sighting {
		return sighting{key: topicKey("orders"), revision: revision, gone: true, watched: watched}
	}
	expect := func(tag string) {
		t.Helper()
		got := ""
		if there := r.live.Load().Topics["orders"]; there != nil {
			got = there.Tags[""]
		}
		if got != tag {
			t.Errorf("got %q, want %q", got, tag)
		}
	}
	r.apply(at(5, "five"))
	r.apply(at(4, "four"))
	expect("five")
	r.apply(gone(5, false)) // by ourselves
	r.apply(at(5, "five"))  // a late watch
	expect("")
	r.begin()
	r.apply(at(7, "seven"))
	r.apply(gone(8, true))
	r.apply(at(7, "seven")) // our own change, known last
	expect("")
	r.end()
	if len(r.seen) != 0 {
		t.Errorf("still remembered: %v", r.seen)
	}
	r.apply(at(9, "nine"))
	expect("nine")
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
	if len(d.all) != 3 {
		t.Errorf("%d are noted", len(d.all))
	}
	if keys, next := d.due(now); keys != nil || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("got %v, %v", keys, next)
	}
	if keys, next := d.due(now.Add(2 * time.Minute)); !slices.Equal(keys, []string{"in 1", "in 2"}) || !next.Equal(now.Add(3*time.Minute)) {
		t.Errorf("got %v, %v", keys, next)
	}
	if keys, next := d.due(now.Add(time.Hour)); len(keys) != 1 || !next.IsZero() || len(d.of) != 0 {
		t.Errorf("got %v, %v", keys, next)
	}
}

// What is deleted, or ends later than was said at first, costs no memory until it would have ended:
// there are those who prolong, or make and delete, subscriptions for years.
func TestDeadlinesOfWhatIsGone(t *testing.T) {
	k := newYard(t).open(t, Config{})
	mustTopic(t, k, "orders")
	expiring := func(years int) Settings {
		return with(func(s *Settings) { s.Expires = time.Date(2200+years, 1, 1, 0, 0, 0, 0, time.UTC) })
	}
	for i := range 10 {
		name := fmt.Sprintf("sub-%d", i)
		mustCreate(t, k, topic("orders"), name, expiring(i))
		if _, err := k.Ensure(t.Context(), topic("orders"), "prolonged", expiring(i)); err != nil {
			t.Fatal(err)
		}
		if err := k.Delete(t.Context(), topic("orders"), name); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(k.known.deadlines.all); n != 1 {
		t.Errorf("%d deadlines of one subscription", n)
	}
	if err := k.DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if n := len(k.known.deadlines.all); n != 0 {
		t.Errorf("%d deadlines of no subscription", n)
	}
}

// Who is woken too early, since a lapse could not be stored while somebody else prolonged it, notes
// the right moment again.
func TestDeadlineIsNotLost(t *testing.T) {
	k := newYard(t).open(t, Config{})
	mustTopic(t, k, "orders")
	ends := time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
	mustCreate(t, k, topic("orders"), "mailer", with(func(s *Settings) { s.Expires = ends }))
	key := subscriptionKey(topic("orders"), "mailer")
	k.known.deadlines.set(key, time.Now())
	if keys, _ := k.known.deadlines.due(time.Now()); !slices.Equal(keys, []string{key}) {
		t.Fatalf("due: %v", keys)
	}
	k.lapse(t.Context(), key)
	if _, next := k.known.deadlines.due(time.Now()); !next.Equal(ends) {
		t.Errorf("next: %v", next)
	}
}
