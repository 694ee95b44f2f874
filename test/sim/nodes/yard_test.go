package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// What all use.
const (
	hubName  = "orders"
	workers  = "workers"  // the group of the processors
	visitors = "visitors" // that of the receivers with epochs
)

var names = []string{"a", "b", "c"}

// yard is everything of one simulation.
type yard struct {
	plan    plan
	judge   *judge
	servers *model.Cluster
	network *clustertest.Network
	clients int // how many there were; of the goroutine that makes them

	// What a test puts between a node and the servers, or an instance and its node; nil: nothing.
	flawedConn    func(entries.Conn) entries.Conn
	flawedStorage func(streams.Storage) streams.Storage
	flawedStore   func(*instance) processor.Store

	mu sync.Mutex
	// All guarded by mu.
	nodes   map[string]*node
	members map[cluster.Node]*node
	thaw    map[string]time.Time // until when the node of that name is frozen
	cuts    map[string]time.Time // until when it is cut off
	down    time.Time            // until when the servers are
	losing  float64              // the share of requests between nodes that are lost
	chance  *rand.Rand
}

// newYard starts the nodes of a yard, with flaws where a test wants some.
func newYard(p plan, flaws ...func(*yard)) *yard {
	y := &yard{
		plan: p, judge: newJudge(p), servers: model.New(p.seed, calm()), network: &clustertest.Network{},
		nodes: map[string]*node{}, members: map[cluster.Node]*node{}, thaw: map[string]time.Time{}, cuts: map[string]time.Time{},
		chance: luck(p.seed, "network"),
	}
	y.servers.Observe(y.judge.stored)
	y.network.Inject(y.pass, y.pass)
	for _, flaw := range flaws {
		flaw(y)
	}
	for _, name := range names {
		y.nodes[name] = y.start(name)
	}
	return y
}

func (y *yard) log(node string) *slog.Logger {
	if *verbose {
		return slog.Default().With("node", node, "at", since())
	}
	return testkit.Quiet()
}

func (y *yard) connOf(n *node) entries.Conn {
	if y.flawedConn != nil {
		return y.flawedConn(n.conn)
	}
	return n.conn
}

func (y *yard) storageOf(n *node) streams.Storage {
	if y.flawedStorage != nil {
		return y.flawedStorage(n.storage)
	}
	return n.storage
}

// joins notes by which name the other nodes know a process.
func (y *yard) joins(n *node) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.members[n.self] = n
}

// node gives one that serves; nil: none does.
func (y *yard) node(r *rand.Rand) *node {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, i := range r.Perm(len(names)) {
		if n := y.nodes[names[i]]; n != nil && n.serving.Load() {
			return n
		}
	}
	return nil
}

func (y *yard) thawOf(name string) time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.thaw[name]
}

// pass is what a request between nodes meets, and an answer.
func (y *yard) pass(ctx context.Context, r cluster.Request) error {
	y.mu.Lock()
	now := time.Now()
	from, to := y.members[r.From], y.members[r.To]
	gone := to == nil || to.killed.Load()
	lost := now.Before(y.down) || y.chance.Float64() < y.losing || from == nil || from.killed.Load() ||
		now.Before(y.cuts[r.From.ID]) || now.Before(y.cuts[r.To.ID])
	y.mu.Unlock()
	switch {
	case lost:
		return clustertest.Lose(ctx)
	case gone:
		return fmt.Errorf("%s: %w", r.To, cluster.ErrNoNode)
	}
	for _, name := range []string{r.From.ID, r.To.ID} {
		for time.Now().Before(y.thawOf(name)) {
			if err := sleep.For(ctx, time.Until(y.thawOf(name)), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeze has a node stand still.
func (y *yard) freeze(name string, d time.Duration) {
	y.servers.Freeze(name, d)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.thaw[name] = time.Now().Add(d)
}

// cutOff cuts a node off from the servers, and so from the other nodes.
func (y *yard) cutOff(name string, d time.Duration) {
	y.servers.CutOff(name, d)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.cuts[name] = time.Now().Add(d)
}

// stopServers has the servers gone.
func (y *yard) stopServers(d time.Duration) {
	y.servers.StopServers(d)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.down = time.Now().Add(d)
}

// weather sets what goes wrong by chance.
func (y *yard) weather(faults model.Faults, losing float64) {
	y.servers.SetFaults(faults)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.losing = losing
}

// replace puts another process in the place of one that has ended.
func (y *yard) replace(name string) {
	n := y.start(name)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.nodes[name] = n
}

func (y *yard) named(name string) *node {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.nodes[name]
}

// since is how far the simulation has come: synctest begins at that time.
func since() time.Duration { return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) }
