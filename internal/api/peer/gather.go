package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/parallel"
)

// GatherTime is how long other nodes may take to answer what all are asked, and maxGatherBytes what such a
// question may measure.
const (
	GatherTime     = 2 * time.Second
	maxGatherBytes = 1 << 20
	askedAtOnce    = 16
)

// Gathering is a question that is asked of all nodes, since each knows a part of the answer. Who asks does
// so for a caller, whom every node judges.
type Gathering[Q, A any] struct {
	nodes   *cluster.Nodes
	judge   Judge
	subject string
	need    func(Q) (frame.Need, auth.Entity)
	here    func(context.Context, Q) (A, error)
}

// NewGathering makes one, and answers other nodes from then on. need says what a question asks of its
// caller, beside what its kind does: it is judged here for the questions of other nodes, and by the
// listener for those of its own callers. here answers, and does not wait for other nodes.
func NewGathering[Q, A any](
	nodes *cluster.Nodes, judge Judge, subject string,
	need func(Q) (frame.Need, auth.Entity), here func(context.Context, Q) (A, error),
) *Gathering[Q, A] {
	g := &Gathering[Q, A]{nodes, judge, subject, need, here}
	if !nodes.Single() {
		nodes.Handle(subject, g.handle)
	}
	return g
}

// asked is a question as it is sent.
type asked[Q any] struct {
	Grant    json.RawMessage `json:"grant,omitempty"`
	Question Q               `json:"question"`
}

// handle answers another node.
func (g *Gathering[Q, A]) handle(ctx context.Context, r cluster.Request) ([]byte, error) {
	if len(r.Body) > maxGatherBytes {
		return nil, fmt.Errorf("a question of %d bytes: at most %d are allowed", len(r.Body), maxGatherBytes)
	}
	var q asked[Q]
	if err := json.Unmarshal(r.Body, &q); err != nil {
		return nil, fmt.Errorf("read a question of another node: %w", err)
	}
	need, entity := g.need(q.Question)
	var answer A
	err := g.judge.AllowNeed(ctx, q.Grant, g.subject, need, entity)
	if err == nil {
		answer, err = g.here(ctx, q.Question)
	}
	return forward.Answer(answer, err)
}

// Ask gives the answers of all nodes that live and answer, that of this one first, and names the others.
// An error is this node's own.
func (g *Gathering[Q, A]) Ask(ctx context.Context, q Q) (answers []A, missing []string, err error) {
	own, err := g.here(ctx, q)
	if err != nil || g.nodes.Single() {
		return []A{own}, nil, err
	}
	others := g.nodes.Live()
	found, errs := make([]A, len(others)), make([]error, len(others))
	ctx, cancel := cluster.Wait(ctx, GatherTime)
	defer cancel()
	parallel.Each(len(others), askedAtOnce, func(i int) {
		if others[i] != g.nodes.Self() {
			found[i], errs[i] = g.ask(ctx, others[i], q)
		}
	})
	answers = []A{own}
	for i, node := range others {
		switch {
		case node == g.nodes.Self():
		case errs[i] != nil:
			missing = append(missing, node.ID)
		default:
			answers = append(answers, found[i])
		}
	}
	return answers, missing, nil
}

// ask asks one node.
func (g *Gathering[Q, A]) ask(ctx context.Context, node cluster.Node, q Q) (answer A, err error) {
	_, entity := g.need(q)
	question := asked[Q]{Question: q}
	if c, ok := caller.From(ctx); ok {
		question.Grant = c.Encode(entity)
	}
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	if body, err = g.nodes.Ask(ctx, node, g.subject, body); err != nil {
		return answer, err
	}
	if err := forward.ErrorIn(body); err != nil {
		return answer, err
	}
	said := struct{ Answer *A }{&answer}
	return answer, json.Unmarshal(body, &said)
}
