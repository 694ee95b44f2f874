package entries_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// openOn gives a store of a node over simulated servers, until stop is called.
func openOn(t *testing.T, servers *model.Cluster, node string) (s *entries.Store, stop func()) {
	t.Helper()
	conn := servers.Conn(node)
	s = testkit.Value(entries.Over(conn, entries.Config{Yard: "y", Buckets: 2, MaxGaps: 4, Log: testkit.Quiet()}))(t)
	ended := make(chan error, 2)
	go func() { ended <- s.Run(context.Background()) }()
	go func() { ended <- entries.Tidy(context.Background(), s) }()
	stop = sync.OnceFunc(func() {
		testkit.Check(t, s.Close())
		testkit.Check(t, <-ended, "run or tidy")
		testkit.Check(t, <-ended, "run or tidy")
		conn.Close()
	})
	t.Cleanup(stop)
	for {
		err := s.Load(t.Context())
		if !errors.Is(err, meta.ErrUnavailable) {
			testkit.Must(t, err)
			return s, stop
		}
	}
}

// The contract over simulated servers: what is simulated here is what servers do.
func TestContractOnTheModel(t *testing.T) {
	for name, faults := range map[string]model.Faults{
		"at once": {},
		"lagging": {Delay: time.Millisecond, Lag: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			one := func(t *testing.T) meta.Store {
				s, _ := openOn(t, model.New(1, faults), "a")
				return s
			}
			metatest.Run(t, one)
			metatest.RunNodes(t, func(t *testing.T) (here, there meta.Store) {
				servers := model.New(1, faults)
				here, _ = openOn(t, servers, "a")
				there, _ = openOn(t, servers, "b")
				return here, there
			})
		})
	}
}

// C1, C2, C5: nodes count keys up, each number once, while answers, announcements and nodes are lost, and
// reads are old: what was acknowledged is never overwritten, what was refused is nowhere, and all see
// the same in the end.
func TestCountersInAStorm(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { countInAStorm(t, seed) })
		})
	}
}

// counter is one key, and who was told to have written which of its values.
type counter struct {
	mu      sync.Mutex
	acked   map[int]string // guarded by mu
	refused map[string]bool
}

func countInAStorm(t *testing.T, seed uint64) {
	servers, names := model.New(seed, model.Faults{}), []string{"a", "b", "c"}
	r := rand.New(rand.NewPCG(seed, 3))
	counters := map[string]*counter{}
	for _, key := range []string{"hubs/x", "records/log/0/lease/1", "records/log/0/lease/2"} {
		counters[key] = &counter{acked: map[int]string{}, refused: map[string]bool{}}
	}
	over := make(chan struct{})
	quiet := map[string]meta.Revision{}
	var counting sync.WaitGroup
	var stores []*entries.Store
	for _, name := range names {
		s, stop := openOn(t, servers, name)
		defer stop()
		stores = append(stores, s)
		for _, key := range []string{"hubs/quiet-" + name, "records/log/0/quiet/" + name} {
			quiet[key] = testkit.Value(s.CompareAndSet(t.Context(), key, 0, []byte("as it was")))(t)
		}
		for key, c := range counters {
			counting.Go(func() { c.count(t, s, key, name, over) })
		}
	}
	chance := func() float64 { return []float64{0, 0, 0.02, 0.2}[r.IntN(4)] }
	for range 15 {
		servers.SetFaults(model.Faults{
			Delay: time.Duration(r.IntN(20)) * time.Millisecond, Lag: time.Duration(r.IntN(3)) * 300 * time.Millisecond,
			Lost: chance(), AckLost: chance(), Twice: chance(), Late: chance(), Unavailable: chance(), AnnouncementLost: chance() * 4,
		})
		switch node := names[r.IntN(3)]; r.IntN(4) {
		case 0:
			servers.CutOff(node, time.Duration(r.IntN(12))*time.Second)
		case 1:
			servers.Freeze(node, time.Duration(r.IntN(12))*time.Second)
		case 2:
			servers.StopServers(time.Duration(r.IntN(6)) * time.Second)
		}
		time.Sleep(time.Duration(r.IntN(8)) * time.Second)
	}
	servers.SetFaults(model.Faults{})
	time.Sleep(time.Minute)
	close(over)
	counting.Wait()
	for key, revision := range quiet { // it was stored again, and nobody can tell
		for _, s := range stores {
			there := testkit.Value(s.Get(t.Context(), key))(t)
			testkit.That(t, there.Revision == revision && string(there.Value) == "as it was", "%s is %s at %d, and was made at %d", key, there.Value, there.Revision, revision)
		}
		s := stores[r.IntN(3)]
		next := testkit.Value(s.CompareAndSet(t.Context(), key, revision, []byte("changed")))(t)
		testkit.Must(t, s.Delete(t.Context(), key, next))
	}
	for key, c := range counters {
		testkit.That(t, len(c.acked) > 20, "%s was counted only %d times", key, len(c.acked))
		for _, s := range stores {
			c.check(t, s, key)
		}
	}
}

// count raises the number that a key holds, as often as it can. A value is the number and who wrote it,
// so that each write can be told from all others.
func (c *counter) count(t *testing.T, s *entries.Store, key, who string, over <-chan struct{}) {
	highest := 0
	for try := 0; ; try++ {
		select {
		case <-over:
			return
		case <-time.After(100 * time.Millisecond):
		}
		there, err := s.Get(t.Context(), key)
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			continue
		}
		n, by := c.read(t, there)
		testkit.That(t, n >= highest, "%s reads %d at %s after %d", who, n, key, highest)
		c.seen(t, key, n, by)
		highest = n
		mine := fmt.Sprintf("%d %s.%d", n+1, who, try)
		_, err = s.CompareAndSet(t.Context(), key, there.Revision, []byte(mine))
		c.mu.Lock()
		switch {
		case err == nil:
			testkit.That(t, c.acked[n+1] == "" || c.acked[n+1] == mine, "%d of %s is %q and %q", n+1, key, c.acked[n+1], mine)
			c.acked[n+1] = mine
		case !errors.Is(err, meta.ErrUncertain):
			c.refused[mine] = true
		}
		c.mu.Unlock()
	}
}

func (c *counter) read(t *testing.T, there meta.Entry) (n int, value string) {
	if there.Revision == 0 {
		return 0, ""
	}
	var who string
	_, err := fmt.Sscanf(string(there.Value), "%d %s", &n, &who)
	testkit.Must(t, err)
	return n, string(there.Value)
}

// seen compares what somebody reads with what others were told.
func (c *counter) seen(t *testing.T, key string, n int, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	testkit.That(t, !c.refused[value], "%q was refused, and is at %s", value, key)
	testkit.That(t, c.acked[n] == "" || c.acked[n] == value, "%s of %s is read as %q and was acknowledged as %q", strconv.Itoa(n), key, value, c.acked[n])
}

// check looks when nobody counts any more: nothing that was acknowledged is missing.
func (c *counter) check(t *testing.T, s *entries.Store, key string) {
	testkit.Check(t, s.Fresh(t.Context(), ""))
	there, err := s.Get(t.Context(), key)
	testkit.Check(t, err)
	n, value := c.read(t, there)
	c.seen(t, key, n, value)
	c.mu.Lock()
	defer c.mu.Unlock()
	for acked := range c.acked {
		testkit.That(t, acked <= n, "%s ends with %d, and %d was acknowledged", key, n, acked)
	}
}
