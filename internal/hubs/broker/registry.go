package broker

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// registry is what this node knows of all hubs.
//
// News of one hub comes from two sides: from our own changes, once the store has
// acknowledged them, and from the watch. Either may be late. So each piece of news
// carries its revision, and an older one never overwrites a newer one. That needs a
// memory of what is gone, too: it is kept until the watch has told the deletion,
// after which the watch brings nothing older, and until no change of our own is
// under way whose outcome could still be.
//
// Readers see live only: a map that is never changed, replaced as a whole.
type registry struct {
	engine  eventlog.Engine
	metrics *metrics

	// live holds the hubs that users see, by folded name.
	live atomic.Pointer[map[string]*hub]

	mu sync.Mutex
	// seen is the newest news of each hub, gone ones included. Guarded by mu.
	seen map[string]sighting
	// underway counts our own changes between being sent and being applied. Guarded by mu.
	underway int
	// departed are names whose deletion the watch has told. Guarded by mu.
	departed []string
}

// sighting is one piece of news: the state of a hub's key at a revision.
type sighting struct {
	name     string // folded
	revision meta.Revision
	def      definition
	// gone: the key does not exist. Where we deleted it ourselves the revision is that
	// of the state before, since a store does not say which one a deletion got.
	gone bool
	// told: it came from the watch.
	watched bool
}

// visible tells whether users may see the hub.
func (s sighting) visible() bool { return s.revision > 0 && !s.gone && !s.def.deleting() }

// hub is a hub that users see. It does not change; a new definition makes a new one.
type hub struct {
	Hub
	log string
	// partitions are the handles, made with the hub because the engine applies
	// retention only to partitions it was asked for. They cost no I/O.
	partitions []eventlog.Partition
	// broken is why there are no handles; nil if there are.
	broken error
	// turn counts publications without partition and key; shared with the hub's
	// earlier definitions.
	turn    *atomic.Uint64
	metrics hubMetrics
}

func newRegistry(engine eventlog.Engine, metrics *metrics) *registry {
	r := &registry{engine: engine, metrics: metrics, seen: make(map[string]sighting)}
	r.live.Store(&map[string]*hub{})
	return r
}

// find looks a hub up in any spelling; nil if there is none.
func (r *registry) find(name string) *hub { return (*r.live.Load())[fold(name)] }

// all gives every hub that users see.
func (r *registry) all() map[string]*hub { return *r.live.Load() }

// known gives the newest news of every hub, those that are gone included.
func (r *registry) known() []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make([]sighting, 0, len(r.seen))
	for _, s := range r.seen {
		known = append(known, s)
	}
	return known
}

// begin announces a change of our own; end follows when its outcome has been applied.
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
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []string
	for _, s := range news {
		if r.noteLocked(s) {
			fresh = append(fresh, s.name)
		}
	}
	if len(fresh) > 0 {
		r.publishLocked(fresh)
	}
	r.forgetDepartedLocked()
}

// drop forgets a hub if nothing newer was heard of it since. It keeps no memory of it:
// that the hub is gone was concluded, not told, so whatever the watch tells next counts.
func (r *registry) drop(s sighting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[s.name].revision != s.revision {
		return
	}
	delete(r.seen, s.name)
	r.publishLocked([]string{s.name})
}

// noteLocked remembers news and reports whether it is any.
func (r *registry) noteLocked(s sighting) bool {
	if s.revision <= r.seen[s.name].revision {
		return false
	}
	r.seen[s.name] = s
	if s.gone && s.watched {
		r.departed = append(r.departed, s.name)
	}
	return true
}

func (r *registry) forgetDepartedLocked() {
	if r.underway > 0 {
		return
	}
	for _, name := range r.departed {
		if s := r.seen[name]; s.gone && s.watched {
			delete(r.seen, name)
		}
	}
	r.departed = nil
}

// publishLocked makes the snapshot follow what was noted of the names.
func (r *registry) publishLocked(names []string) {
	live := maps.Clone(*r.live.Load())
	for _, name := range names {
		if s := r.seen[name]; s.visible() {
			live[name] = r.assemble(live[name], s.def)
			continue
		}
		if old := live[name]; old != nil {
			delete(live, name)
			r.metrics.drop(old.Name)
		}
	}
	r.live.Store(&live)
	r.metrics.count(live)
}

// assemble makes the hub of a definition; old is what stood in its place, nil if
// nothing did.
func (r *registry) assemble(old *hub, def definition) *hub {
	h := &hub{Hub: def.hub(), log: def.Log}
	if old != nil && old.log == def.Log {
		h.turn, h.metrics = old.turn, old.metrics
	} else {
		if old != nil {
			r.metrics.drop(old.Name)
		}
		h.turn, h.metrics = new(atomic.Uint64), r.metrics.forHub(h.Name)
	}
	h.partitions, h.broken = r.open(h)
	return h
}

// open also tells the engine a changed retention, of which the newest call counts;
// calls are in order of the revisions since the registry's lock is held.
func (r *registry) open(h *hub) ([]eventlog.Partition, error) {
	partitions := make([]eventlog.Partition, h.Partitions)
	for i := range partitions {
		p, err := r.engine.Partition(eventlog.PartitionID{Log: h.log, Number: i}, h.Retention)
		if err != nil {
			return nil, fmt.Errorf("open partition %d of hub %q: %w", i, h.Name, err)
		}
		partitions[i] = p
	}
	return partitions, nil
}
