package v1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
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
	if d.cfg.Functions == nil || d.cfg.Poison == nil {
		return nil
	}
	all, err := d.cfg.Functions.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		if !strings.EqualFold(f.Hub, j.Hub) {
			continue
		}
		one, err := d.followFunction(ctx, j, f, states[strings.ToLower(f.Group)])
		if err != nil {
			return err
		}
		j.Functions = append(j.Functions, one)
	}
	return nil
}

// passed tells whether the checkpoint of a group is at an event or behind it.
func (d *Handler) passed(ctx context.Context, j *admin.Journey, group string) (string, error) {
	all, err := d.cfg.Groups.Checkpoints(ctx, processor.Group{Hub: j.Hub, Group: group})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(c processor.Checkpoint) bool { return c.Partition == j.Partition })
	switch {
	case i < 0 || all[i].Sequence < 0 && all[i].Offset == "":
		return readerUnknown, nil
	case all[i].Sequence >= j.Sequence:
		return readerPast, nil
	}
	return readerBefore, nil
}

// followFunction looks for the event among what a function has put away.
func (d *Handler) followFunction(ctx context.Context, j *admin.Journey, f runner.Function, group string) (admin.JourneyFunction, error) {
	one := admin.JourneyFunction{Function: f.Name, State: "unknown", Summary: "it has no checkpoint in the yard: whether it has handled the event is not known"}
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
	switch group {
	case readerPast:
		one.State, one.Summary = "handled", "handled: its checkpoint is past the event, which is not among its poison events"
	case readerBefore:
		one.State, one.Summary = "before", "not yet: its checkpoint is before the event"
		if f.State != "running" {
			one.Summary += "; it is " + f.State
		}
	}
	return one, nil
}
