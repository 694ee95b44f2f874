package server

import (
	"context"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/grid/forward"
)

// functionsOfAll are the functions of the yard, with what all nodes remember of calls: each does of its own.
type functionsOfAll struct {
	*runner.Registry
	calls *functionCalls
}

// functionCalls asks all nodes for the calls with an event.
type functionCalls struct {
	every *forward.Every[runner.CallQuery, runner.Calls]
}

// newCalls answers other nodes from then on, once functions are open.
func (y *yard) newCalls() *functionCalls {
	return &functionCalls{forward.NewEvery(y.everyNode(), "functions.calls", func(ctx context.Context, q runner.CallQuery) (runner.Calls, error) {
		found, _, err := y.runner.EventCalls(ctx, q)
		return found, err
	})}
}

// EventCalls is documented by v1.Functions.
func (f functionsOfAll) EventCalls(ctx context.Context, q runner.CallQuery) (runner.Calls, []string, error) {
	answers, missing, err := f.calls.every.Ask(ctx, q)
	if err != nil {
		return runner.Calls{}, nil, err
	}
	return runner.JoinCalls(slices.Collect(maps.Values(answers))), missing, nil
}
