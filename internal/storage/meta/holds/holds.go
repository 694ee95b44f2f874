// Package holds lets one process of several that share a meta store keep the others from removing
// things of one kind for a while, as a backup needs it: who reads several places one after the other
// must not lose what moves between them meanwhile.
//
// Each hold is an entry, holds/KIND/ID, that its process writes anew every few seconds. Who is about to
// remove something looks for such entries with reads that are fresh; see Looker. An entry that nobody
// has written for a minute, or less, is that of a process which was killed or frozen: who finds it deletes it, and
// only then removes anything. So whoever deletes its own entry at the end knows that it held all the time.
package holds

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Prefix is that of the entries' keys. They hold no secret.
const Prefix = "holds/"

// Kind says what stays.
type Kind string

// The kinds of holds.
const (
	// Trimmed: what eventlog.Partition.Trim allows to be removed.
	Trimmed Kind = "trimmed"
	// Bodies: bodies of blobs that no entry names.
	Bodies Kind = "bodies"
	// Filling: a yard that is filled from elsewhere, which nobody else fills.
	Filling Kind = "filling"
	// Replicas: how many servers keep each stream, which nobody else changes.
	Replicas Kind = "replicas"
)

func (k Kind) under() string { return Prefix + string(k) + "/" }

// life is how long an entry counts that nobody writes, on the clock of who looks. It is written six times
// in that time. People wait for it who begin something once more after they were interrupted.
func (k Kind) life() time.Duration {
	if k == Filling || k == Replicas {
		return 20 * time.Second
	}
	return time.Minute
}

func (k Kind) renew() time.Duration { return k.life() / 6 }

// ErrLost: the hold was taken away before it was released, since its process could not write for too
// long. What it was to keep may have been removed.
var ErrLost = errors.New("others have stopped waiting: the storage could not be written for too long")

// ErrHeld: another process has a hold that only one may have, and lives.
var ErrHeld = errors.New("another process has it at the moment")

// Hold is one that was begun. Release ends it.
type Hold struct {
	store meta.Store
	kind  Kind
	key   string
	id    string // drawn at random, in the value
	stop  context.CancelFunc
	ended chan struct{} // closed when nothing writes the entry any more

	once     sync.Once
	released error // what Release found; written by it alone

	written atomic.Pointer[time.Time] // when the write began that was the last to be confirmed

	revision meta.Revision // of the entry; the writer's until ended is closed
	err      error         // why the entry is not ours any more; likewise
}

// Begin begins a hold. When it returns nobody removes anything of the kind but what they were allowed
// to remove before it returned. It blocks until the store has answered. Errors are the store's.
func Begin(ctx context.Context, store meta.Store, kind Kind) (*Hold, error) {
	return begin(ctx, store, kind, rand.Text())
}

// BeginAlone begins a hold that one process has at a time, for as long as Release is not called and the
// process can write. It waits for one that was killed to be seen dead. Errors: ErrHeld, the store's, ctx's.
func BeginAlone(ctx context.Context, store meta.Store, kind Kind) (*Hold, error) {
	for looker := NewLooker(store, kind); ; {
		h, err := begin(ctx, store, kind, "one")
		if !errors.Is(err, meta.ErrConflict) {
			return h, err
		}
		held, err := looker.Held(ctx)
		switch {
		case err != nil:
			return nil, err
		case held && looker.Renewed():
			return nil, ErrHeld
		case held:
			if err := sleep.For(ctx, time.Second, nil); err != nil {
				return nil, err
			}
		}
	}
}

func begin(ctx context.Context, store meta.Store, kind Kind, name string) (*Hold, error) {
	h := &Hold{store: store, kind: kind, key: kind.under() + name, id: rand.Text(), ended: make(chan struct{})}
	var err error
	began := time.Now()
	if h.revision, err = store.CompareAndSet(ctx, h.key, 0, h.value()); err != nil {
		return nil, fmt.Errorf("have %s stay: %w", kind, err)
	}
	h.written.Store(&began)
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	go h.write(writing)
	return h, nil
}

// value says whose it is and, for people, since when it is held, or was confirmed.
func (h *Hold) value() []byte {
	return []byte(`{"id":"` + h.id + `","written":"` + time.Now().UTC().Format(time.RFC3339) + `"}`)
}

// ours tells whether a value is one that this process wrote.
func (h *Hold) ours(value []byte) bool {
	var said struct{ ID string }
	return json.Unmarshal(value, &said) == nil && said.ID == h.id
}

// write writes the entry anew until ctx ends, or the entry is gone.
func (h *Hold) write(ctx context.Context) {
	defer close(h.ended)
	for sleep.For(ctx, h.kind.renew(), nil) == nil {
		began := time.Now()
		revision, err := h.store.CompareAndSet(ctx, h.key, h.revision, h.value())
		switch {
		case err == nil:
			h.revision = revision
			h.written.Store(&began)
		case errors.Is(err, meta.ErrConflict), errors.Is(err, meta.ErrUncertain), ctx.Err() != nil:
			if h.look(ctx); h.err != nil {
				return
			}
		}
	}
}

// look finds out whether the entry is there, and ours: one with another revision is an earlier write.
func (h *Hold) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.kind.renew())
	defer cancel()
	entry, err := h.store.Get(ctx, h.key)
	switch {
	case err == nil && h.ours(entry.Value):
		h.revision = entry.Revision
	case err == nil, errors.Is(err, meta.ErrNotFound):
		h.err = ErrLost
	}
}

// Ended is closed when nobody writes the entry any more: others have taken the hold away, or it was
// released.
func (h *Hold) Ended() <-chan struct{} { return h.ended }

// Stands tells whether nobody can have taken the hold away yet, by this process's clocks: a part of its
// life is left since the last write of its entry that was confirmed. Others count from when they have seen
// that, which is later. A process that was frozen for long finds it out by this before it does anything
// else; its wall clock counts as well, since the other may stand still while a machine sleeps.
func (h *Hold) Stands() bool {
	written, now := *h.written.Load(), time.Now()
	silent := max(now.Sub(written), now.Round(0).Sub(written.Round(0)))
	return silent < h.kind.life()-h.kind.renew()
}

// Release ends the hold, and waits for what writes its entry. ErrLost: it did not hold all the time. Other
// errors are the store's: it is not known whether it did, and the entry is deleted by others later. Safe
// twice: then it gives the same.
func (h *Hold) Release(ctx context.Context) error {
	h.once.Do(func() {
		h.stop()
		<-h.ended
		h.released = h.end(ctx)
	})
	return h.released
}

func (h *Hold) end(ctx context.Context) error {
	for h.err == nil {
		err := h.store.Delete(ctx, h.key, h.revision)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, meta.ErrConflict):
			before := h.revision
			if h.look(ctx); h.err == nil && h.revision == before {
				return err // it cannot be read
			}
		case errors.Is(err, meta.ErrNotFound):
			return ErrLost
		default:
			return err
		}
	}
	return h.err
}

// Looker is for who removes things of a kind. One goroutine uses it at a time.
type Looker struct {
	store   meta.Store
	kind    Kind
	seen    map[string]sighting
	renewed bool // an entry was seen with two revisions
}

// sighting is since when an entry is known to have a revision.
type sighting struct {
	revision meta.Revision
	since    time.Time
}

// NewLooker makes one. It does no I/O.
func NewLooker(store meta.Store, kind Kind) *Looker {
	return &Looker{store: store, kind: kind, seen: map[string]sighting{}}
}

// Renewed tells whether an entry was written anew between two calls of Held: its process lives.
func (l *Looker) Renewed() bool { return l.renewed }

// Held tells whether somebody has things stay. If not, whatever might be removed before the call may be
// removed after it, at any time: who begins a hold later has begun after it might. It costs a durable
// write, and may block until ctx ends. Errors are the store's: then nothing may be removed.
func (l *Looker) Held(ctx context.Context) (bool, error) {
	if err := l.store.Fresh(ctx, l.kind.under()); err != nil {
		return true, err
	}
	entries, err := l.store.List(ctx, l.kind.under())
	if err != nil {
		return true, err
	}
	held, seen, now := false, map[string]sighting{}, time.Now()
	for _, e := range entries {
		sight := l.seen[e.Key]
		if sight.revision != e.Revision {
			l.renewed = l.renewed || sight.revision != 0
			sight = sighting{e.Revision, now}
		}
		if now.Sub(sight.since) >= l.kind.life() {
			err := l.store.Delete(ctx, e.Key, e.Revision)
			if err == nil || errors.Is(err, meta.ErrNotFound) {
				continue
			}
			if !errors.Is(err, meta.ErrConflict) {
				return true, err
			}
			sight = sighting{} // it was written meanwhile
		}
		seen[e.Key], held = sight, true
	}
	l.seen = seen
	return held, nil
}
