package entries

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// replica has all entries in memory, and reports changes to watchers. Of two messages of a key the
// one with the higher sequence counts, in whatever order they come: so many ways to learn of a
// change lead to one state.
type replica struct {
	mu     sync.RWMutex
	items  map[string]*item           // by key, deleted ones too; guarded by mu
	live   index                      // keys that are not deleted; guarded by mu
	sights map[string]map[*sight]bool // of changes that are under way, by key; guarded by mu
	// watchers are those that have begun, by prefix, and lengths how many prefixes have each length.
	// Guarded by mu.
	watchers map[string]map[*watcher]bool
	lengths  map[int]int
}

// item is the newest state of a key.
type item struct {
	message
	bucket string
	round  int       // in which reading of the bucket it was last seen; see sweep
	gone   time.Time // since when it is deleted, as far as we know
	heard  time.Time // of a deletion: when its message came, which may be one that was stored again
	// forgotten: the deletion was found out and not received. Its revision is odd, and it has no
	// message.
	forgotten bool
}

func newReplica() *replica {
	return &replica{items: make(map[string]*item), sights: make(map[string]map[*sight]bool), watchers: make(map[string]map[*watcher]bool), lengths: make(map[int]int)}
}

// apply takes messages of a bucket in. It keeps their bytes.
func (r *replica) apply(bucket string, round int, now time.Time, messages ...message) {
	if len(messages) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		if m.kind == barrier {
			continue
		}
		r.showLocked(m)
		had := r.items[m.key]
		if had != nil && m.seq <= had.seq {
			had.round = round
			continue
		}
		it := &item{message: m, bucket: bucket, round: round}
		if m.kind == deletion {
			it.gone, it.heard = now, now
		}
		if had != nil && had.kind == value && m.kind == value && had.revision() == m.revision() {
			r.items[m.key] = it // it was stored again: nobody need hear of it
			continue
		}
		if had != nil && had.kind == deletion && m.kind == deletion && m.nonce == had.nonce {
			it.gone = had.gone
			r.items[m.key] = it // likewise
			continue
		}
		r.putLocked(it)
	}
}

func (r *replica) putLocked(it *item) {
	r.items[it.key] = it
	if it.kind == deletion {
		r.live.remove(it.key)
	} else {
		r.live.add(it.key)
	}
	for n := range r.lengths {
		if n > len(it.key) {
			continue
		}
		for w := range r.watchers[it.key[:n]] {
			if w.wanted(it.key) {
				w.note(it.change())
			}
		}
	}
}

// sweep ends a reading of a whole bucket: values that were not seen in it were deleted while we did
// not look, for so long that the stream has forgotten the deletion. It gives how many.
func (r *replica) sweep(bucket string, round int, now time.Time) (deleted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, it := range r.items {
		if it.bucket != bucket || it.round == round || it.kind == deletion {
			continue
		}
		deleted++
		gone := &item{message: message{seq: it.seq, kind: deletion, key: key}, bucket: bucket, round: round, gone: now, heard: now, forgotten: true}
		r.putLocked(gone)
	}
	return deleted
}

// prune forgets deletions from before a time, which nothing older can follow any more.
func (r *replica) prune(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.items, func(_ string, it *item) bool { return it.kind == deletion && it.heard.Before(before) })
}

// forget drops a deletion that the stream no longer has.
func (r *replica) forget(key string, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it := r.items[key]; it != nil && it.kind == deletion && it.seq == seq {
		delete(r.items, key)
	}
}

// state gives what is known of a key; false: nothing.
func (r *replica) state(key string) (item, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	it := r.items[key]
	if it == nil {
		return item{}, false
	}
	return *it, true
}

// get gives an entry, in bytes of the caller's own.
func (r *replica) get(key string) (meta.Entry, error) {
	it, ok := r.state(key)
	if !ok || it.kind == deletion {
		return meta.Entry{}, meta.ErrNotFound
	}
	return it.entry(), nil
}

func (it *item) entry() meta.Entry {
	return meta.Entry{Key: it.key, Value: append([]byte{}, it.value...), Revision: it.revision()}
}

// list gives the entries under a prefix, by key.
func (r *replica) list(prefix string) []meta.Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.listLocked(prefix, func(string) bool { return true })
}

func (r *replica) listLocked(prefix string, wants func(key string) bool) (entries []meta.Entry) {
	r.live.from(prefix, func(key string) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		if wants(key) {
			entries = append(entries, r.items[key].entry())
		}
		return true
	})
	return entries
}

// watcher collects changes under a prefix, the newest of each key.
type watcher struct {
	prefix string
	wants  func(key string) bool // nil: all keys under the prefix
	ready  chan struct{}         // has a token when pending may have something

	mu      sync.Mutex
	pending map[string]meta.Change // guarded by mu
}

// begin gives the present state and has w hear of every change from then on.
func (r *replica) begin(w *watcher) []meta.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers[w.prefix] == nil {
		r.watchers[w.prefix] = make(map[*watcher]bool)
		r.lengths[len(w.prefix)]++
	}
	r.watchers[w.prefix][w] = true
	entries := r.listLocked(w.prefix, w.wanted)
	changes := make([]meta.Change, len(entries))
	for i, e := range entries {
		changes[i].Entry = e
	}
	return changes
}

// end is for a watcher that has begun; it may be called again.
func (r *replica) end(w *watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watchers[w.prefix][w] {
		return
	}
	if delete(r.watchers[w.prefix], w); len(r.watchers[w.prefix]) > 0 {
		return
	}
	delete(r.watchers, w.prefix)
	if r.lengths[len(w.prefix)]--; r.lengths[len(w.prefix)] == 0 {
		delete(r.lengths, len(w.prefix))
	}
}

// watched tells whether anybody watches.
func (r *replica) watched() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.watchers) > 0
}

func (w *watcher) wanted(key string) bool { return w.wants == nil || w.wants(key) }

func (w *watcher) note(c meta.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[c.Key] = c
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// take gives what was noted, in bytes of the reader's own, in the order of keys.
func (w *watcher) take() []meta.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := make([]meta.Change, 0, len(w.pending))
	for _, c := range w.pending {
		if !c.Deleted {
			c.Value = bytes.Clone(c.Value)
		}
		changes = append(changes, c)
	}
	clear(w.pending)
	slices.SortFunc(changes, func(a, b meta.Change) int { return strings.Compare(a.Key, b.Key) })
	return changes
}
