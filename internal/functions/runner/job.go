package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
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
	ran     *Definition      // that last had a host; nil: none
	host    *functions.Host  // nil: none runs
	before  functions.Status // counts of hosts that ended
	problem error            // why none runs; nil: it is starting
	over    bool             // the function was deleted; one that has its name now is another job's
}

func newJob(key string) *job {
	return &job{key: key, poke: make(chan struct{}, 1), done: make(chan struct{})}
}

func (j *job) wake() {
	select {
	case j.poke <- struct{}{}:
	default:
	}
}

// work does what the definition asks for until ctx ends or it is gone.
func (k *Registry) work(ctx context.Context, j *job) {
	defer close(j.done)
	for failures := 0; ; {
		e := k.wanted(ctx, j)
		if e == nil {
			return
		}
		began := time.Now()
		err := k.turn(ctx, j, e)
		k.note(j, err)
		if err == nil || time.Since(began) > steady {
			failures = 0
		}
		if err != nil {
			failures++
			k.log.Warn("a function cannot go on, it is tried again", "function", e.Name, "error", err)
			k.rest(ctx, j, e, min(firstRetry<<min(failures-1, 10), maxRetry))
		}
	}
}

// rest waits before the next try, which a change of the definition brings at once.
func (k *Registry) rest(ctx context.Context, j *job, e *entry, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for k.newest(j) == e { // which may have changed while its host ran
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-j.poke:
		}
	}
}

// newest is what is known of the job's definition.
func (k *Registry) newest(j *job) *entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[j.key]
}

// turn does one thing for the function.
func (k *Registry) turn(ctx context.Context, j *job, e *entry) error {
	switch {
	case e.gone, e.Deleting:
		return k.leave(ctx, j, e)
	case e.problem != nil:
		k.idle(ctx, j, e)
		return nil
	}
	return k.host(ctx, j, e)
}

// idle waits for a definition that can be read.
func (k *Registry) idle(ctx context.Context, j *job, e *entry) {
	for k.newest(j) == e {
		select {
		case <-j.poke:
		case <-ctx.Done():
			return
		}
	}
}

// wanted is what the job has to do; nil: nothing any more, and it is not known as a job any more either.
func (k *Registry) wanted(ctx context.Context, j *job) *entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.known[j.key]
	if ctx.Err() != nil || j.over || e.gone && j.ran == nil {
		delete(k.jobs, j.key)
		if j.over {
			k.report() // there may be another by now
		}
		return nil
	}
	return e
}

// leave finishes a deletion, and forgets the entries that our host has left in its group, perhaps after somebody else removed the function's.
func (k *Registry) leave(ctx context.Context, j *job, e *entry) error {
	k.mu.Lock()
	ran := j.ran
	k.mu.Unlock()
	if ran != nil {
		if err := k.forgetRan(ctx, j.key, *ran); err != nil {
			return err
		}
	}
	if !e.gone {
		if err := k.finish(ctx, e); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	j.ran, j.over = nil, true
	return nil
}

// forgetRan forgets what our host has left, unless there is another function of that name by now: the entries are that one's.
func (k *Registry) forgetRan(ctx context.Context, key string, ran Definition) error {
	there, err := k.cfg.Meta.Get(ctx, key)
	if err == nil && !decode(there).Deleting {
		return nil
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("read definition: %w", err)
	}
	return k.forget(ctx, ran)
}

// host runs the function until ctx ends, its definition is another, or it cannot go on.
func (k *Registry) host(ctx context.Context, j *job, e *entry) (err error) {
	if err := k.provide(ctx, e.Definition); err != nil { // its hub may have been made anew
		return err
	}
	need := k.need(e.Definition)
	link, err := k.links.get(ctx, need)
	if err != nil {
		return err
	}
	defer func() { k.links.giveBack(link, need, errors.Is(err, hub.ErrClosed)) }()
	d := e.Definition
	var sink functions.Sink
	if topic, is := d.poisonTopic(); is {
		sink = topicSink{k, topic}
	}
	ear := newEar(k.log)
	h := functions.NewHost(link.client, functions.Config{
		Store: k.cfg.Groups, ID: k.id, Lease: k.cfg.Lease, Stop: k.cfg.Stop, Log: k.log, OnError: ear.heard,
	})
	h.Handle(d.Name, d.handler(k.cfg.HTTP), d.binding(sink))
	k.start(j, d, h)
	defer k.stop(j, h)
	err = k.runHost(ctx, j, d, h, ear)
	if err == nil && ctx.Err() == nil && k.keeps(j, d) {
		err = errors.New("the host ended by itself")
	}
	return err
}

// need is how much room a function needs on a connection: it may read each partition, and write poison events for it.
func (k *Registry) need(d Definition) int {
	h, err := k.cfg.Broker.Hub(d.Hub)
	if err != nil {
		return 1 // it says so soon enough
	}
	return min(2*h.Partitions, linkRoom)
}

// runHost runs a host, and ends it when the definition has changed or it cannot carry on.
func (k *Registry) runHost(ctx context.Context, j *job, d Definition, h *functions.Host, ear *ear) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watching := make(chan struct{})
	var lost error
	go func() {
		defer close(watching)
		for {
			select {
			case <-ctx.Done():
				return
			case lost = <-ear.lost:
				stop(lost)
			case <-ear.placeless:
				_ = k.provide(ctx, d) // the host goes on telling where that does not help
			case <-j.poke:
				if !k.keeps(j, d) {
					stop(nil)
				}
			}
		}
	}()
	err := h.Run(ctx)
	stop(nil)
	<-watching
	if lost != nil {
		err = lost
	}
	if err != nil {
		return fmt.Errorf("run function: %w", err)
	}
	return nil
}

// keeps tells whether a host of this definition does what is wanted.
func (k *Registry) keeps(j *job, d Definition) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.known[j.key]
	return !e.gone && !e.Deleting && e.problem == nil && sameWork(e.Definition, d)
}

func (k *Registry) start(j *job, d Definition, h *functions.Host) {
	k.mu.Lock()
	defer k.mu.Unlock()
	j.ran, j.host, j.problem = &d, h, nil
}

func (k *Registry) stop(j *job, h *functions.Host) {
	last := statusOf(h)
	k.mu.Lock()
	defer k.mu.Unlock()
	j.host, j.before = nil, plus(j.before, last)
}

func (k *Registry) note(j *job, problem error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	j.problem = problem
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
