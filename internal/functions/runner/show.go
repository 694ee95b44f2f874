package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/hubs/groups"
)

// States of a function.
const (
	StateRunning  = "running"
	StatePaused   = "paused"    // held by an operator
	StateOpen     = "open"      // too many failures
	StateHalfOpen = "half-open" // an event is tried
	StateStarting = "starting"
	StateFailing  = "failing" // it cannot run; Problem says why
)

// Function is a definition and how it is.
type Function struct {
	// Definition has its defaults filled in.
	Definition
	// State is running, paused (held by an operator), open, half-open, starting, or failing (it
	// cannot run; Problem says why).
	State   string
	Problem string
	Circuit breaker.Record
	// Failures within the window, over all instances; while it is open those that opened it.
	Failures int
	Lag      int64 // -1: unknown
	// Oldest is how long the oldest waiting event has waited; -1: unknown.
	Oldest time.Duration
	// Instances present in the group, Recommended from the lag (F7, scale).
	Instances, Recommended int
	Partitions             int
	// Counts of this node since it started.
	Counts functions.Status
	// Poison target in full: the name of a hub, topic:NAME or none; Poisoned how many poison events are
	// there and not redriven, -1: unknown, and PoisonedMore that not all were counted.
	PoisonTarget string
	Poisoned     int
	PoisonedMore bool
	LastError    string
	LastErrorAt  time.Time
}

// maxCounted is how many poison events are counted.
const maxCounted = 1000

// List gives all by name, Show one.
func (k *Registry) List(ctx context.Context) ([]Function, error) {
	return k.list(ctx, true)
}

func (k *Registry) list(ctx context.Context, poison bool) ([]Function, error) {
	all, err := k.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("list functions: %w", err)
	}
	list := make([]Function, 0, len(all))
	for _, e := range all {
		if !e.Deleting {
			list = append(list, k.function(ctx, e, poison))
		}
	}
	return list, nil
}

// Show gives one function. ErrNotFound.
func (k *Registry) Show(ctx context.Context, name string) (Function, error) {
	e, err := k.find(ctx, name)
	if err != nil {
		return Function{}, fmt.Errorf("show function: %w", err)
	}
	return k.function(ctx, e, true), nil
}

// function gathers what there is to know of one. What cannot be learned is left unknown, and told
// as its problem: the rest is needed all the more then.
func (k *Registry) function(ctx context.Context, e *entry, poison bool) Function {
	f := Function{Definition: e.withDerived(), State: StateStarting, Lag: -1, Oldest: -1, PoisonTarget: e.Poison, Poisoned: -1}
	f.Circuit.State = breaker.Closed
	if e.problem != nil {
		f.State, f.Problem = StateFailing, e.problem.Error()
		return f
	}
	problem := cmp.Or(k.addWork(e, &f), k.addTable(ctx, &f), k.addCircuit(ctx, &f))
	if name, is := f.PoisonHub(); is && poison && k.cfg.Box != nil {
		if n, more, err := k.cfg.Box.Count(ctx, name, f.Name, maxCounted); err == nil {
			f.Poisoned, f.PoisonedMore = n, more
		}
	}
	if problem != nil {
		f.State, f.Problem = StateFailing, problem.Error()
	}
	return f
}

// addWork adds what this node's host knows.
func (k *Registry) addWork(e *entry, f *Function) error {
	k.mu.Lock()
	j := k.jobs[e.key]
	if j == nil {
		k.mu.Unlock()
		return nil
	}
	host, before, problem := j.host, j.before, j.problem
	k.mu.Unlock()
	f.Counts = plus(before, statusOf(host)) // which asks the host, that has locks of its own
	f.Counts.Function, f.Counts.Hub, f.Counts.Group = f.Name, f.Hub, f.Group
	f.LastError, f.LastErrorAt = f.Counts.LastError, f.Counts.LastErrorAt
	if host != nil {
		f.State = StateRunning
	}
	if problem == nil && f.Counts.Waiting != "" {
		problem = errors.New(f.Counts.Waiting)
	}
	return problem
}

func (k *Registry) addTable(ctx context.Context, f *Function) error {
	t, err := k.cfg.Groups.Table(ctx, f.Hub, f.Group)
	if err != nil && unlessGone(err) == nil {
		return fmt.Errorf("%w, or delete the function", err)
	}
	if err != nil {
		return err
	}
	f.Partitions = len(t.Partitions)
	f.Lag, f.Oldest = lagOf(t)
	f.Recommended = t.Recommended(f.Target)
	for _, i := range t.Instances {
		if i.Alive && (i.Present || i.Partitions > 0) {
			f.Instances++
		}
	}
	return nil
}

// lagOf sums up a table; -1 where nothing is known of any partition.
func lagOf(t groups.Table) (lag int64, oldest time.Duration) {
	lag, oldest = -1, -1
	for _, row := range t.Partitions {
		if row.Lag != nil {
			lag = max(lag, 0) + row.Lag.Events
			oldest = max(oldest, row.Lag.Oldest)
		}
	}
	return lag, oldest
}

func (k *Registry) addCircuit(ctx context.Context, f *Function) error {
	all, err := circuit.Read(ctx, k.cfg.Groups, f.group(k.cfg.Broker.Namespace()), f.Name)
	if unlessGone(err) != nil { // what is gone addTable has told
		return fmt.Errorf("its circuit cannot be read: %w", err)
	}
	for _, s := range all {
		f.Circuit, f.Failures = closedIfNone(s.Record), failuresOf(s)
	}
	switch f.Circuit.State {
	case breaker.Held:
		f.State = StatePaused
	case breaker.Open:
		f.State = StateOpen
	case breaker.HalfOpen:
		f.State = StateHalfOpen
	}
	return nil
}

// closedIfNone says closed of a circuit that never had another state.
func closedIfNone(r breaker.Record) breaker.Record {
	r.State = cmp.Or(r.State, breaker.Closed)
	return r
}

// Pause holds the circuit, and with it all hosts of the function, wherever they are; by says who.
// It needs no host to be running.
func (k *Registry) Pause(ctx context.Context, name, by, reason string) (Function, error) {
	return k.changeFunction(ctx, name, holding(by, reason))
}

// ResumeFunction closes the circuit.
func (k *Registry) ResumeFunction(ctx context.Context, name, by string) (Function, error) {
	return k.changeFunction(ctx, name, closing(by, ""))
}

func (k *Registry) changeFunction(ctx context.Context, name string, how func(breaker.Record) (breaker.Record, bool)) (Function, error) {
	e, err := k.find(ctx, name)
	if err == nil && e.problem != nil {
		err = e.problem
	}
	if err != nil {
		return Function{}, err
	}
	if _, err := circuit.Change(ctx, k.cfg.Groups, e.group(k.cfg.Broker.Namespace()), e.Name, how); err != nil {
		return Function{}, fmt.Errorf("change circuit of function %q: %w", name, err)
	}
	return k.function(ctx, e, true), nil
}

// Counts is what this node's hosts have counted since they started, function by function. It does no I/O.
func (k *Registry) Counts() (all []functions.Status) {
	for _, item := range k.definitions.Items() {
		if e := item.Value; e != nil && e.problem == nil && !e.Deleting {
			f := Function{Definition: e.withDerived()}
			_ = k.addWork(e, &f) // a host in trouble has counted all the same
			f.Counts.Function = f.Name
			all = append(all, f.Counts)
		}
	}
	return all
}
