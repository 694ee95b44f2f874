package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/panics"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/tracing"
)

// function is a handler with its binding, and everything that this instance has of it.
type function struct {
	Binding
	name    string
	host    *Host
	raw     Handler       // as it was given
	http    *httpFunction // what is behind it, if it calls a program
	handler Handler       // with the middleware around it
	policy  triage.Policy
	hub     Source
	store   processor.Store
	group   processor.Group
	circuit *circuit.Member
	work    *processor.Processor
	target  target // of poison; set by run, before there are workers; nil: it is dropped
	works   workReader
	log     *slog.Logger        // with function, hub and group
	tracer  tracing.Tracer      // nil: there are no spans
	onCall  func(*Batch, Ended) // nil: nobody is told

	open    atomic.Bool // the circuit is not closed, as far as it is known here
	needs   endpoint
	counts  counts
	last    lastError
	bad     sparing // of failed calls
	putAway sparing
	waiting waiting
}

// bind finds out whether the function can run, without asking anybody.
func (f *function) bind() error {
	if err := checkName(f.name); err != nil {
		return err
	}
	if f.raw == nil {
		return fmt.Errorf("function %s: its handler is nil", f.name)
	}
	err := f.validate()
	if f.http = httpOf(f.raw); f.http != nil && f.http.err != nil {
		err = f.http.err
	}
	if err != nil {
		return fmt.Errorf("function %s: %w", f.name, err)
	}
	f.hub = f.host.space.Hub(f.Hub)
	f.group = processor.Group{Namespace: f.hub.Namespace(), Hub: f.hub.Name(), Group: f.Group}
	if f.store = f.host.cfg.Store; f.store == nil {
		f.store, err = processor.StoreOf(f.hub)
	}
	if err != nil {
		return fmt.Errorf("function %s: %w", f.name, err)
	}
	f.handler = Chain(f.raw, f.Middleware...)
	f.work = processor.New(f.hub, f.processor())
	f.circuit = circuit.New(circuit.Config{
		Store: f.store, Group: f.group, Function: f.name, Instance: f.host.id, Policy: f.Breaker.policy(),
		Poll: f.host.cfg.Poll, OnChange: f.changed, Log: f.host.cfg.Log,
	})
	return nil
}

// run works until ctx ends, and then in good order to the end. Only what waiting cannot mend is an
// error.
func (f *function) run(ctx context.Context) error {
	err := f.findTarget(ctx)
	if wrong := f.misbound(ctx); wrong != nil {
		err = wrong // for want of it there may be no place, either
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("function %s: %w", f.name, err)
	}
	if f.http != nil {
		defer f.http.caller.Close()
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // workers need the circuit until the last has ended
	done := make(chan error, 1)
	go func() { done <- f.circuit.Run(watching) }()
	err = f.work.RunHost(ctx, func(string) processor.Worker { return &worker{fn: f} })
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return fmt.Errorf("function %s: %w", f.name, err)
	}
	return nil
}

// misbound tells of a hub or group that is not there, before anybody complains of what that leads
// to. Whatever else is wrong may pass, and is waited for by those who need it. A store that is not
// the yard's knows of no groups: the processor finds out.
func (f *function) misbound(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	remedy := func(command string) string {
		if f.host.cfg.Store != nil {
			return ""
		}
		return ": create it with: eventyard " + command
	}
	if _, err := f.hub.Info(ctx); errors.Is(err, hub.ErrNotFound) {
		return &plainError{"no hub " + f.Hub + remedy("hub create "+f.Hub), err}
	}
	if _, err := f.store.Entries(ctx, f.group, circuit.Prefix+f.name); errors.Is(err, hub.ErrNotFound) {
		return &plainError{fmt.Sprintf("no group %q in hub %s", f.Group, f.Hub) + remedy("group create "+f.Hub+" "+f.Group), err}
	}
	return nil
}

// findTarget sees to it that there is a target for poison before anything can turn into it. A
// namespace that does not answer is waited for.
func (f *function) findTarget(ctx context.Context) error {
	if f.PoisonTo != nil {
		f.target = sinkTarget{f.PoisonTo}
		return nil
	}
	if f.Poison == NoPoison {
		return nil
	}
	to := f.host.space.Hub(f.Poison)
	for failures := 1; ; failures++ {
		info, err := to.Info(ctx)
		switch {
		case err == nil:
			f.target = &hubTarget{hub: to, kept: make(chan struct{}, keptProducers), partitions: info.Partitions}
			return nil
		case errors.Is(err, hub.ErrNotFound):
			return &plainError{fmt.Sprintf("there is no hub %s for its poison: make it (eventyard hub create %s --partitions 1), or name another in "+
				"Binding.Poison, set Binding.PoisonTo, or drop poison events with functions.NoPoison", f.Poison, f.Poison), err}
		case errors.Is(err, hub.ErrUnauthorized):
			return fmt.Errorf("look for the hub %s for its poison: %w", f.Poison, err)
		}
		f.report("", "look for the hub "+f.Poison+" for its poison", err)
		if err := sleep(ctx, nil, backoff(failures)); err != nil {
			return err
		}
	}
}

// changed hears of the circuit.
func (f *function) changed(_, is breaker.Record) {
	f.open.Store(!is.Closed())
	if f.host.cfg.OnCircuit == nil {
		return
	}
	if bad := panics.Call(func() error { f.host.cfg.OnCircuit(f.circuitOf(is, is.Failures)); return nil }); bad != nil {
		f.log.Error("Config.OnCircuit panicked", keyError, bad)
	}
}

// allOurs tells whether none of the events was redriven for another function. Few have properties
// that say so.
func (f *function) allOurs(events []event.Event) bool {
	for i := range events {
		if !f.ours(&events[i]) {
			return false
		}
	}
	return true
}

func (f *function) ours(ev *event.Event) bool {
	if ev.Properties == nil {
		return true
	}
	to := poison.For(*ev)
	return to == "" || to == f.name
}

// report tells of what went wrong and is carried on from.
func (f *function) report(partition, doing string, err error) {
	f.reportStep(StepOther, partition, doing, err)
}

func (f *function) reportStep(step Step, partition, doing string, err error) {
	f.last.set(err)
	if f.host.cfg.OnError == nil {
		f.log.Warn("something went wrong and is tried again", keyPartition, partition, "doing", doing, keyError, err)
		return
	}
	f.notify(&Error{Function: f.name, Partition: partition, Step: step, Doing: doing, Err: err})
}

// failed tells of a call that did. Now and then it is logged, too, whoever hears of it: with
// retries for ever it is the only sign of life.
func (f *function) failed(partition string, u triage.Unit, out outcome) {
	f.last.set(out.err)
	attempt := u.Tries() + 1
	f.bad.warn(f.log, "a call failed", keyPartition, partition, "first", u.Events.First(), "attempt", attempt, keyError, out.err)
	if f.host.cfg.OnError != nil {
		f.notify(&Error{Function: f.name, Partition: partition, Step: StepCall, Doing: fmt.Sprintf("call the function, attempt %d", attempt), Err: out.err})
	}
}

// notify calls the user's function, whose panic is not to end the partition's work.
func (f *function) notify(err error) {
	if bad := panics.Call(func() error { f.host.cfg.OnError(err); return nil }); bad != nil {
		f.log.Error("Config.OnError panicked", keyError, bad)
	}
}
