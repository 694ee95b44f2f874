package entries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

const (
	historyClients = 6 // two at each node
	// historyCalls is how many each of them makes while all is well, and again in each trouble.
	historyCalls = 10
)

// historyKeys are some of the definitions and of each bucket of state: what is changed less is behind by gaps.
var historyKeys = []string{"hubs/a", "hubs/b", "records/log/id/a", "records/log/id/b", "records/log/other/a"}

// registers is nodes whose clients change and read a few entries, and what they heard.
type registers struct {
	history.Registers
	servers *natstest.Servers
	nodes   []*Store
	again   atomic.Int64 // how often an entry was stored again
}

// C1, C2: entries that three nodes change by compare-and-set and read with fresh reads are linearizable,
// and their revisions rise with each change, while leaders step down, servers are killed and frozen, and old entries
// are stored again.
func TestEntriesAreLinearizable(t *testing.T) {
	r := &registers{servers: natstest.Shared(t, 3)}
	cfg := yard(t, r.servers)
	cfg.MaxGaps, cfg.tidyEvery = 4, 50*time.Millisecond
	for i := range 3 {
		r.nodes = append(r.nodes, r.open(t, r.servers.Dial(t, i), cfg))
	}
	control, layout := r.servers.Dial(t, 0), r.nodes[0].layout
	leader := func() int { return r.servers.Leader(t, control, layout.stream(layout.bucketOf(historyKeys[2]))) }
	r.work(t, "calm", func() {})
	r.work(t, "steps down", func() {
		for _, name := range layout.buckets() {
			if err := natstest.StepDown(control, layout.stream(name)); err != nil {
				t.Logf("step down: %v", err)
			}
		}
	})
	killed := leader()
	r.work(t, "killed", func() { r.servers.Kill(t, killed) })
	r.work(t, "back", func() { r.servers.Restart(t, killed) })
	frozen := leader()
	r.work(t, "frozen", func() { r.servers.Freeze(t, frozen) })
	r.work(t, "thawed", func() { r.servers.Thaw(t, frozen) })
	testkit.Check(t, r.Check())
	t.Logf("%d calls; entries were stored again %d times", r.Len(), r.again.Load())
	testkit.That(t, r.again.Load() > 0, "no entry was stored again: this proves nothing of that")
}

// open gives a node that keeps gaps few, and counts what it stores again for it.
func (r *registers) open(t *testing.T, conn *nats.Conn, cfg Config) *Store {
	s := open(t, conn, cfg)
	s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
		seq, err := s.request(ctx, subject, encoded, header)
		if err == nil && encoded[0] == againVersion {
			r.again.Add(1)
		}
		return seq, err
	}
	tidy(t, s)
	return s
}

// work has each client make its calls while something happens to the servers.
func (r *registers) work(t *testing.T, phase string, happens func()) {
	var all sync.WaitGroup
	for client := range historyClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), uint64(len(phase))))
			for made, n := 0, 0; made < historyCalls && t.Context().Err() == nil; n++ {
				text := fmt.Sprintf("%s %d/%d", phase, client, n)
				if r.call(t, client, historyKeys[random.IntN(len(historyKeys))], text, random.IntN(10)) {
					made++
					continue
				}
				select { // what is out of reach is tried again
				case <-t.Context().Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(all.Wait) // where what happens fails the test; the context has ended by then
	happens()
	all.Wait()
}

// call makes one call, by a number below 10, and records what was heard; false: nothing was.
func (r *registers) call(t *testing.T, client int, key, text string, which int) bool {
	s := r.nodes[client%len(r.nodes)]
	begun := r.Now()
	if which < 4 {
		if err := s.Fresh(t.Context(), prefixOf(key)); err != nil {
			r.expect(t, err, meta.ErrUnavailable)
			return false
		}
	}
	e, err := s.Get(t.Context(), key)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		r.expect(t, err, meta.ErrUnavailable)
		return false
	}
	if which < 4 {
		r.Read(client, begun, key, string(e.Value), int64(e.Revision))
		return true
	}
	begun = r.Now()
	var revision meta.Revision
	if which == 4 && e.Revision != 0 {
		text, err = "", s.Delete(t.Context(), key, e.Revision)
	} else {
		revision, err = s.CompareAndSet(t.Context(), key, e.Revision, []byte(text))
	}
	outcome := history.Done
	switch {
	case errors.Is(err, meta.ErrConflict):
		outcome = history.Conflict
	case errors.Is(err, meta.ErrUncertain):
		outcome = history.Unheard
	case err != nil:
		r.expect(t, err, meta.ErrUnavailable)
		return false
	}
	r.Change(client, begun, key, string(e.Value), text, outcome, int64(revision))
	return true
}

// expect reports an error of another kind, but for one of a test that has ended.
func (r *registers) expect(t *testing.T, err, want error) {
	if !errors.Is(err, context.Canceled) {
		testkit.ErrorIs(t, err, want)
	}
}

// prefixOf is the prefix of a key's neighbours.
func prefixOf(key string) string {
	for i := len(key) - 1; ; i-- {
		if key[i] == '/' {
			return key[:i+1]
		}
	}
}
