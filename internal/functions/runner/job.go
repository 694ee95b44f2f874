package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/internal/functions/local"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// How long to wait before a host that could not go on is started anew.
const (
	firstRetry = time.Second
	maxRetry   = 30 * time.Second
	// steady is how long a host has run that was well.
	steady = time.Minute
)

// job is one function's life on this node: its host, run by one goroutine, over and over.
type job struct {
	key  string
	poke chan struct{} // has room for one: the definition may have changed
	done chan struct{} // closed when nothing of it runs any more

	// The following are guarded by the registry's mu.
	stop    context.CancelCauseFunc // ends the host; nil: none runs
	adrift  bool                    // the host's hub for poison is gone
	ran     *Definition             // that last had a host; nil: none
	host    *functions.Host         // nil: none runs
	before  functions.Status        // counts of hosts that ended
	problem error                   // why none runs; nil: it is starting
	over    bool                    // the function was deleted; one that has its name now is another job's
}

// work does what the definition asks for until ctx ends or it is gone.
func (k *supervisor) work(ctx context.Context, j *job) {
	defer close(j.done)
	for failures := 0; ; {
		e, more := k.wanted(ctx, j)
		if !more {
			return
		}
		began := time.Now()
		err := k.turn(ctx, j, e)
		k.mu.Lock()
		j.problem = err
		k.mu.Unlock()
		if err == nil || time.Since(began) > steady {
			failures = 0
		}
		if err != nil {
			failures++
			name := strings.TrimPrefix(j.key, keyPrefix) // the definition may be gone
			if e != nil {
				name = e.Name
			}
			k.log.Warn("a function cannot go on, it is tried again", "function", name, "error", err)
			k.rest(ctx, j, e, min(firstRetry<<min(failures-1, 10), maxRetry))
		}
	}
}

// rest waits for another definition, and so long at most.
func (k *supervisor) rest(ctx context.Context, j *job, e *entry, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for k.known(j.key) == e { // which may have changed while its host ran
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-j.poke:
		}
	}
}

// turn does one thing for the function; e is nil where its definition is gone.
func (k *supervisor) turn(ctx context.Context, j *job, e *entry) error {
	switch {
	case e == nil, e.Deleting:
		return k.leave(ctx, j, e)
	case e.problem != nil:
		k.rest(ctx, j, e, math.MaxInt64) // until it can be read
		return nil
	}
	return k.host(ctx, j, e)
}

// wanted is the definition that the job has to run, nil for one that is gone; false: it has nothing
// to do any more, and is not known as a job any more either.
func (k *supervisor) wanted(ctx context.Context, j *job) (e *entry, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e = k.known(j.key)
	if ctx.Err() != nil || j.over || e == nil && j.ran == nil {
		delete(k.jobs, j.key)
		if j.over {
			k.report() // there may be another by now
		}
		return nil, false
	}
	return e, true
}

// leave finishes a deletion, and forgets the entries that our host has left in its group, perhaps
// after somebody else removed the function's.
func (k *supervisor) leave(ctx context.Context, j *job, e *entry) error {
	k.mu.Lock()
	ran := j.ran
	k.mu.Unlock()
	if ran != nil {
		there, err := k.definitions.Read(ctx, j.key)
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return fmt.Errorf("read definition: %w", err)
		}
		if err != nil || there.Value.Deleting { // else the entries are those of the next function of that name
			if err := k.forget(ctx, *ran); err != nil {
				return err
			}
		}
	}
	if e != nil {
		if err := k.finish(ctx, e); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.ran, j.over = nil, true
	return nil
}

// host runs the function until ctx ends, its definition is another, or it cannot go on.
func (k *supervisor) host(ctx context.Context, j *job, e *entry) error {
	if err := k.provide(ctx, e.Definition); err != nil { // its hub may have been made anew
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h := k.newHost(j, e, stop)
	k.mu.Lock()
	j.ran, j.host, j.problem, j.stop = &e.Definition, h, nil, stop
	if !k.keepsLocked(j) { // it has changed since it was looked at
		stop(nil)
	}
	k.mu.Unlock()
	err := h.Run(ctx)
	last := statusOf(h)
	k.mu.Lock()
	j.host, j.stop, j.before = nil, nil, plus(j.before, last)
	k.mu.Unlock()
	switch lost, is := errors.AsType[lostError](context.Cause(ctx)); {
	case is:
		err = lost.error
	case err == nil && ctx.Err() == nil:
		err = errors.New("the host ended by itself")
	}
	if err != nil {
		return fmt.Errorf("run function: %w", err)
	}
	return nil
}

// newHost has a frame of its own: what it puts together would else stay on the stack of each idle
// function.
func (k *supervisor) newHost(j *job, e *entry, stop context.CancelCauseFunc) *functions.Host {
	d, store := e.Definition, local.NewStore(k.cfg.Groups, k.id)
	if e.OwnRecords {
		store = local.NewStoreOf(k.cfg.Groups, k.id, d.Name, k.log)
	}
	var sink functions.Sink
	if topic, is := d.poisonTopic(); is {
		sink = topicSink{k.catalog, topic}
	}
	ear := &ear{log: k.log, lost: func(err error) { stop(lostError{err}) }, targetLost: func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		j.adrift = true
		k.report()
	}}
	h := functions.NewHostIn(k.hubs, functions.Config{
		Store: store, ID: k.id, Lease: k.cfg.Lease, Stop: k.cfg.Stop, Log: k.log, OnError: ear.heard, OnCall: k.calls.heard, Tracer: k.cfg.Tracer,
	})
	handler := functions.HTTP(d.Endpoint, functions.HTTPConfig{Format: d.Format, Header: d.header(), Client: k.cfg.HTTP})
	h.Handle(d.Name, handler, d.binding(sink))
	return h
}

// lostError is why a host was ended that would have tried for ever.
type lostError struct{ error }

// keepsLocked tells whether the job's host does what is wanted.
func (k *supervisor) keepsLocked(j *job) bool {
	e := k.known(j.key)
	return e != nil && !e.Deleting && e.problem == nil && sameWork(e.Definition, *j.ran)
}

// tend ends hosts whose definition has changed, and gives the definitions of those whose hub for
// poison is gone. Whoever supervises does it for all hosts, which so need no goroutine to watch
// over them.
func (k *supervisor) tend() (adrift []Definition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range k.jobs {
		switch {
		case j.stop == nil:
		case !k.keepsLocked(j):
			j.stop(nil)
		case j.adrift:
			adrift = append(adrift, *j.ran)
		}
		j.adrift = false
	}
	return adrift
}

// statusOf is that of a host's one function.
func statusOf(h *functions.Host) functions.Status {
	if h == nil {
		return functions.Status{}
	}
	if all := h.Status(); len(all) > 0 {
		return all[0]
	}
	return functions.Status{}
}

// plus adds the counts of an earlier host to those of a later one.
func plus(before, s functions.Status) functions.Status {
	s.Calls += before.Calls
	s.Failed += before.Failed
	s.Done += before.Done
	s.Retried += before.Retried
	s.Poisoned += before.Poisoned
	s.Skipped += before.Skipped
	s.Dropped += before.Dropped
	s.Panics += before.Panics
	s.Timeouts += before.Timeouts
	if s.LastError == "" {
		s.LastError, s.LastErrorAt = before.LastError, before.LastErrorAt
	}
	return s
}
