package natskv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/natskv"
)

// Instances count in one entry while the server that leads the bucket is stopped. Each
// addition that was answered is there afterwards, and each that was not is found out by
// reading again; a watcher hears of what comes after the outage.
func TestNothingAcknowledgedIsLostWhenAServerStops(t *testing.T) { // P3
	servers := startCluster(t)
	cfg := natskv.Config{Bucket: newBucket(), Replicas: 3}
	store := func() processor.Store { return open(t, dial(t, servers...), cfg) }
	changed := watch(t, store())

	var workers sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	counts := make([]counter, 4)
	for i := range counts {
		c := &counts[i]
		c.name, c.store, c.warm = fmt.Sprint(i), store(), make(chan struct{})
		workers.Go(func() { c.run(ctx) })
	}
	for i := range counts {
		<-counts[i].warm
	}
	stopServer(servers[leaderOf(t, servers, cfg.Bucket)])
	workers.Wait()

	for i := range counts {
		testkit.Must(t, counts[i].err)
	}
	s := store()
	entries, err := s.Entries(ctx, group, "")
	if err != nil || len(entries) != 1 || string(entries[0].Value[:len(total())]) != total() {
		t.Fatalf("the count is %s, %v, want %s", entries, err, total())
	}
	for drained := false; !drained; { // what was told until now
		select {
		case <-changed:
		default:
			drained = true
		}
	}
	testkit.Must(t, testkit.Err(s.Put(ctx, group, processor.Entry{Key: "presence/late"})))
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the watcher hears nothing after the outage")
	}
}

const additions = 60

func total() string { return fmt.Sprintf("%06d", 4*additions) }

// counter adds to the entry; warm is closed when it has begun.
type counter struct {
	name  string
	store processor.Store
	warm  chan struct{}
	err   error
}

func (c *counter) run(ctx context.Context) {
	for n := range additions {
		if c.err = c.addOnce(ctx, n); c.err != nil {
			return
		}
		if n == additions/6 {
			close(c.warm)
		}
	}
}

// addOnce adds one, and no more than one, whatever happens to answers: the value tells
// for each counter how far it has come.
func (c *counter) addOnce(ctx context.Context, n int) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("addition %d: %w", n, err)
		}
		entries, err := c.store.Entries(ctx, group, "")
		if err != nil {
			pause(ctx) // no leader at the moment
			continue
		}
		f, sum, done := decode(entries)
		if done[c.name] > n {
			return nil // the answer was lost, the addition was not
		}
		done[c.name] = n + 1
		f.Value = encode(sum+1, done)
		if c.put(ctx, f) == nil {
			return nil
		}
	}
}

// pause keeps a loop that asks the cluster from eating the processor that the cluster needs.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// put does not wait for ever for the answer of a server that is gone.
func (c *counter) put(ctx context.Context, f processor.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, patience/20)
	defer cancel()
	_, err := c.store.Put(ctx, group, f)
	return err
}

func decode(entries []processor.Entry) (processor.Entry, int, map[string]int) {
	done := map[string]int{}
	if len(entries) == 0 {
		return processor.Entry{Key: "count"}, 0, done
	}
	var sum, a, b, c, d int
	fmt.Sscanf(string(entries[0].Value), "%d %d %d %d %d", &sum, &a, &b, &c, &d)
	return entries[0], sum, map[string]int{"0": a, "1": b, "2": c, "3": d}
}

func encode(sum int, done map[string]int) []byte {
	return fmt.Appendf(nil, "%06d %d %d %d %d", sum, done["0"], done["1"], done["2"], done["3"])
}

// watch tells of changes until the test ends.
func watch(t *testing.T, s processor.Store) <-chan struct{} {
	t.Helper()
	changed, ready, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		testkit.Check(t, s.(processor.Watcher).Watch(ctx, group, func() { close(ready) }, changed))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-ready:
	case <-ended:
	}
	return changed
}
