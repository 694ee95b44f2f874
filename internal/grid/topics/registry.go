package topics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/listeners"
)

// registry is what this node knows of all topics and subscriptions.
//
// News of one entry comes from two sides: from our own changes, once the store has acknowledged
// them, and from the watch. Either may be late. So each piece of news carries its revision, and
// an older one never overwrites a newer one. That needs a memory of what is gone, too: it is
// kept until the watch has told the deletion, after which the watch brings nothing older, and
// until no change of our own is under way whose outcome could still be.
//
// Readers see live only, which is never changed, but replaced as a whole; what did not change
// is shared with the one before (draft.go).
type registry struct {
	// open gives a topic's log.
	open func(*Topic) (eventlog.Partition, error)
	live atomic.Pointer[live]
	// listeners are told after live was replaced.
	listeners listeners.List
	deadlines *deadlines

	mu sync.RWMutex
	// seen is the newest news of each key, gone ones included. Guarded by mu.
	seen map[string]sighting
	// members are the subscriptions of each source in order of creation, also of topics that
	// are not (or no longer) known. A slice is never changed within its length, since
	// snapshots share it. Guarded by mu.
	members map[string][]*Subscription
	// underway counts our own changes between being sent and being applied. Guarded by mu.
	underway int
	// departed are keys whose deletion the watch has told. Guarded by mu.
	departed []string
}

// sighting is one piece of news: the state of a key at a revision.
type sighting struct {
	key      string
	revision meta.Revision
	// topic or sub is what the key holds; both are nil where it is gone.
	topic *topicRecord
	sub   *record
	// gone: the key does not exist. Where we deleted it ourselves the revision is that of the
	// state before, since a store does not say which one a deletion got.
	gone bool
	// told: it came from the watch.
	watched bool
}

// deadline is when the state next changes by itself; zero: never.
func (s sighting) deadline() time.Time {
	if s.sub == nil {
		return time.Time{}
	}
	return s.sub.deadline()
}

// live is what readers see.
type live struct {
	Snapshot
	// logs are those of the topics, by ID. They are opened with the topic because the engine
	// applies retention only to partitions it was asked for. It costs no I/O.
	logs map[string]topicLog
}

type topicLog struct {
	eventlog.Partition
	err error // why there is none
}

func newRegistry(open func(*Topic) (eventlog.Partition, error)) *registry {
	r := &registry{
		open:      open,
		deadlines: newDeadlines(),
		seen:      make(map[string]sighting),
		members:   make(map[string][]*Subscription),
	}
	r.live.Store(&live{
		Snapshot: Snapshot{
			Topics:        make(map[string]*Topic),
			Subscriptions: make(map[string]*Subscription),
			BySource:      make(map[string][]*Subscription),
		},
		logs: make(map[string]topicLog),
	})
	return r
}

// find gives the subscription of a key; nil if there is none.
func (r *registry) find(key string) *record {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.seen[key].sub
}

// known gives the newest news of every key under a prefix, those that are gone included.
func (r *registry) known(under func(key string) bool) []sighting {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var known []sighting
	for key, s := range r.seen {
		if under(key) {
			known = append(known, s)
		}
	}
	return known
}

// begin announces changes of our own; end follows when their outcome has been applied.
func (r *registry) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underway++
}

func (r *registry) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underway--
	r.forgetDepartedLocked()
}

// apply takes news in, in one step for readers.
func (r *registry) apply(news ...sighting) {
	if r.take(news) {
		r.listeners.Notify()
	}
}

func (r *registry) take(news []sighting) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.draftLocked()
	for _, s := range news {
		r.noteLocked(d, s)
	}
	r.forgetDepartedLocked()
	return d.publish()
}

// drop forgets keys if nothing newer was heard of them since. It keeps no memory of them: that
// they are gone was concluded, not told, so whatever the watch tells next counts.
func (r *registry) drop(gone []sighting) {
	if r.forget(gone) {
		r.listeners.Notify()
	}
}

func (r *registry) forget(gone []sighting) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.draftLocked()
	for _, s := range gone {
		if there, ok := r.seen[s.key]; ok && there.revision == s.revision {
			delete(r.seen, s.key)
			r.deadlines.set(s.key, time.Time{})
			d.change(there, sighting{gone: true})
		}
	}
	return d.publish()
}

// noteLocked remembers news, if it is any, and drafts what follows from it.
func (r *registry) noteLocked(d *draft, s sighting) {
	known := r.seen[s.key]
	if s.revision < known.revision || s.revision == known.revision && !s.gone {
		return
	}
	r.seen[s.key] = s
	if s.gone && s.watched {
		r.departed = append(r.departed, s.key)
	}
	r.deadlines.set(s.key, s.deadline())
	d.change(known, s)
}

func (r *registry) forgetDepartedLocked() {
	if r.underway > 0 {
		return
	}
	for _, key := range r.departed {
		if s := r.seen[key]; s.gone && s.watched {
			delete(r.seen, key)
		}
	}
	r.departed = nil
}
