package forward

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/eventyard/eventyard/internal/cluster"
)

// EveryConfig is what a question to all nodes works with. All of it is required, but for one node alone.
type EveryConfig struct {
	// Nodes carries requests; nil: there is no other node. Live names those that live, Self is this one.
	Nodes Nodes
	Live  func() []string
	Self  string
	// Grant and Allow are those of Config; a question to all is about no subscription.
	Grant func(ctx context.Context) []byte
	Allow func(ctx context.Context, grant []byte, subject, subscription string) error
}

// Every is a question that all nodes answer, each for itself.
type Every[Q, A any] struct {
	cfg     EveryConfig
	subject string
	here    func(ctx context.Context, q Q) (A, error)
}

// NewEvery makes one, and answers it at this node by here, which bounds what it is asked.
func NewEvery[Q, A any](cfg EveryConfig, subject string, here func(ctx context.Context, q Q) (A, error)) *Every[Q, A] {
	e := &Every[Q, A]{cfg, subject, here}
	if cfg.Nodes != nil {
		cfg.Nodes.Handle(subject, e.handle)
	}
	return e
}

func (e *Every[Q, A]) handle(ctx context.Context, body []byte) ([]byte, error) {
	var r request[Q]
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read a request of another node: %w", err)
	}
	var a answer[A]
	err := e.cfg.Allow(ctx, r.Grant, e.subject, "")
	if err == nil {
		a.Answer, err = e.here(ctx, r.Question)
	}
	a.Error = failureOf(err)
	return json.Marshal(a)
}

// Ask asks all nodes that live, at once. It gives the answers by node, and the names of those that did not
// answer in time, or could not. The error is that of this node.
func (e *Every[Q, A]) Ask(ctx context.Context, q Q) (answers map[string]A, unanswered []string, err error) {
	own, err := e.here(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	answers = map[string]A{e.cfg.Self: own}
	if e.cfg.Nodes == nil {
		return answers, nil, nil
	}
	body, err := json.Marshal(request[Q]{Grant: e.cfg.Grant(ctx), Question: q})
	if err != nil {
		return nil, nil, fmt.Errorf("ask the other nodes: %w", err)
	}
	var mu sync.Mutex // guards answers and unanswered
	var all sync.WaitGroup
	for _, node := range e.cfg.Live() {
		if node == e.cfg.Self {
			continue
		}
		all.Go(func() {
			got, err := e.ask(ctx, node, body)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unanswered = append(unanswered, node)
				return
			}
			answers[node] = got
		})
	}
	all.Wait()
	slices.Sort(unanswered)
	return answers, unanswered, nil
}

func (e *Every[Q, A]) ask(ctx context.Context, node string, body []byte) (A, error) {
	ctx, cancel := cluster.Wait(ctx, AnswerTime)
	defer cancel()
	var got answer[A]
	text, err := e.cfg.Nodes.Ask(ctx, node, e.subject, body)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err == nil {
		err = got.Error.err()
	}
	return got.Answer, err
}
