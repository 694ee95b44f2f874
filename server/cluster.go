package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/api/eventgrid"
	"github.com/eventyard/eventyard/internal/api/peer"
	v1 "github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/grid/placement"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
)

// formats are what this program writes and knows of what nodes share: streams, entries and the requests
// between nodes. A new form is known in one release and written in the next; docs/internals/nodes.md. Form 2 has entries
// that were stored again, and frames of transactions; nothing was released before it.
var formats = cluster.Formats{Writes: 2, Knows: 2}

// shared: other nodes use the yard's storage as well.
func (y *yard) shared() bool { return y.storage.Wire != nil }

// join makes this process one of the yard's nodes; on one machine it is the only one.
func (y *yard) join(ctx context.Context) (*cluster.Nodes, error) {
	name := y.cfg.nodeName()
	if !y.shared() {
		return cluster.Alone(name), nil
	}
	nodes, err := cluster.New(cluster.Config{
		Store: y.storage.Meta, Wire: y.storage.Wire, ID: name, Version: y.cfg.Version, Formats: formats, Log: y.cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return nodes, nodes.Join(ctx)
}

// tidyEntries keeps what the servers hold of entries compact. It is no part of the storage: what is opened by others
// than nodes, as to copy a yard, or by a node that the others refuse, is not to write in forms that they may not know.
func (y *yard) tidyEntries(ctx context.Context) error {
	if y.storage.Tidy == nil {
		<-ctx.Done()
		return nil
	}
	return y.storage.Tidy(ctx)
}

// newLooks makes fresh looks at what other nodes have changed; nil where there are none.
func (y *yard) newLooks() *looks.Looks {
	if !y.shared() {
		return nil
	}
	return looks.New(y.storage.Meta)
}

// findHub looks for a hub that another node may have made: the broker has it then. One that there is not is no error.
func (y *yard) findHub(ctx context.Context, name string) error {
	_, err := y.broker.LookUp(ctx, name)
	if _, missing := errors.AsType[*broker.NotFoundError](err); missing {
		return nil
	}
	return err
}

// gridServices are delivery and dead letters as listeners ask them, whichever node has what is asked
// for.
type gridServices struct {
	pull     eventgrid.Puller
	delivery v1.Delivery
	dead     v1.DeadLetters
	// placement shares them among the nodes; nil where there is one.
	placement *placement.Placement
}

// shareGrid shares the grid among the nodes: each shard is served by the one that placement gives it to,
// and what listeners ask of another's is forwarded.
func (y *yard) shareGrid() error {
	if !y.shared() {
		y.grid = gridServices{pull: y.delivery, delivery: y.delivery, dead: y.dead}
		return nil
	}
	shares, err := placement.New(placement.Config{
		Meta: y.storage.Meta, Node: nodeText(y.nodes.Self()), Parts: []placement.Part{y.dead.Serve, y.delivery.Serve}, Log: y.cfg.Log,
	})
	if err != nil {
		return err
	}
	all := forward.New(forward.Config{
		Delivery: y.delivery, Dead: y.dead, Nodes: gridWire{y.nodes}, Placement: shares,
		Grant: peer.Shown, Allow: peer.Judge{Access: y.access, Topics: y.topics}.Allow,
	})
	y.grid = gridServices{pull: all, delivery: all, dead: all, placement: shares}
	return nil
}

// tendsBodies: it is for this node to remove bodies of blobs that nobody names. Two would do no harm, and
// cost twice; none may be for a moment, while the shard moves.
func (y *yard) tendsBodies() bool {
	return y.grid.placement == nil || y.grid.placement.Holds(bodiesShard)
}

// bodiesShard is the shard whose holder does it.
const bodiesShard = 0

// runPlacement takes shards until ctx ends; on one machine there is nothing to share.
func (y *yard) runPlacement(ctx context.Context) error {
	if y.grid.placement == nil {
		<-ctx.Done()
		return nil
	}
	return y.grid.placement.Run(ctx)
}

// gridWire carries what the grid's parts ask each other, by the texts of nodes.
type gridWire struct{ nodes *cluster.Nodes }

// nodeText names a process in leases, in which a '/' would divide.
func nodeText(n cluster.Node) string { return n.ID + ":" + n.Incarnation }

func (w gridWire) Ask(ctx context.Context, node, subject string, body []byte) ([]byte, error) {
	id, incarnation, ok := strings.Cut(node, ":")
	if !ok {
		return nil, fmt.Errorf("%w: %q is no node", forward.ErrNoNode, node)
	}
	answer, err := w.nodes.Ask(ctx, cluster.Node{ID: id, Incarnation: incarnation}, subject, body)
	if errors.Is(err, cluster.ErrNoNode) {
		err = fmt.Errorf("%w: %w", forward.ErrNoNode, err)
	}
	return answer, err
}

func (w gridWire) Handle(subject string, handler func(ctx context.Context, body []byte) ([]byte, error)) {
	w.nodes.Handle(subject, func(ctx context.Context, r cluster.Request) ([]byte, error) { return handler(ctx, r.Body) })
}
