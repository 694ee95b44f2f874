package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// log is what this node knows of a log. Engine.mu guards def, revision and handles.
type log struct {
	e    *Engine
	name string

	def      definition // the state is empty while nothing is known
	revision meta.Revision
	handles  map[int]*partition
}

// logLocked gives a log, of which nothing need be known, unless it cannot be used any more.
func (e *Engine) logLocked(name string) (*log, error) {
	l := e.logs[name]
	if l == nil {
		l = &log{e: e, name: name, handles: map[int]*partition{}}
	}
	if err := e.usableLocked(l); err != nil {
		return nil, err
	}
	e.logs[name] = l
	return l, nil
}

// Provide is eventlog.Engine's: it writes the log's entry, then makes its streams.
func (e *Engine) Provide(ctx context.Context, name string, shape eventlog.Shape) error {
	if err := e.provide(ctx, name, shape); err != nil {
		return fmt.Errorf("provide log %s: %w", name, err)
	}
	return nil
}

func (e *Engine) provide(ctx context.Context, name string, shape eventlog.Shape) error {
	if err := errors.Join(checkID(eventlog.PartitionID{Log: name}), shape.Check(), e.checkServers()); err != nil {
		return err
	}
	e.mu.Lock()
	l, err := e.logLocked(name)
	if err == nil {
		e.watchLocked()
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	d, err := e.change(ctx, l, func(d definition) definition { return d.provide(shape, e.cfg.hubStreams(shape)) })
	if err != nil || d.state != isNew {
		return err
	}
	return e.makeStreams(ctx, l, d)
}

// hubStreams is how many streams a hub of that shape has.
func (c Config) hubStreams(shape eventlog.Shape) int {
	if c.HubStreams > 0 {
		return max(min(c.HubStreams, maxStreams, shape.Partitions), 1)
	}
	return hubStreams(shape.Partitions)
}

// change changes a log's entry, unless that changes nothing. A removed log stays as it is:
// ErrRemoved.
func (e *Engine) change(ctx context.Context, l *log, how func(definition) definition) (definition, error) {
	e.mu.Lock()
	d, revision := l.def, l.revision
	e.mu.Unlock()
	if revision == 0 { // it was not used here yet
		var err error
		if d, revision, err = e.read(ctx, l.name); err != nil {
			return d, err
		}
	}
	for {
		next := how(d)
		switch {
		case d.state == isRemoved:
			return d, eventlog.ErrRemoved
		case next == d:
			return d, nil
		}
		made, err := e.cfg.Store.CompareAndSet(ctx, keyPrefix+l.name, revision, next.encode())
		switch {
		case err == nil:
			e.learn(l.name, next, made)
			return next, nil
		case !errors.Is(err, meta.ErrConflict):
			return d, storeError(ctx, err)
		}
		if d, revision, err = e.read(ctx, l.name); err != nil {
			return d, err
		}
	}
}

// makeStreams makes the streams of a new log. Who removes it meanwhile changes its entry first: then
// that cannot be changed here, and they are taken back.
func (e *Engine) makeStreams(ctx context.Context, l *log, d definition) error {
	for _, stream := range streamsOf(l.name, d) {
		cfg := streams.Config{Replicas: e.cfg.Replicas, MaxBytes: e.cfg.MaxStreamBytes}
		if err := e.cfg.Storage.Make(ctx, stream, cfg); err != nil {
			return e.storageError(ctx, err)
		}
	}
	_, err := e.change(ctx, l, func(d definition) definition {
		if d.state == isNew {
			d.state = isLive
		}
		return d
	})
	if errors.Is(err, eventlog.ErrRemoved) {
		return errors.Join(err, e.deleteStreams(ctx, l.name, d))
	}
	return err
}

// Remove is eventlog.Engine's: it writes the log's entry, then deletes its streams. What shares a
// stream with others is purged from it.
func (e *Engine) Remove(ctx context.Context, name string) error {
	if err := e.remove(ctx, name); err != nil {
		return fmt.Errorf("remove log %s: %w", name, err)
	}
	return nil
}

func (e *Engine) remove(ctx context.Context, name string) error {
	if err := checkID(eventlog.PartitionID{Log: name}); err != nil {
		return err
	}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return eventlog.ErrClosed
	}
	for {
		d, revision, err := e.read(ctx, name)
		if err != nil {
			return err
		}
		if d.state == "" { // nobody has ever provided it, and from now on nobody can
			d = definition{partitions: 1, streams: 1}
		}
		if d.state != isRemoved {
			gone := d
			gone.state, gone.removedMS = isRemoved, e.stamp(time.Now())
			revision, err = e.cfg.Store.CompareAndSet(ctx, keyPrefix+name, revision, gone.encode())
			if errors.Is(err, meta.ErrConflict) {
				continue
			}
			if err != nil {
				return storeError(ctx, err)
			}
			e.learn(name, gone, revision)
		}
		return e.deleteStreams(ctx, name, d)
	}
}

// deleteStreams deletes what a removed log has in streams.
func (e *Engine) deleteStreams(ctx context.Context, name string, d definition) error {
	if d.kind != eventlog.KindHub {
		for number := range d.partitions {
			if err := e.purge(ctx, addressOf(name, d, number)); err != nil {
				return e.storageError(ctx, err)
			}
		}
		return nil
	}
	for _, stream := range streamsOf(name, d) {
		if err := e.cfg.Storage.Delete(ctx, stream); err != nil {
			return e.storageError(ctx, err)
		}
	}
	return nil
}

// purgeMessages is how many messages of one subject are purged at once: it stops the stream.
const purgeMessages = 1000

// purge removes all messages of a subject, in steps. A stream may be new, and not answer for a moment.
func (e *Engine) purge(ctx context.Context, at address) error {
	for late := time.Now().Add(askPatience); ; {
		err := e.purgeOnce(ctx, at)
		if !errors.Is(err, streams.ErrUnavailable) || time.Now().After(late) || sleep.About(ctx, retryPause) != nil {
			return err
		}
	}
}

func (e *Engine) purgeOnce(ctx context.Context, at address) error {
	for {
		part, err := e.cfg.Storage.Read(ctx, at.stream, streams.Query{From: 1, Subject: at.subject, MaxMessages: purgeMessages, MaxBytes: fetchBytes})
		if errors.Is(err, streams.ErrNoStream) {
			return nil
		}
		if err != nil || len(part.Messages) == 0 {
			return err
		}
		last := part.Messages[len(part.Messages)-1].Seq
		if err := e.cfg.Storage.Purge(ctx, at.stream, at.subject, last+1); err != nil {
			return err
		}
		if !part.More {
			return nil
		}
	}
}

// definitionOf gives what is known of a log, and reads its entry where nothing is. One that nobody has
// provided is ErrUnavailable.
func (e *Engine) definitionOf(ctx context.Context, l *log) (definition, error) {
	e.mu.Lock()
	d, err := l.def, e.usableLocked(l)
	if err == nil {
		e.watchLocked()
	}
	e.mu.Unlock()
	if err != nil || d.state != "" {
		return d, err
	}
	if d, _, err = e.read(ctx, l.name); err != nil {
		return d, err
	}
	switch d.state {
	case "":
		return d, fmt.Errorf("log %s was not provided: %w", l.name, eventlog.ErrUnavailable)
	case isRemoved:
		return d, eventlog.ErrRemoved
	}
	return d, nil
}

// read reads a log's entry, and takes notice of it. Its state is empty where there is none.
func (e *Engine) read(ctx context.Context, name string) (definition, meta.Revision, error) {
	known := forgetting{e}.revisionOf(name)
	entry, err := e.cfg.Store.Get(ctx, keyPrefix+name)
	if errors.Is(err, meta.ErrNotFound) {
		if d, asKnown := (forgetting{e}).forgotten(name, known); asKnown {
			return d, 0, nil
		}
		return e.read(ctx, name) // it was provided meanwhile
	}
	if err != nil {
		return definition{}, 0, storeError(ctx, err)
	}
	d, err := decodeDefinition(entry.Value)
	if err != nil {
		return definition{}, 0, fmt.Errorf("entry of log %s: %w", name, err)
	}
	e.learn(name, d, entry.Revision)
	return d, entry.Revision, nil
}

// isRemoved looks at a log's entry, as it is now.
func (e *Engine) isRemoved(ctx context.Context, name string) bool {
	if err := e.cfg.Store.Fresh(ctx, keyPrefix); err != nil {
		return false
	}
	d, _, err := e.read(ctx, name)
	return err == nil && d.state == isRemoved
}

// learn takes notice of a log's entry. Who waits in a removed log hears of it.
func (e *Engine) learn(name string, d definition, revision meta.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.logs[name]
	if l == nil && d.state == isRemoved {
		l = &log{e: e, name: name, handles: map[int]*partition{}}
		e.logs[name] = l
	}
	if l == nil || revision <= l.revision {
		return
	}
	l.def, l.revision = d, revision
	if d.state != isRemoved {
		return
	}
	e.removed.Store(name, true)
	for _, p := range l.handles {
		if part := p.part.Load(); part != nil {
			part.s.mu.Lock()
			part.endLocked(eventlog.ErrRemoved)
			part.s.mu.Unlock()
		}
	}
	if d.kind == eventlog.KindHub {
		for _, stream := range streamsOf(name, d) {
			if s := e.streams[stream]; s != nil {
				s.end()
				delete(e.streams, stream)
			}
		}
	}
}

// watchLocked has the entries of logs watched from now on.
func (e *Engine) watchLocked() {
	if !e.watching && !e.closed {
		e.watching = true
		e.start(e.watch)
	}
}

// watch takes notice of what other nodes change. What it misses is found out by who uses the log.
func (e *Engine) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := e.cfg.Store.Watch(ctx, keyPrefix)
		var changes []meta.Change
		for err == nil {
			if changes, err = w.Next(); err == nil {
				e.learnAll(changes)
			}
		}
		if errors.Is(err, meta.ErrClosed) || sleep.About(ctx, quietAge) != nil {
			return
		}
	}
}

func (e *Engine) learnAll(changes []meta.Change) {
	for _, c := range changes {
		name := c.Key[len(keyPrefix):]
		d, err := decodeDefinition(c.Value)
		switch {
		case c.Deleted:
			forgetting{e}.forgotten(name, c.Revision)
		case err != nil:
			e.cfg.Log.Error("entry of a log cannot be read", "log", name, "error", err)
		default:
			e.learn(name, d, c.Revision)
		}
	}
}

// storeError gives what a caller hears of an error of the meta store.
func storeError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, meta.ErrClosed):
		return eventlog.ErrClosed
	case errors.Is(err, meta.ErrNoSpace):
		return fmt.Errorf("%w: %w", eventlog.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
}

// storageError gives what a caller hears of an error of the storage.
func (e *Engine) storageError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, streams.ErrClosed):
		return eventlog.ErrClosed
	case errors.Is(err, streams.ErrNoSpace):
		return fmt.Errorf("%w: %w", eventlog.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
}
