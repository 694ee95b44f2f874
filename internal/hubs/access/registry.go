package access

import (
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/listeners"
)

// registry is what this node knows of all policies.
//
// News of one policy comes from two sides: from our own changes, once the store has
// acknowledged them, and from the watch. Either may be late, so each piece of news
// carries its revision, and an older one never overwrites a newer one. Where we deleted
// a policy ourselves a mark stays, or a late watch would let its keys in once more; it
// goes when the watch has told the deletion.
//
// The watch's news is taken in only while no change of our own is between the store and
// this registry: whoever calls apply or drop holds the registry's turn. So nothing older
// can come after the watch has told a deletion, and no memory of it is needed.
//
// Readers see live only, which is never changed, but replaced as a whole.
type registry struct {
	live atomic.Pointer[snapshot]
	// seen is the newest news of each key. Guarded by the registry's turn.
	seen map[string]sighting
	// listeners are told after live was replaced.
	listeners listeners.List
}

// sighting is one piece of news: the state of a key at a revision.
type sighting struct {
	key      string
	revision meta.Revision
	record   record
	// gone: the key does not exist. Where we deleted it ourselves the revision is that
	// of the state before, since a store does not say which one a deletion got.
	gone bool
	// told: it came from the watch.
	watched bool
}

// snapshot is what readers see.
type snapshot struct {
	byKey  map[string]record
	byName map[string][]record // by folded name, of all levels
}

func newRegistry() *registry {
	r := &registry{seen: make(map[string]sighting)}
	r.publish()
	return r
}

// apply takes news in, in one step for readers.
func (r *registry) apply(news ...sighting) {
	changed := false
	for _, s := range news {
		changed = r.note(s) || changed
	}
	if changed {
		r.publish()
	}
}

// note remembers news and reports whether it is any.
func (r *registry) note(s sighting) bool {
	known := r.seen[s.key]
	if s.revision < known.revision || s.revision == known.revision && !s.gone {
		return false
	}
	if s.gone && s.watched {
		delete(r.seen, s.key)
	} else {
		r.seen[s.key] = s
	}
	return true
}

// known gives the newest news of every key, to be handed to dropMissing.
func (r *registry) known() []sighting {
	known := make([]sighting, 0, len(r.seen))
	for _, s := range r.seen {
		known = append(known, s)
	}
	return known
}

// dropMissing forgets what was known before a watch began and is not in the state that
// it began with, unless something newer was heard of it since.
func (r *registry) dropMissing(before []sighting, present map[string]bool) {
	for _, s := range before {
		if !present[s.key] && r.seen[s.key].revision == s.revision {
			delete(r.seen, s.key)
		}
	}
	r.publish()
}

func (r *registry) publish() {
	live := &snapshot{byKey: make(map[string]record, len(r.seen)), byName: make(map[string][]record)}
	for key, s := range r.seen {
		if s.gone {
			continue
		}
		live.byKey[key] = s.record
		name := auth.Fold(s.record.Name)
		live.byName[name] = append(live.byName[name], s.record)
	}
	r.live.Store(live)
	r.listeners.Notify()
}
