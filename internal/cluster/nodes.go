package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config is what the nodes of a yard are known by.
type Config struct {
	// Store holds the entries of all nodes, Wire carries what they ask each other. Both are
	// required, and closed by neither Run nor anything else here.
	Store meta.Store
	Wire  Wire
	// ID is this node's; see CheckID. Required.
	ID string
	// Version is the program's, for people who look at the nodes, and Formats what it writes and knows of
	// what nodes share.
	Version string
	Formats Formats
	// Log takes what changes among the nodes; nil means slog.Default().
	Log *slog.Logger
}

// Nodes is one node's view of all nodes of its yard. All methods may be called by many goroutines
// at once, Join and Run by one.
type Nodes struct {
	cfg  Config
	self Node
	// started is when this process made its Nodes.
	started time.Time
	// alone: there is no other node, and no store.
	alone bool
	log   *slog.Logger

	standing atomic.Pointer[standing]
	others   atomic.Int64 // how many other nodes are alive

	mu sync.Mutex
	// handlers by subject, guarded by mu.
	handlers map[string]Handler
	// roster has all nodes but this one. Guarded by mu.
	roster roster
	// changed is closed, and replaced, when the living or the term have changed. Guarded by mu.
	changed chan struct{}
	// endpoints are those that Announce was given last. Guarded by mu.
	endpoints Endpoints
	// announced has room for one: Run has to write its entry, whose endpoints are others.
	announced chan struct{}

	// What follows is Join's and Run's.
	presence presence
	revision meta.Revision // of our entry; zero: there is none
	unsure   bool          // it may be another by now
	stop     func()        // serving
}

// New makes a node that is not among the others yet; see Join.
func New(cfg Config) (*Nodes, error) {
	if cfg.Store == nil || cfg.Wire == nil {
		return nil, errors.New("nodes of a yard: a store and a wire are required")
	}
	if err := CheckID(cfg.ID); err != nil {
		return nil, err
	}
	n := newNodes(cfg)
	n.presence = presence{Incarnation: n.self.Incarnation, Started: n.started, Version: cfg.Version, Formats: cfg.Formats}
	return n, nil
}

// Alone is the one node of a yard that has no others. It does no I/O; Run only waits.
func Alone(id string) *Nodes {
	n := newNodes(Config{ID: id})
	n.alone = true
	return n
}

func newNodes(cfg Config) *Nodes {
	n := &Nodes{
		cfg: cfg, self: Node{cfg.ID, strings.ToLower(rand.Text()[:16])}, started: time.Now().UTC(),
		log:      cmp.Or(cfg.Log, slog.Default()),
		handlers: map[string]Handler{pingSubject: pong}, roster: make(roster), changed: make(chan struct{}), announced: make(chan struct{}, 1),
	}
	n.standing.Store(&standing{})
	return n
}

// Self is this node.
func (n *Nodes) Self() Node { return n.self }

// Single reports whether there can be no other node, so that nothing need be shared.
func (n *Nodes) Single() bool { return n.alone }

// Live gives all nodes that are alive as far as this one knows, itself among them, by ID. It does
// no I/O.
func (n *Nodes) Live() []Node {
	if n.alone {
		return []Node{n.self}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	live := []Node{n.self}
	for node, s := range n.roster {
		if s.listed && !s.dead {
			live = append(live, node)
		}
	}
	slices.SortFunc(live, func(x, y Node) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Incarnation, y.Incarnation))
	})
	return live
}

// Count is how many nodes Live gives. It takes no lock.
func (n *Nodes) Count() int { return int(n.others.Load()) + 1 }

// Member is a node as people want to see it.
type Member struct {
	Node
	Alive bool
	// Quiet: it lives, and must not use what it holds alone, since it cannot show that it lives.
	Quiet   bool
	Started time.Time
	Version string
	// Endpoints is what the node has announced.
	Endpoints Endpoints
	// Unchanged is how long ago this node saw it change; of this node itself, how long ago the store
	// confirmed its entry.
	Unchanged time.Duration
}

// Members gives all nodes that have an entry, by ID, also dead ones.
func (n *Nodes) Members() []Member {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []Member{{
		Node: n.self, Alive: true, Quiet: !n.MayAct(), Started: n.started, Version: n.cfg.Version, Endpoints: n.endpoints, Unchanged: max(0, now.Sub(n.Confirmed())),
	}}
	for node, s := range n.roster {
		if s.listed {
			unchanged := now.Sub(s.since)
			all = append(all, Member{
				Node: node, Alive: !s.dead, Quiet: !s.dead && unchanged >= QuietAfter, Started: s.Started, Version: s.Version, Endpoints: s.Endpoints, Unchanged: unchanged,
			})
		}
	}
	slices.SortFunc(all, func(x, y Member) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// Announce says where clients find this node from now on; the zero Endpoints: nowhere, which who is about to
// stop says first. Others see it some moments later, as long as Run runs. It does no I/O itself.
func (n *Nodes) Announce(at Endpoints) {
	n.mu.Lock()
	n.endpoints = at
	n.mu.Unlock()
	select {
	case n.announced <- struct{}{}:
	default: // it is about to, and takes the newest
	}
}

// Alive reports whether a node is alive, which is true of every node until it is seen to be dead:
// it took its own entry away, or nothing of it has changed for DeadAfter, while this node could
// read. It does no I/O.
func (n *Nodes) Alive(node Node) bool { return n.AliveIn(node, 0) }

// AliveIn is Alive of a node that is known to have been in a term (see Standing). Who wants to take
// what a node holds asks so, with the term in which that node wrote that it does: a node that was
// dead and has come back holds it again, and its claim may be here before the news of its return.
func (n *Nodes) AliveIn(node Node, term uint64) bool {
	if node == n.self {
		return true
	}
	if n.alone {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.roster.alive(time.Now(), node, term)
}

// AwaitDeath waits until a node, which was in a term, is seen to be dead. The error is ctx's cause.
func (n *Nodes) AwaitDeath(ctx context.Context, node Node, term uint64) error {
	for {
		changed := n.Changed()
		if !n.AliveIn(node, term) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Changed is closed when the set of the living, or this node's term, has changed since the call. Who
// waits calls it first and looks afterwards.
func (n *Nodes) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *Nodes) notifyLocked() {
	others := int64(0)
	for _, s := range n.roster {
		if s.listed && !s.dead {
			others++
		}
	}
	n.others.Store(others)
	close(n.changed)
	n.changed = make(chan struct{})
}

// MayAct reports whether this node may use what it holds alone: no other can have seen it dead yet.
// It costs a look at the clock, and is asked right before each use. Where it is false the node is
// quiet.
func (n *Nodes) MayAct() bool {
	_, ok := n.Standing()
	return ok
}

// Standing is MayAct with the number of the present term, which rises whenever the node was quiet
// in between. Who took something in an earlier term looks whether it still has it, and says in the
// store that it holds it in the new one: until then others may take it from a node that they have
// seen dead.
func (n *Nodes) Standing() (term uint64, mayAct bool) {
	if n.alone {
		return 1, true
	}
	s := n.standing.Load()
	return s.term, s.mayAct(time.Now())
}

// Confirmed is when this node began the last write of its entry that the store has confirmed. Since it
// writes every few seconds, it says as well since when the store confirms nothing. Zero: nothing was
// confirmed; a node that is alone asks nobody, and has now. It does no I/O.
func (n *Nodes) Confirmed() time.Time {
	if n.alone {
		return time.Now()
	}
	return n.standing.Load().from
}

// Handle sets who answers requests of a subject at this node.
func (n *Nodes) Handle(subject string, handler Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handlers[subject] = handler
}

// Subjects are those that this node answers, by name.
func (n *Nodes) Subjects() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.handlers))
}

// Ask asks a node, perhaps this one, and waits for its answer: for AskTimeout where ctx has no
// deadline. For the errors see Wire.Ask.
func (n *Nodes) Ask(ctx context.Context, to Node, subject string, body []byte) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, AskTimeout)
		defer cancel()
	}
	r := Request{From: n.self, To: to, Subject: subject, Body: body}
	switch {
	case to == n.self:
		answer, err := n.handle(ctx, r)
		if err != nil {
			return nil, &RemoteError{Node: to, Subject: subject, Text: err.Error()}
		}
		return answer, nil
	case n.alone:
		return nil, fmt.Errorf("ask %s: %w", to, ErrNoNode)
	}
	answer, err := n.cfg.Wire.Ask(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("ask node %s for %s: %w", to.ID, subject, err)
	}
	return answer, nil
}

// pingSubject asks whether a process is there.
const pingSubject = "ping"

func pong(context.Context, Request) ([]byte, error) { return nil, nil }

func (n *Nodes) handle(ctx context.Context, r Request) ([]byte, error) {
	n.mu.Lock()
	handler := n.handlers[r.Subject]
	n.mu.Unlock()
	if handler == nil {
		return nil, errors.New("nobody answers such requests here")
	}
	return handler(ctx, r)
}
