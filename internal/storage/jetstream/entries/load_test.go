package entries

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// load is three nodes that all count up one entry, by compare-and-set, while a test does harm to the
// servers.
type load struct {
	servers          *natstest.Servers
	nodes            []*Store
	acked, uncertain atomic.Int64
	stop             context.CancelFunc
	writers          sync.WaitGroup
}

const counted = "records/log/id/count"

// startLoad has the nodes write until finish, or until the test ends.
func startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{servers: natstest.Shared(t, 3)}
	cfg := yard(t, l.servers)
	for i := range 3 {
		l.nodes = append(l.nodes, open(t, l.servers.Dial(t, i), cfg))
	}
	set(t, l.nodes[0], counted, 0, "0")
	for _, s := range l.nodes {
		testkit.Must(t, s.Fresh(t.Context(), ""))
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	for i := range 6 {
		l.writers.Go(func() { l.write(t, ctx, l.nodes[i%3]) })
	}
	t.Cleanup(l.writers.Wait) // the context has ended by then
	return l
}

// write counts up until its context ends. Each change that was begun is seen to its end, since one
// that is broken off would be uncertain.
func (l *load) write(t *testing.T, ctx context.Context, s *Store) {
	for ctx.Err() == nil {
		_, err := increment(context.WithoutCancel(ctx), s, counted)
		switch {
		case err == nil:
			l.acked.Add(1)
		case errors.Is(err, meta.ErrUncertain):
			l.uncertain.Add(1)
		case !errors.Is(err, meta.ErrUnavailable) && !errors.Is(err, meta.ErrConflict):
			t.Errorf("increment: %v", err)
			return
		}
	}
}

func increment(ctx context.Context, s meta.Store, key string) (meta.Revision, error) {
	e, err := s.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	var n int64
	if _, err := fmt.Sscan(string(e.Value), &n); err != nil {
		return 0, err
	}
	return s.CompareAndSet(ctx, key, e.Revision, fmt.Append(nil, n+1))
}

// more waits until changes that began after it was called are acknowledged.
func (l *load) more(t *testing.T) {
	t.Helper()
	target := l.acked.Load() + 20
	testkit.Eventually(t, "nothing is written any more", func() bool { return l.acked.Load() >= target })
}

// leader is the server that leads the stream of the entry.
func (l *load) leader(t *testing.T) int {
	t.Helper()
	layout := l.nodes[0].layout
	return l.servers.Leader(t, l.servers.Dial(t, 0), layout.stream(layout.bucketOf(counted)))
}

// finish ends the writers and compares: each acknowledged change counts once, each uncertain one at
// most once, and all nodes agree.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.stop()
	l.writers.Wait()
	acked, uncertain := l.acked.Load(), l.uncertain.Load()
	var last meta.Entry
	for i, s := range l.nodes {
		testkit.Eventually(t, "a node is not up to date", func() bool { return s.Fresh(t.Context(), "") == nil })
		e := testkit.Value(s.Get(t.Context(), counted))(t)
		var count int64
		testkit.Must(t, testkit.Err(fmt.Sscan(string(e.Value), &count)))
		if count < acked || count > acked+uncertain {
			t.Errorf("node %d counts %d, acknowledged were %d and uncertain %d", i, count, acked, uncertain)
		}
		if i > 0 && (e.Revision != last.Revision || string(e.Value) != string(last.Value)) {
			t.Errorf("node %d has %+v, the one before %+v", i, e, last)
		}
		last = e
	}
	t.Logf("%d acknowledged, %d uncertain", acked, uncertain)
}

// C1, C2: leaders that step down and servers that stop while three nodes write lose no acknowledged
// change, make none twice, and all nodes agree in the end.
func TestLeadersChangeUnderLoad(t *testing.T) {
	l := startLoad(t)
	conn := l.servers.Dial(t, 1)
	for round := range 4 {
		l.more(t)
		for _, name := range l.nodes[0].layout.buckets() {
			if err := natstest.StepDown(conn, l.nodes[0].layout.stream(name)); err != nil {
				t.Logf("round %d: %v", round, err)
			}
		}
	}
	for i := range 2 {
		l.more(t)
		l.servers.Stop(t, i)
		l.more(t)
		l.servers.Restart(t, i)
	}
	l.more(t)
	l.finish(t)
}

// C1: kill -9 of the server that leads, while three nodes write, loses no acknowledged change: not
// when it goes, and not when it comes back with what it had on disk and another is killed.
func TestAServerIsKilledUnderLoad(t *testing.T) {
	l := startLoad(t)
	for range 2 {
		l.more(t)
		leader := l.leader(t)
		l.servers.Kill(t, leader)
		l.more(t)
		l.servers.Restart(t, leader)
	}
	l.more(t)
	l.finish(t)
}

// C1, C2: a leader that is frozen is replaced, while its connections stay. When it goes on it takes
// itself for the leader still: nothing that it answers then makes a change lost, or done twice.
func TestAServerIsFrozenUnderLoad(t *testing.T) {
	l := startLoad(t)
	l.more(t)
	leader := l.leader(t)
	l.servers.Freeze(t, leader)
	l.more(t)
	l.servers.Thaw(t, leader)
	l.more(t)
	l.finish(t)
}
