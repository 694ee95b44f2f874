package v1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/processor"
)

// Whether a reader has passed an event, by its checkpoint.
const (
	readerPast    = "past"
	readerBefore  = "before"
	readerUnknown = "unknown"
)

// followReaders tells which groups and functions of a hub have passed an event.
func (d *Handler) followReaders(ctx context.Context, j *admin.Journey) error {
	if d.cfg.Groups == nil {
		return nil
	}
	groups, err := d.cfg.Broker.Groups(ctx, j.Hub)
	if err != nil {
		return err
	}
	states := make(map[string]string, len(groups))
	for _, g := range groups {
		if states[strings.ToLower(g.Name)], err = d.passed(ctx, j, g.Name); err != nil {
			return err
		}
		j.Groups = append(j.Groups, admin.JourneyGroup{Group: g.Name, State: states[strings.ToLower(g.Name)]})
	}
	if err := d.followKafka(ctx, j); err != nil {
		return err
	}
	if d.cfg.Functions == nil || d.cfg.Poison == nil {
		return nil
	}
	all, err := d.cfg.Functions.List(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f runner.Function) bool { return !strings.EqualFold(f.Hub, j.Hub) })
	if len(all) == 0 {
		return nil
	}
	calls, missing, err := d.cfg.Functions.EventCalls(ctx, runner.CallQuery{Hub: j.Hub, Partition: j.Partition, Sequence: j.Sequence})
	if err != nil {
		return fmt.Errorf("ask for the calls with the event: %w", err)
	}
	for _, f := range all {
		one := admin.JourneyFunction{
			Function: f.Name, State: "unknown", Summary: "it has no checkpoint in the yard: whether it has handled the event is not known",
			Calls: showCalls(calls.Of(f.Name)), KnownSince: spec.TimeIfAny(calls.Since), Missing: missing,
		}
		one, err := d.followFunction(ctx, j, f, one, states[strings.ToLower(f.Group)])
		if err != nil {
			return err
		}
		j.Functions = append(j.Functions, one)
	}
	return nil
}

// passed tells whether the checkpoint of a group is at an event or behind it.
func (d *Handler) passed(ctx context.Context, j *admin.Journey, group string) (string, error) {
	positions, err := d.cfg.Groups.Positions(ctx, processor.Group{Hub: j.Hub, Group: group})
	if err != nil {
		return "", err
	}
	c, known := positions[j.Partition]
	return readerAt(known, c.Sequence >= j.Sequence), nil
}

func readerAt(known, past bool) string {
	switch {
	case !known:
		return readerUnknown
	case past:
		return readerPast
	}
	return readerBefore
}

// followKafka tells which groups of Kafka's consumers have passed an event: by the offset that they have committed, which is
// the number of the next event that they want.
func (d *Handler) followKafka(ctx context.Context, j *admin.Journey) error {
	if d.cfg.KafkaGroups == nil {
		return nil
	}
	all, err := d.cfg.KafkaGroups.All(ctx)
	if err != nil {
		return fmt.Errorf("ask for the Kafka groups of the hub: %w", err)
	}
	for _, g := range all {
		if !slices.Contains(d.cfg.KafkaGroups.Hubs(g), j.Hub) {
			continue
		}
		committed, err := d.cfg.KafkaGroups.Committed(ctx, g.ID, j.Hub)
		if err != nil {
			return fmt.Errorf("ask how far Kafka group %s is: %w", g.ID, err)
		}
		next, known := committed[int32(partitionNumber(j.Partition))]
		j.KafkaGroups = append(j.KafkaGroups, admin.JourneyGroup{Group: g.ID, State: readerAt(known, next.Offset > j.Sequence)})
	}
	return nil
}

// followFunction looks for the event among what a function has put away, and says what became of it. What is known of
// its calls is there.
func (d *Handler) followFunction(ctx context.Context, j *admin.Journey, f runner.Function, one admin.JourneyFunction, group string) (admin.JourneyFunction, error) {
	if hub, ok := f.PoisonHub(); ok {
		found, err := d.cfg.Poison.List(ctx, hub, box.Query{
			Function: f.Name, Source: j.Hub, IDs: []string{poison.ID(f.Name, j.Hub, j.Partition, j.Sequence)}, Since: j.Published, Redriven: true, Limit: 1,
		})
		if missing, _ := errors.AsType[*broker.NotFoundError](err); err != nil && missing == nil {
			return one, fmt.Errorf("look for the event among the poison events of %s: %w", f.Name, err)
		}
		if len(found) > 0 {
			shown := showPoison(&found[0], false)
			one.State, one.Poison = "poison", &shown
			one.Summary = fmt.Sprintf("put away as poison after %s: %s; see it with: eventyard poison show %s %s", counted(shown.Attempts, "attempt"), shown.Reason, hub, shown.ID)
			if shown.Redriven {
				one.Summary += "; it was redriven since"
			}
			return one, nil
		}
	}
	one.State, one.Summary = sayFunction(&one, f, group)
	return one, nil
}

// sayFunction is what became of an event that a function has not put away, by the function's checkpoint and by
// the calls that are remembered.
func sayFunction(one *admin.JourneyFunction, f runner.Function, group string) (state, words string) {
	last := (*admin.JourneyCall)(nil)
	if n := len(one.Calls); n > 0 {
		last = &one.Calls[n-1]
	}
	switch {
	case group == readerPast && last != nil && last.Outcome == "skipped":
		return "handled", "skipped at " + sayTime(last.Time) + saying(strings.TrimPrefix(last.Error, "skipped: "))
	case group == readerPast && last != nil && last.Outcome == "done":
		return "handled", fmt.Sprintf("handled at %s, attempt %d, in %s", sayTime(last.Time), last.Attempt, last.Took)
	case group == readerPast:
		return "handled", "handled: its checkpoint is past the event, which is not among its poison events"
	}
	state, words = "before", "not yet: its checkpoint is before the event"
	switch {
	case group != readerBefore && last == nil:
		state, words = one.State, one.Summary
	case last != nil && last.Outcome == "done":
		words = fmt.Sprintf("handled at %s, attempt %d, and its checkpoint is still before the event", sayTime(last.Time), last.Attempt)
	case last != nil:
		words = fmt.Sprintf("not yet: called %s, the last ended in %s at %s%s", counted(len(one.Calls), "time"), last.Outcome, sayTime(last.Time), saying(last.Error))
	}
	if f.State != "running" {
		one.Stopped = f.State
		words += "; it is " + f.State + sayCircuit(f)
	}
	return state, words
}

// sayCircuit is why a function that does not run was stopped, and what lets it run again.
func sayCircuit(f runner.Function) string {
	if f.Circuit.State == breaker.Closed || f.Circuit.State == "" {
		return saying(f.Problem)
	}
	return saying(f.Circuit.Reason) + "; let it run with: eventyard function resume " + f.Name
}

func showCalls(found runner.Calls) []admin.JourneyCall {
	shown := make([]admin.JourneyCall, len(found.Calls))
	for i, c := range found.Calls {
		shown[i] = admin.JourneyCall{Time: c.Began, Took: quantity.FormatSpan(c.Took), Attempt: c.Attempt, Events: c.Events, Outcome: c.Outcome, Error: c.Reason}
	}
	return shown
}
