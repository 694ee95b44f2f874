package entries

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// snapshot gives all values by key, which have to come in order.
func snapshot(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all, last := map[string]string{}, ""
	testkit.Must(t, s.Snapshot(t.Context(), func(e meta.Entry) error {
		if e.Key <= last {
			t.Errorf("%s comes behind %s", e.Key, last)
		}
		all[e.Key], last = string(e.Value), e.Key
		return nil
	}))
	return all
}

// C7: what another node has seen acknowledged is in a snapshot, and no record without what it depends on,
// also while both come and go.
func TestASnapshotOfSeveralBuckets(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	here, there := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 1), cfg)
	for i := range 20 {
		set(t, there, fmt.Sprint("records/kept-", i, "/a"), 0, "1")
		testkit.Equal(t, len(snapshot(t, here)), i+1, "entries")
	}
	var churn sync.WaitGroup
	for n := range 2 {
		churn.Go(func() {
			for i := range 15 {
				name := fmt.Sprint("log-", n, "-", i)
				hub := set(t, there, "hubs/"+name, 0, "x")
				record := set(t, there, "records/"+name+"/a", 0, "x")
				set(t, there, fmt.Sprint("nodes/", n), 0, "x") // changes of these do not count
				testkit.Check(t, there.Delete(t.Context(), fmt.Sprint("nodes/", n), testkit.Value(there.Get(t.Context(), fmt.Sprint("nodes/", n)))(t).Revision))
				testkit.Check(t, there.Delete(t.Context(), "records/"+name+"/a", record))
				testkit.Check(t, there.Delete(t.Context(), "hubs/"+name, hub))
			}
		})
	}
	for range 10 {
		all := snapshot(t, here)
		for key := range all {
			if log, ok := strings.CutPrefix(key, "records/log-"); ok {
				log, _, _ = strings.Cut(log, "/")
				testkit.That(t, all["hubs/log-"+log] != "", "%s is there, and its hub is not", key)
			}
		}
	}
	churn.Wait()
	testkit.Equal(t, len(snapshot(t, here)), 20, "entries at the end")
}
