// Package mirror keeps a copy in memory of what a meta store has under one prefix: the definitions
// of hubs, policies, topics, subscriptions and functions, which every event needs and people
// change.
//
// Many processes share a store, and each has a copy. A change goes to the store first, by
// compare-and-set, and into the copy afterwards; what others change comes in by a watch. So news of
// one entry comes from two sides, and either may be late. Each piece of news carries its revision,
// and an older one never replaces a newer one. That needs a memory of deletions, too (Table.known).
//
// A watch that was lost begins anew with what exists then, and says nothing of what was deleted
// while nobody watched. Whatever the copy has and the watch has not is looked up in the store
// (Table.dropMissing).
package mirror

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config is what a table works with. All but Apply, Made and Log are required.
type Config[T any] struct {
	Store meta.Store
	// Prefix is that of the entries' keys, with its '/'.
	Prefix string
	// Name is what the entries are, for errors and logs: "hubs".
	Name string
	// Decode reads an entry, Encode writes one. An entry that Decode refuses fails Load and Read;
	// from the watch it is logged and left out, so that the state before it stays. Errors name the
	// key and never the value, which may hold secrets.
	Decode func(meta.Entry) (T, error)
	Encode func(T) []byte
	// Apply hears of what has changed in the table, in one call for what came together: by one
	// goroutine at a time, in the order of each key's revisions, and before the Put or Delete that
	// made the change returns. All changes wait for it: it must be quick, and must not change the
	// table. It may read it.
	Apply func([]Update[T])
	// Made hears of each change that this process has made, once and after Apply, with the context of
	// who made it. Old is what the copy had. It must be quick. nil means nobody.
	Made func(ctx context.Context, u Update[T])
	// Log is where the table writes what it carries on from; nil means slog.Default().
	Log *slog.Logger
}

// Item is an entry as it was at a revision; zero means that there is none. A Value that came from
// Get, Items or an Update is shared, and never changed; one from Read or List is the caller's.
type Item[T any] struct {
	Key      string
	Revision meta.Revision
	Value    T
}

// Exists tells whether there is such an entry.
func (i Item[T]) Exists() bool { return i.Revision != 0 }

// Update is how one key has changed.
type Update[T any] struct {
	Key string
	// Old and New are the entry before and now. At least one of them exists.
	Old, New Item[T]
}

// Stored gives both as they are stored; nil for one that does not exist.
func (u Update[T]) Stored(encode func(T) []byte) (before, after []byte) {
	if u.Old.Exists() {
		before = encode(u.Old.Value)
	}
	if u.New.Exists() {
		after = encode(u.New.Value)
	}
	return before, after
}

// Table is one process's copy of the entries. All methods may be called by many goroutines at once,
// Run by one. The zero Table is not usable; see New.
type Table[T any] struct {
	cfg Config[T]

	// applying is held while news is taken in and Apply hears of it. Who brings news that is known
	// already waits as well: after a change has returned Apply has heard of it, whoever was first.
	applying sync.Mutex

	mu sync.RWMutex
	// known is the newest state of each key. Deletions are in it as long as older news of their
	// key may come: until the watch has reported the deletion, after which it brings nothing older,
	// and until no change of our own is under way, whose outcome could be older. Guarded by mu;
	// changed with applying held.
	known map[string]state[T]
	// departed are keys whose deletion the watch has reported. Guarded by mu.
	departed []string
	// underway has a channel for each of our own changes between being sent and being applied,
	// which is closed then. Guarded by mu.
	underway map[chan struct{}]bool
}

// state is one piece of news: what a key holds at a revision.
type state[T any] struct {
	Item[T]
	// gone: the entry was deleted. Where we did that ourselves the revision is that of the state
	// before, since a store does not say which one a deletion got.
	gone bool
	// watched: it came from the watch.
	watched bool
}

// deleted is the state after an item was deleted by ourselves.
func deleted[T any](item Item[T]) state[T] {
	return state[T]{Item: Item[T]{Key: item.Key, Revision: item.Revision}, gone: true}
}

// item is what users are given of a state: nothing of one that is gone.
func (s state[T]) item() Item[T] {
	if s.gone {
		return Item[T]{}
	}
	return s.Item
}

// New makes an empty table. It does no I/O: Load reads the entries, Run follows them.
func New[T any](cfg Config[T]) *Table[T] {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Apply == nil {
		cfg.Apply = func([]Update[T]) {}
	}
	if cfg.Made == nil {
		cfg.Made = func(context.Context, Update[T]) {}
	}
	return &Table[T]{cfg: cfg, known: make(map[string]state[T]), underway: make(map[chan struct{}]bool)}
}

// Get gives an entry of the copy, without a look at the store.
func (t *Table[T]) Get(key string) (item Item[T], exists bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	item = t.known[key].item()
	return item, item.Exists()
}

// revision is that of the newest state that is known of a key, its deletion among them.
func (t *Table[T]) revision(key string) meta.Revision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[key].Revision
}

// Items gives all entries of the copy, in no order.
func (t *Table[T]) Items() []Item[T] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	items := make([]Item[T], 0, len(t.known))
	for _, s := range t.known {
		if !s.gone {
			items = append(items, s.Item)
		}
	}
	return items
}

// begin announces a change of our own; end follows when its outcome has been applied.
func (t *Table[T]) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	applied := make(chan struct{})
	t.underway[applied] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.underway, applied)
		close(applied)
		t.forgetDepartedLocked()
	}
}

// settle waits until the changes that are under way now have been applied.
func (t *Table[T]) settle(ctx context.Context) error {
	t.mu.RLock()
	underway := slices.Collect(maps.Keys(t.underway))
	t.mu.RUnlock()
	for _, applied := range underway {
		select {
		case <-applied:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// apply takes news in.
func (t *Table[T]) apply(news ...state[T]) {
	t.update(func(changed func(before, now state[T])) {
		for _, s := range news {
			before := t.known[s.Key]
			if s.Revision < before.Revision || s.Revision == before.Revision && !s.gone {
				continue
			}
			t.known[s.Key] = s
			if s.gone && s.watched {
				t.departed = append(t.departed, s.Key)
			}
			changed(before, s)
		}
		t.forgetDepartedLocked()
	})
}

// drop forgets states that are the newest of their keys. It keeps no memory of them: that they are
// gone was found out, not reported, so whatever the watch reports next counts.
func (t *Table[T]) drop(states ...state[T]) {
	t.update(func(changed func(before, now state[T])) {
		for _, s := range states {
			if before, ok := t.known[s.Key]; ok && before.Revision == s.Revision {
				delete(t.known, s.Key)
				changed(before, state[T]{})
			}
		}
	})
}

// update lets known be changed by a function, with both locks held, and has Apply hear of it.
func (t *Table[T]) update(how func(changed func(before, now state[T]))) {
	t.applying.Lock()
	defer t.applying.Unlock()
	var updates []Update[T]
	t.mu.Lock()
	how(func(before, now state[T]) {
		if u := (Update[T]{Key: before.Key, Old: before.item(), New: now.item()}); u.Old.Exists() || u.New.Exists() {
			u.Key = cmp.Or(u.Key, now.Key)
			updates = append(updates, u)
		}
	})
	t.mu.Unlock()
	if len(updates) > 0 {
		t.cfg.Apply(updates)
	}
}

func (t *Table[T]) forgetDepartedLocked() {
	if len(t.underway) > 0 {
		return
	}
	for _, key := range t.departed {
		if s := t.known[key]; s.gone && s.watched {
			delete(t.known, key)
		}
	}
	t.departed = nil
}

// deletions gives the revisions of those that are remembered.
func (t *Table[T]) deletions() map[string]meta.Revision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	deleted := make(map[string]meta.Revision)
	for key, s := range t.known {
		if s.gone {
			deleted[key] = s.Revision
		}
	}
	return deleted
}

// missing gives the states of keys that are not among those of a watch's first report.
func (t *Table[T]) missing(present []meta.Change) (missing []state[T]) {
	there := make(map[string]bool, len(present))
	for _, c := range present {
		there[c.Key] = true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, s := range t.known {
		if !there[key] {
			missing = append(missing, s)
		}
	}
	return missing
}
