package entries

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// awaitChange reads a watch until a key is as wanted.
func awaitChange(t *testing.T, w meta.Watcher, key string, is func(meta.Change) bool) {
	t.Helper()
	for {
		changes, err := w.Next()
		testkit.Must(t, err)
		for _, c := range changes {
			if c.Key == key && is(c) {
				return
			}
		}
	}
}

func beginWatch(t *testing.T, s meta.Store) meta.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), "")
	testkit.Must(t, err)
	_, err = w.Next()
	testkit.Must(t, err)
	return w
}

func set(t *testing.T, s meta.Store, key string, expected meta.Revision, v string) meta.Revision {
	t.Helper()
	return testkit.Value(s.CompareAndSet(t.Context(), key, expected, []byte(v)))(t)
}

func isValue(v string) func(meta.Change) bool {
	return func(c meta.Change) bool { return !c.Deleted && string(c.Value) == v }
}

// C1, C5: a node that is cut off reads what it knows, refuses changes without having made them, and
// goes on by itself: its watchers are told what changed meanwhile, deletions too.
func TestANodeIsCutOff(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	here := open(t, servers.Dial(t, 0), cfg)
	cfg.patience = 3 * time.Second
	cut := servers.DialOnly(t, 2)
	there := open(t, cut, cfg)
	changes, goes := set(t, here, "hubs/changes", 0, "1"), set(t, here, "records/a/goes", 0, "1")
	testkit.Must(t, there.Fresh(t.Context(), ""))
	w := beginWatch(t, there)

	servers.Stop(t, 2)
	testkit.Eventually(t, "the connection stays", func() bool { return !cut.IsConnected() })
	set(t, here, "hubs/changes", changes, "2")
	testkit.Must(t, here.Delete(t.Context(), "records/a/goes", goes))
	set(t, here, "records/b/comes", 0, "1")
	if e, err := there.Get(t.Context(), "hubs/changes"); err != nil || string(e.Value) != "1" {
		t.Errorf("cut off it reads %q, %v", e.Value, err)
	}
	var refused sync.WaitGroup
	refused.Go(func() {
		testkit.ErrorIs(t, testkit.Err(there.CompareAndSet(t.Context(), "hubs/new", 0, nil)), meta.ErrUnavailable, "set")
	})
	refused.Go(func() { testkit.ErrorIs(t, there.Fresh(t.Context(), "hubs/"), meta.ErrUnavailable, "fresh") })
	refused.Wait()

	servers.Restart(t, 2)
	awaitChange(t, w, "records/b/comes", isValue("1"))
	testkit.Eventually(t, "the node is not up to date", func() bool { return there.Fresh(t.Context(), "") == nil })
	for key, want := range map[string]string{"hubs/changes": "2", "records/b/comes": "1"} {
		if e, err := there.Get(t.Context(), key); err != nil || string(e.Value) != want {
			t.Errorf("%s is %q, %v", key, e.Value, err)
		}
	}
	for _, key := range []string{"records/a/goes", "hubs/new"} {
		testkit.ErrorIs(t, testkit.Err(there.Get(t.Context(), key)), meta.ErrNotFound, "%s", key)
	}
}

// C1: a node that was cut off for longer than deletions are remembered tells its watchers of them
// all the same.
func TestANodeIsCutOffForLong(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	cfg.deletionLife = time.Second
	here, cut := open(t, servers.Dial(t, 0), cfg), servers.DialOnly(t, 2)
	there := open(t, cut, cfg)
	goes, stays := set(t, here, "hubs/goes", 0, "1"), set(t, here, "hubs/stays", 0, "1")
	testkit.Must(t, there.Fresh(t.Context(), ""))
	w := beginWatch(t, there)
	servers.Stop(t, 2)
	testkit.Eventually(t, "the connection stays", func() bool { return !cut.IsConnected() })
	testkit.Must(t, here.Delete(t.Context(), "hubs/returns", set(t, here, "hubs/returns", 0, "1")))
	testkit.Must(t, here.Delete(t.Context(), "hubs/goes", goes))
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	testkit.Eventually(t, "the deletion is not forgotten", func() bool {
		st, err := js.Stream(t.Context(), here.layout.stream(definitions))
		if err != nil {
			return false
		}
		_, err = st.GetLastMsgForSubject(t.Context(), here.layout.subject(definitions, "hubs/goes"))
		return errors.Is(err, jetstream.ErrMsgNotFound)
	})
	set(t, here, "hubs/returns", 0, "2") // it expects the deletion, which is not there any more
	servers.Restart(t, 2)
	awaitChange(t, w, "hubs/goes", func(c meta.Change) bool { return c.Deleted && c.Revision > goes })
	if e, err := there.Get(t.Context(), "hubs/stays"); err != nil || e.Revision != stays {
		t.Errorf("got %+v, %v", e, err)
	}
	second := set(t, there, "hubs/goes", 0, "2")
	testkit.That(t, second > goes+1, "created again at %d after %d", second, goes)
}

// C1: a change of a node that died before it could announce it is found, by who watches within about
// a second; and so is one that is too large to be announced whole.
func TestChangesThatNobodyAnnounces(t *testing.T) {
	servers := natstest.Shared(t, 1)
	cfg := yard(t, servers)
	conn := servers.Dial(t, 0)
	here, there := open(t, conn, cfg), open(t, servers.Dial(t, 0), cfg)
	w := beginWatch(t, there)
	m := message{kind: value, key: "hubs/orders", value: []byte("1")}
	testkit.Must(t, testkit.Err(here.request(t.Context(), here.layout.subject(definitions, m.key), m.encode(), here.condition(m))))
	awaitChange(t, w, "hubs/orders", isValue("1"))
	testkit.Must(t, here.Fresh(t.Context(), ""))
	large := strings.Repeat("x", 100<<10)
	set(t, here, "hubs/large", 0, large)
	awaitChange(t, w, "hubs/large", isValue(large))
}

// C5: a server that restarts loses nothing, and all goes on by itself.
func TestTheServerRestarts(t *testing.T) {
	servers := natstest.Shared(t, 1)
	s := open(t, servers.Dial(t, 0), yard(t, servers))
	revision := set(t, s, "hubs/orders", 0, "1")
	servers.Stop(t, 0)
	servers.Restart(t, 0)
	var err error
	testkit.Eventually(t, "it does not go on", func() bool {
		_, err = s.CompareAndSet(t.Context(), "hubs/orders", revision, []byte("2"))
		return !errors.Is(err, meta.ErrUnavailable)
	})
	testkit.Must(t, err)
	if e, err := s.Get(t.Context(), "hubs/orders"); err != nil || string(e.Value) != "2" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// C1: all servers at once may stop, and what was acknowledged is there when they are back.
func TestAllServersRestart(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	here, there := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 1), cfg)
	want := map[string]meta.Revision{}
	for i := range 30 {
		key := fmt.Sprintf("records/log%d/id/lease/0", i)
		want[key] = set(t, here, key, 0, "1")
	}
	for i := range 3 {
		servers.Stop(t, i)
	}
	for i := range 3 {
		servers.Restart(t, i)
	}
	for _, s := range []*Store{here, there} {
		testkit.Eventually(t, "it does not go on", func() bool { return s.Fresh(t.Context(), "") == nil })
		for key, revision := range want {
			if e, err := s.Get(t.Context(), key); err != nil || e.Revision != revision {
				t.Errorf("%s is at %d, %v, acknowledged was %d", key, e.Revision, err, revision)
			}
		}
	}
	fresh := open(t, servers.Dial(t, 2), cfg)
	testkit.Equal(t, len(testkit.Value(fresh.List(t.Context(), "records/"))(t)), len(want), "entries")
}

// A large yard is loaded in several batches, and keeps the number of its buckets.
func TestLoadingManyEntries(t *testing.T) {
	servers := natstest.Shared(t, 1)
	cfg := yard(t, servers)
	s := open(t, servers.Dial(t, 0), cfg)
	const entries = 2*batchMessages + 500
	next := make(chan int)
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			for i := range next {
				testkit.Check(t, testkit.Err(s.CompareAndSet(t.Context(), fmt.Sprintf("hubs/%05d", i), 0, []byte(strings.Repeat("v", 100)))))
			}
		})
	}
	for i := range entries {
		next <- i
	}
	close(next)
	writers.Wait()
	e := testkit.Value(s.Get(t.Context(), "hubs/00007"))(t)
	testkit.Must(t, s.Delete(t.Context(), "hubs/00007", e.Revision))

	other := cfg
	other.Buckets = 7
	again := open(t, servers.Dial(t, 0), other)
	list := testkit.Value(again.List(t.Context(), "hubs/"))(t)
	testkit.Equal(t, len(list), entries-1, "entries")
	testkit.Equal(t, again.layout.state, cfg.Buckets, "buckets of state")
}
