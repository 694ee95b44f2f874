package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// A log that was removed leaves its entry, which keeps nodes that have not heard of it from making it
// anew. That ends when no node can be so late: each would have to stand still for longer than it is
// given here, and what it knows of the log then still says that there was one (see Engine.forgotten).
const (
	// removalHeard is when every node has heard of a removal, or was restarted since.
	removalHeard = 24 * time.Hour
	// removalKept is how long the entry stays.
	removalKept = 7 * 24 * time.Hour
)

// Removed gives the logs of which every node knows by now that they were removed. Who keeps entries of
// its own about logs removes what is left of these; each is given for some days. The order is that of
// their names.
func (e *Engine) Removed(ctx context.Context) (names []string, err error) {
	err = forgetting{e}.eachRemoved(ctx, func(r removal) error {
		if r.age(e.stamp(time.Now())) >= removalHeard {
			names = append(names, r.name)
		}
		return nil
	})
	return names, err
}

// forgetting is the part of an engine that ends the entries of removed logs.
type forgetting struct{ *Engine }

// removal is a log's entry that says removed.
type removal struct {
	definition
	name     string
	revision meta.Revision
}

// age is how long before a time, in milliseconds, the log was removed; zero where the entry does not say.
func (r removal) age(nowMS int64) time.Duration {
	if r.removedMS == 0 {
		return 0
	}
	return time.Duration(nowMS-r.removedMS) * time.Millisecond
}

func (e forgetting) eachRemoved(ctx context.Context, do func(removal) error) error {
	entries, err := e.cfg.Store.List(ctx, keyPrefix)
	if err != nil {
		return storeError(ctx, err)
	}
	for _, entry := range entries {
		name := entry.Key[len(keyPrefix):]
		d, err := decodeDefinition(entry.Value)
		if err != nil {
			return fmt.Errorf("entry of log %s: %w", name, err)
		}
		if d.state == isRemoved {
			if err := do(removal{d, name, entry.Revision}); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes the entries of logs that were removed long ago and have left nothing in any stream. Any
// node does it; a change by another comes first.
func (e forgetting) forget(ctx context.Context) error {
	return e.eachRemoved(ctx, func(r removal) error {
		var err error
		switch {
		case r.removedMS == 0: // of a version that did not say when
			r.removedMS = e.stamp(time.Now())
			_, err = e.cfg.Store.CompareAndSet(ctx, keyPrefix+r.name, r.revision, r.encode())
		case r.age(e.stamp(time.Now())) >= removalKept:
			var left bool
			if left, err = e.left(ctx, r.name, r.definition); err == nil && !left {
				err = e.cfg.Store.Delete(ctx, keyPrefix+r.name, r.revision)
			}
		}
		if mirror.GoneOrChanged(err) {
			return nil
		}
		return err
	})
}

// left deletes what a removed log has in streams once more, since a node that had not heard may have
// stored something, and reports whether there is something left that only its entry explains: in
// a stream that it shares, the newest mark tells of its partitions until there is another mark.
func (e forgetting) left(ctx context.Context, name string, d definition) (bool, error) {
	if err := e.deleteStreams(ctx, name, d); err != nil {
		return true, err
	}
	if _, own := hubLog(streamsOf(name, d)[0]); own {
		return false, nil
	}
	at := addressOf(name, d, 0)
	state, err := e.cfg.Storage.State(ctx, at.stream)
	if errors.Is(err, streams.ErrNoStream) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	mark, err := (marks{e.cfg.Storage, at.stream}).newest(ctx, state.First)
	if err != nil {
		return true, err
	}
	for number := range d.partitions {
		if _, there := mark.Find(addressOf(name, d, number).subject); there {
			return true, nil
		}
	}
	return false, nil
}

// revisionOf is the newest that is known of a log's entry; zero: none.
func (e forgetting) revisionOf(name string) meta.Revision {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.logs[name]; l != nil {
		return l.revision
	}
	return 0
}

// forgotten takes notice that there was no entry of a log behind a revision. One that was known here was
// removed, and its entry has gone since: what is not known at all may yet be provided. It is false where a
// later revision is known by now: there is an entry again.
func (e forgetting) forgotten(name string, behind meta.Revision) (definition, bool) {
	e.mu.Lock()
	l := e.logs[name]
	if l == nil || l.revision == 0 || l.revision > behind {
		asKnown := l == nil || l.revision <= behind
		e.mu.Unlock()
		return definition{}, asKnown
	}
	gone, revision := l.def, l.revision
	e.mu.Unlock()
	if gone.state != isRemoved {
		gone.state = isRemoved
		e.learn(name, gone, revision+1)
	}
	return gone, true
}
