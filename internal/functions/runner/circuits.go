package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

func (c Circuit) group() processor.Group { return processor.Group{Hub: c.Hub, Group: c.Group} }

// ListCircuits gives the circuits of all groups, by hub, group and function: those of functions that ever had trouble, wherever they run, and
// those of the yard's own.
//
// One whose record cannot be read is left out and reported: the others are needed all the more then.
func (k *Registry) ListCircuits(ctx context.Context) ([]Circuit, error) {
	all, broken, err := k.circuits(ctx)
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

// circuits are all of them, without lag, and what is wrong with those that cannot be read. The store is asked once for whose entries there
// are, whatever the number of hubs, and then about those groups that have any.
func (k *Registry) circuits(ctx context.Context) (all []Circuit, broken, err error) {
	found, err := k.cfg.Groups.FindEntries(ctx, circuit.Prefix, circuit.TallyPrefix)
	if err != nil {
		return nil, nil, err
	}
	names := map[processor.Group]map[string]bool{}
	for _, f := range found {
		if names[f.Group] == nil {
			names[f.Group] = map[string]bool{}
		}
		names[f.Group][functionOf(f.Key)] = true
	}
	c := collected{byFunction: map[functionKey]Circuit{}, broken: map[functionKey]bool{}}
	for g, functions := range names {
		unread, err := k.read(ctx, c, g, functions)
		if err != nil {
			return nil, nil, err
		}
		broken = errors.Join(broken, unread)
	}
	if err := k.addOwn(ctx, c); err != nil {
		return nil, nil, err
	}
	return c.sorted(), broken, nil
}

// functionOf is whose an entry of a circuit is.
func functionOf(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// functionKey is a function of a group, however that is spelled.
type functionKey struct {
	hub, group, function string
}

func keyFor(g processor.Group, function string) functionKey {
	g = g.Canonical()
	return functionKey{g.Hub, g.Group, function}
}

type collected struct {
	byFunction map[functionKey]Circuit
	broken     map[functionKey]bool
}

// read adds the circuits of a group that has entries of these functions. One of them that is not given has a record that cannot be read,
// and is not taken for a closed one.
func (k *Registry) read(ctx context.Context, c collected, g processor.Group, functions map[string]bool) (broken, err error) {
	all, broken := circuit.Read(ctx, k.cfg.Groups, g, "")
	if broken != nil {
		if _, err := k.cfg.Groups.Entries(ctx, g, circuit.Prefix); err != nil {
			return nil, unlessGone(err) // it is the store
		}
		for name := range functions {
			c.broken[keyFor(g, name)] = true
		}
	}
	for _, s := range all {
		c.byFunction[keyFor(g, s.Function)] = circuitOf(g, s)
		delete(c.broken, keyFor(g, s.Function))
	}
	return broken, nil
}

// unlessGone gives nil for a group that was deleted meanwhile.
func unlessGone(err error) error {
	var missing *broker.NotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	return err
}

func closedCircuit(g processor.Group, function string) Circuit {
	return Circuit{Function: function, Hub: g.Hub, Group: g.Group, Record: breaker.Record{State: breaker.Closed}, Lag: -1}
}

func circuitOf(g processor.Group, s circuit.Status) Circuit {
	return Circuit{
		Function: s.Function, Hub: g.Hub, Group: g.Group, Record: closedIfNone(s.Record), Failures: failuresOf(s), Total: s.Total,
		Instances: s.Tallies, Lag: -1,
	}
}

// failuresOf are those of the window, which went with the circuit's term when it opened: from then on those that opened it.
func failuresOf(s circuit.Status) int {
	if s.Record.State == breaker.Open || s.Record.State == breaker.HalfOpen {
		return s.Record.Failures
	}
	return s.Failures
}

// addOwn adds those of the yard's functions, and marks them.
func (k *Registry) addOwn(ctx context.Context, c collected) error {
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Deleting || e.problem != nil {
			continue
		}
		key := keyFor(e.group(""), e.Name)
		one, found := c.byFunction[key]
		if c.broken[key] {
			continue
		}
		if !found {
			one = closedCircuit(e.group(""), e.Name)
		}
		one.Here = true
		c.byFunction[key] = one
	}
	return nil
}

func (c collected) sorted() []Circuit {
	all := make([]Circuit, 0, len(c.byFunction))
	for _, one := range c.byFunction {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Hub), strings.ToLower(b.Hub)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Function, b.Function))
	})
	return all
}

// ShowCircuit gives one (hub and group may be empty if the name is enough: ErrAmbiguous). A function that never had trouble has a closed one, if it is one
// of the yard's; else nobody knows of it: ErrNoCircuit.
func (k *Registry) ShowCircuit(ctx context.Context, hub, group, function string) (Circuit, error) {
	c, err := k.one(ctx, hub, group, function)
	if err != nil {
		return Circuit{}, fmt.Errorf("circuit of function %.120q: %w", function, err)
	}
	c.Lag = k.Lag(ctx, c.group())
	return c, nil
}

func (k *Registry) one(ctx context.Context, hub, group, function string) (Circuit, error) {
	all, broken, err := k.circuits(ctx)
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
		return Circuit{}, fmt.Errorf("%w: `eventyard circuit list` shows all; a function that runs elsewhere has one once it had a failure", ErrNoCircuit)
	case len(found) == 1:
		return found[0], nil
	}
	positions := make([]string, len(found))
	for i, c := range found {
		positions[i] = fmt.Sprintf("group %q of hub %q", c.Group, c.Hub)
	}
	return Circuit{}, fmt.Errorf("%w: %s: say which hub and group are meant", ErrAmbiguous, strings.Join(positions, ", "))
}

// OpenCircuit holds it: no host calls the function until CloseCircuit closes it.
func (k *Registry) OpenCircuit(ctx context.Context, hub, group, function, by, reason string) (Circuit, error) {
	return k.changeCircuit(ctx, hub, group, function, holding(by, reason))
}

// CloseCircuit closes it.
func (k *Registry) CloseCircuit(ctx context.Context, hub, group, function, by, reason string) (Circuit, error) {
	return k.changeCircuit(ctx, hub, group, function, closing(by, reason))
}

func (k *Registry) changeCircuit(ctx context.Context, hub, group, function string, how func(breaker.Record) (breaker.Record, bool)) (Circuit, error) {
	c, err := k.one(ctx, hub, group, function)
	if errors.Is(err, ErrNoCircuit) && hub != "" && group != "" {
		c, err = k.unheardOf(ctx, hub, group, function)
	}
	if err == nil {
		_, err = circuit.Change(ctx, k.cfg.Groups, c.group(), function, how)
	}
	if err != nil {
		return Circuit{}, fmt.Errorf("change circuit of function %.120q: %w", function, err)
	}
	return k.ShowCircuit(ctx, c.Hub, c.Group, function)
}

// unheardOf is a circuit of a function that runs elsewhere and has had no trouble yet: it is stopped all the same.
func (k *Registry) unheardOf(ctx context.Context, hub, group, function string) (Circuit, error) {
	if !wellNamed(function) {
		return Circuit{}, ErrNoCircuit
	}
	h, err := k.cfg.Broker.Hub(hub)
	if err != nil {
		return Circuit{}, err
	}
	g, err := k.cfg.Broker.Group(ctx, hub, group)
	return Circuit{Function: function, Hub: h.Name, Group: g.Name}, err
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
