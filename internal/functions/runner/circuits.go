package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/processor"
)

// Circuit is one of any function, run here or elsewhere with the yard's store.
type Circuit struct {
	Function, Hub, Group string
	Record               breaker.Record
	// Failures within the window; of one that is open those that opened it.
	Failures  int
	Total     int64
	Instances map[string]breaker.Tally
	Lag       int64 // -1: unknown
	// Here: a function of that name is defined in the yard.
	Here bool
}

// circuits are those of all functions in the yard's groups, whoever runs them.
type circuits struct {
	*catalog
	changes changes
}

func (c Circuit) group() processor.Group { return processor.Group{Hub: c.Hub, Group: c.Group} }

// ListCircuits gives the circuits of all groups, by hub, group and function: those of functions
// that ever had trouble, wherever they run, and those of the yard's own.
//
// One whose record cannot be read is left out and reported: the others are needed all the more
// then.
func (k *circuits) ListCircuits(ctx context.Context) ([]Circuit, error) {
	all, broken, err := k.gather(ctx)
	if err != nil {
		return nil, fmt.Errorf("list circuits: %w", err)
	}
	if broken != nil {
		k.log.Error("a circuit cannot be read", "error", broken)
	}
	lags := map[processor.Group]int64{}
	for i := range all {
		g := all[i].group()
		if _, known := lags[g]; !known {
			lags[g] = k.Lag(ctx, g)
		}
		all[i].Lag = lags[g]
	}
	return all, nil
}

// gather gives all of them, without lag, and what is wrong with those that cannot be read. All groups
// are asked which of these entries they have, and then those that have any about all of it.
func (k *circuits) gather(ctx context.Context) (all []Circuit, broken, err error) {
	found, err := k.cfg.Groups.FindEntries(ctx, circuit.Prefix, circuit.TallyPrefix)
	if err != nil {
		return nil, nil, err
	}
	names := map[processor.Group]map[string]bool{} // functions that have entries
	for _, f := range found {
		if names[f.Group] == nil {
			names[f.Group] = map[string]bool{}
		}
		_, rest, _ := strings.Cut(f.Key, "/")
		name, _, _ := strings.Cut(rest, "/")
		names[f.Group][name] = true
	}
	byFunction, unreadable := map[functionKey]Circuit{}, map[functionKey]bool{}
	for g, functions := range names {
		read, unread := circuit.Read(ctx, k.cfg.Groups, g, "")
		if unread != nil {
			if _, err := k.cfg.Groups.Entries(ctx, g, circuit.Prefix); err != nil { // it is the store
				if unlessGone(err) != nil {
					return nil, nil, err
				}
				continue
			}
			// A function whose record cannot be read is not taken for one with a closed circuit.
			for name := range functions {
				unreadable[keyFor(g, name)] = true
			}
			broken = errors.Join(broken, unread)
		}
		for _, s := range read {
			byFunction[keyFor(g, s.Function)] = Circuit{
				Function: s.Function, Hub: g.Hub, Group: g.Group, Record: closedIfNone(s.Record), Failures: failuresOf(s), Total: s.Total,
				Instances: s.Tallies, Lag: -1,
			}
			delete(unreadable, keyFor(g, s.Function))
		}
	}
	own, err := k.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range own {
		key := keyFor(e.group(""), e.Name)
		if e.Deleting || e.problem != nil || unreadable[key] {
			continue
		}
		one, found := byFunction[key]
		if !found {
			one = Circuit{Function: e.Name, Hub: e.Hub, Group: e.Group, Record: breaker.Record{State: breaker.Closed}, Lag: -1}
		}
		one.Here = true
		byFunction[key] = one
	}
	all = slices.SortedFunc(maps.Values(byFunction), func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Hub), strings.ToLower(b.Hub)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Function, b.Function))
	})
	return all, broken, nil
}

// functionKey is a function of a group, however that is spelled.
type functionKey struct {
	hub, group, function string
}

func keyFor(g processor.Group, function string) functionKey {
	g = g.Canonical()
	return functionKey{g.Hub, g.Group, function}
}

// unlessGone gives nil for a hub or group that was deleted meanwhile.
func unlessGone(err error) error {
	if _, missing := errors.AsType[*broker.NotFoundError](err); missing {
		return nil
	}
	return err
}

// failuresOf are those of the window, which went with the circuit's term when it opened: from then
// on those that opened it.
func failuresOf(s circuit.Status) int {
	if s.Record.State == breaker.Open || s.Record.State == breaker.HalfOpen {
		return s.Record.Failures
	}
	return s.Failures
}

// ShowCircuit gives one (hub and group may be empty if the name is enough: ErrAmbiguous). A
// function that never had trouble has a closed one, if it is one of the yard's; else nobody knows
// of it: ErrNoCircuit.
func (k *circuits) ShowCircuit(ctx context.Context, hub, group, function string) (Circuit, error) {
	c, err := k.one(ctx, hub, group, function)
	if err != nil {
		return Circuit{}, fmt.Errorf("circuit of function %.120q: %w", function, err)
	}
	c.Lag = k.Lag(ctx, c.group())
	return c, nil
}

func (k *circuits) one(ctx context.Context, hub, group, function string) (Circuit, error) {
	all, broken, err := k.gather(ctx)
	if err != nil {
		return Circuit{}, err
	}
	var found []Circuit
	for _, c := range all {
		want := c.group()
		if hub != "" {
			want.Hub = hub
		}
		if group != "" {
			want.Group = group
		}
		if c.Function == function && sameGroup(want, c.group()) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0 && broken != nil:
		return Circuit{}, broken
	case len(found) == 0:
		return Circuit{}, ErrNoCircuit
	case len(found) == 1:
		return found[0], nil
	}
	if hub == "" && group == "" { // the name alone means the yard's own: anybody who may listen can make one beside it
		if own := slices.DeleteFunc(slices.Clone(found), func(c Circuit) bool { return !c.Here }); len(own) == 1 {
			return own[0], nil
		}
	}
	positions := make([]string, len(found))
	for i, c := range found {
		positions[i] = fmt.Sprintf("group %q of hub %q", c.Group, c.Hub)
	}
	return Circuit{}, fmt.Errorf("%w: %s: say which hub and group are meant", ErrAmbiguous, strings.Join(positions, ", "))
}

// OpenCircuit holds it: no host calls the function until CloseCircuit closes it.
func (k *circuits) OpenCircuit(ctx context.Context, hub, group, function, by, reason string) (Circuit, error) {
	return k.changeCircuit(ctx, hub, group, function, holding(by, reason))
}

// CloseCircuit closes it.
func (k *circuits) CloseCircuit(ctx context.Context, hub, group, function, by, reason string) (Circuit, error) {
	return k.changeCircuit(ctx, hub, group, function, closing(by, reason))
}

func (k *circuits) changeCircuit(ctx context.Context, hub, group, function string, how func(breaker.Record) (breaker.Record, bool)) (Circuit, error) {
	c, err := k.one(ctx, hub, group, function)
	if errors.Is(err, ErrNoCircuit) && hub != "" && group != "" && wellNamed(function) {
		// A function that runs elsewhere and has had no trouble yet is stopped all the same.
		var h broker.Hub
		if h, err = k.cfg.Broker.Hub(hub); err == nil {
			var g broker.Group
			g, err = k.cfg.Broker.Group(ctx, hub, group)
			c = Circuit{Function: function, Hub: h.Name, Group: g.Name}
		}
	}
	if err == nil {
		_, err = circuit.Change(ctx, k.cfg.Groups, c.group(), function, how)
	}
	if err != nil {
		return Circuit{}, fmt.Errorf("change circuit of function %.120q: %w", function, err)
	}
	return k.ShowCircuit(ctx, c.Hub, c.Group, function)
}

// holding is an operator's word to stop.
func holding(by, reason string) func(breaker.Record) (breaker.Record, bool) {
	incident := rand.Text()
	return func(r breaker.Record) (breaker.Record, bool) {
		return breaker.Hold(r, incident, by, reason, time.Now())
	}
}

// closing is an operator's word to go on.
func closing(by, reason string) func(breaker.Record) (breaker.Record, bool) {
	return func(r breaker.Record) (breaker.Record, bool) { return breaker.Resume(r, by, reason, time.Now()) }
}
