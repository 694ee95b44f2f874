package brokers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Alone is the number of a node that has no others, and of one broker that stands for all.
const Alone = 1

// Node is one that clients may turn to.
type Node struct {
	ID   int32
	Host string
	Port int32
	// Rack may be empty.
	Rack string
	// Self: it is this one.
	Self bool
}

// Config is what brokers are known by.
type Config struct {
	// Nodes and Store are required. Where nodes are single the store is not used.
	Nodes *cluster.Nodes
	Store meta.Store
	// Log takes what changes; nil means slog.Default().
	Log *slog.Logger
}

// Brokers is one node's view of all. All methods may be called by many goroutines at once, Run by one.
type Brokers struct {
	nodes   *cluster.Nodes
	log     *slog.Logger
	numbers *mirror.Table[numbers]
	// lost has room for one: this node may be without a number.
	lost chan struct{}
}

// Open takes this node's number: the one that it had before, if others have left it. The node has to have
// joined the others.
func Open(ctx context.Context, cfg Config) (*Brokers, error) {
	b := &Brokers{nodes: cfg.Nodes, log: cmp.Or(cfg.Log, slog.Default()), lost: make(chan struct{}, 1)}
	if b.nodes.Single() {
		return b, nil
	}
	b.numbers = mirror.New(mirror.Config[numbers]{
		Store: cfg.Store, Prefix: prefix, Name: "numbers of Kafka brokers", Decode: decodeNumbers, Encode: encodeNumbers, Apply: b.applied, Log: b.log,
	})
	if err := b.take(ctx); err != nil {
		return nil, fmt.Errorf("take a number for Kafka clients to know this node by: %w", err)
	}
	return b, nil
}

// takeTries is how often a change is made again of which nobody knows whether it was made.
const takeTries = 5

// take has this node come: it has a number then. Done twice, it is the same number.
func (b *Brokers) take(ctx context.Context) (err error) {
	for range takeTries {
		if err = mirror.Uncontested(ctx, func() error { return b.join(ctx) }); !errors.Is(err, meta.ErrUncertain) {
			break
		}
	}
	return err
}

func (b *Brokers) join(ctx context.Context) error {
	item, err := b.numbers.Read(ctx, numbersKey)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	present := make(map[string]bool)
	for _, m := range b.nodes.Members() {
		present[m.ID] = true
	}
	item.Key = numbersKey
	item.Value = item.Value.join(b.nodes.Self().ID, func(node string) bool { return present[node] })
	_, err = b.numbers.Put(ctx, item)
	return err
}

// applied sees, as the entry changes, whether this node is still in it.
func (b *Brokers) applied([]mirror.Update[numbers]) {
	if b.number(b.nodes.Self().ID) != 0 {
		return
	}
	select {
	case b.lost <- struct{}{}:
	default:
	}
}

// againAfter is how long a node waits, about, that could not take a number.
const againAfter = time.Second

// Run follows the numbers of others until ctx ends, and returns nil then. A node that was forgotten, as it
// was out of sight while many others came, takes a number anew.
func (b *Brokers) Run(ctx context.Context) error {
	if b.nodes.Single() {
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var taking sync.WaitGroup
	defer taking.Wait()
	defer cancel() // before it is waited for
	taking.Go(func() { b.retake(ctx) })
	return b.numbers.Run(ctx)
}

func (b *Brokers) retake(ctx context.Context) {
	for {
		select {
		case <-b.lost:
		case <-ctx.Done():
			return
		}
		for b.number(b.nodes.Self().ID) == 0 {
			if err := b.take(ctx); err != nil {
				b.log.Warn("this node has no number for Kafka clients to know it by; trying again", "error", err)
				if sleep.About(ctx, againAfter) != nil {
					return
				}
			}
		}
	}
}

// number is what clients know a node by; zero: nothing.
func (b *Brokers) number(node string) int32 {
	item, _ := b.numbers.Get(numbersKey)
	return item.Value.of(node)
}

// all gives the nodes that serve Kafka's clients by any listener, by number, without their addresses.
func (b *Brokers) all() []Node {
	return b.list(func(e cluster.Endpoints) (Node, bool) { return Node{}, e != cluster.Endpoints{} })
}

// Coordinator gives the node that a group belongs to, without its address: clients of different listeners
// find it at different ones, and whose group it is must not depend on which they came by. It is this node where
// there is no other. It does no I/O.
func (b *Brokers) Coordinator(group string) Node {
	if all := b.all(); len(all) > 0 {
		return Choose(all, []byte(group))
	}
	return Node{ID: Alone, Self: true}
}

// Holder is the node that a group belongs to, as others reach it; false where nobody is known to. It does no I/O.
func (b *Brokers) Holder(group string) (cluster.Node, bool) {
	id := b.Coordinator(group).ID
	for _, m := range b.nodes.Members() {
		if m.Alive && b.number(m.ID) == id {
			return m.Node, true
		}
	}
	return cluster.Node{}, false
}

// At gives the brokers that clients of a listener may turn to, by number: those with TLS or those without.
// Nodes that announce one address cannot be told apart by who connects to it, since a balancer stands
// there; so together they are one broker, by the least of their numbers. It does no I/O.
func (b *Brokers) At(tls bool) []Node {
	all := b.list(func(e cluster.Endpoints) (Node, bool) {
		if tls {
			return parse(e.Kafkas)
		}
		return parse(e.Kafka)
	})
	apart := make([]Node, 0, len(all))
	for _, n := range all {
		same := slices.IndexFunc(apart, func(other Node) bool { return other.Host == n.Host && other.Port == n.Port })
		if same < 0 {
			apart = append(apart, n)
			continue
		}
		apart[same].Self = apart[same].Self || n.Self
	}
	return apart
}

// list gives the live nodes that have a number and that wanted wants, by number.
func (b *Brokers) list(wanted func(cluster.Endpoints) (Node, bool)) (all []Node) {
	if b.nodes.Single() {
		return nil
	}
	for _, m := range b.nodes.Members() {
		n, ok := wanted(m.Endpoints)
		if n.ID, n.Self = b.number(m.ID), m.Node == b.nodes.Self(); ok && m.Alive && n.ID != 0 {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(x, y Node) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// parse reads what a node has announced; false: nothing that a client could connect to.
func parse(at string) (Node, bool) {
	host, text, err := net.SplitHostPort(at)
	port, portErr := strconv.ParseUint(text, 10, 16)
	return Node{Host: host, Port: int32(port)}, err == nil && portErr == nil && host != "" && port != 0
}
