package broker

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// registry is the hubs that users see, made from the definitions that this node knows. Readers take
// no lock: the view is never changed, but replaced as a whole.
type registry struct {
	engine  eventlog.Engine
	metrics *metrics
	// nodes says how many nodes share the quotas; nil: there is one.
	nodes func() int
	// logs are provided behind show, which must not wait.
	logs *eventlog.Provider
	live atomic.Pointer[view]
}

// view is all hubs at one moment.
type view struct {
	byName map[string]*hub // by folded name
	byID   map[[16]byte]*hub
	byLog  map[string]*hub
}

// hub is a hub that users see. It does not change; a new definition makes a new one.
type hub struct {
	Hub
	log string
	// starts are where partitions begin of which events were deleted; read only.
	starts map[int]eventlog.Sequence
	// partitions are the handles, made with the hub because the engine applies
	// retention only to partitions it was asked for. They cost no I/O.
	partitions []eventlog.Partition
	// broken is why there are no handles; nil if there are.
	broken error
	// turn counts publications without partition and key; shared with the hub's
	// earlier definitions.
	turn    *atomic.Uint64
	metrics hubMetrics
	// quota is shared likewise, and so is keys: who counts the keys of each partition, nil where nobody does.
	quota *quota.Meter
	keys  []atomic.Pointer[keyCount]
	// tails are where partitions with transactions can be read to; shared likewise.
	tails []tailSlot
}

// find looks a hub up in any spelling; nil if there is none.
func (r *registry) find(name string) *hub { return r.live.Load().byName[fold(name)] }

// known is find with an error where there is none.
func (r *registry) known(name string) (*hub, error) {
	if h := r.find(name); h != nil {
		return h, nil
	}
	return nil, hubNotFound(name)
}

// all gives every hub that users see.
func (r *registry) all() map[string]*hub { return r.live.Load().byName }

// byLog gives every hub that users see by the name of its log. It is not to be changed.
func (r *registry) byLog() map[string]*hub { return r.live.Load().byLog }

// HubOf names the hub whose events a log keeps; empty if it is none of the broker's. It does no I/O.
func HubOf(b *Broker, log string) string {
	if h := b.hubs.byLog()[log]; h != nil {
		return h.Name
	}
	return ""
}

// Seen is equal as long as this node knows of no hub that was made, changed or deleted: who has looked at the hubs
// and made something of them looks again when it is another. It does no I/O.
func Seen(b *Broker) any { return b.hubs.live.Load() }

// show makes what users see follow the definitions, in one step.
func (r *registry) show(updates []mirror.Update[definition]) {
	live := maps.Clone(r.all())
	for _, u := range updates {
		name := nameOfHubKey(u.Key)
		if u.New.Exists() && !u.New.Value.deleting() {
			live[name] = r.assemble(live[name], u.New.Value)
		} else if old := live[name]; old != nil {
			delete(live, name)
			r.metrics.drop(old.Name)
		}
	}
	partitions, byID, byLog := 0, make(map[[16]byte]*hub, len(live)), make(map[string]*hub, len(live))
	for _, h := range live {
		partitions += h.Partitions
		byID[h.ID], byLog[h.log] = h, h
	}
	r.live.Store(&view{live, byID, byLog})
	r.metrics.hubs.Set(float64(len(live)))
	r.metrics.partitions.Set(float64(partitions))
}

// assemble makes the hub of a definition; old is the one that had its name before, nil if none did.
func (r *registry) assemble(old *hub, def definition) *hub {
	h := &hub{Hub: def.hub(), log: def.Log, starts: def.Starts}
	if old != nil && old.log == def.Log {
		h.turn, h.metrics, h.quota, h.keys, h.tails = old.turn, old.metrics, old.quota, old.keys, old.tails
	} else {
		if old != nil {
			r.metrics.drop(old.Name)
		}
		h.turn, h.quota = new(atomic.Uint64), quota.NewMeter(fmt.Sprintf("hub %q", h.Name), "events").Among(r.nodes)
		h.keys, h.tails = make([]atomic.Pointer[keyCount], h.Partitions), make([]tailSlot, h.Partitions)
		h.metrics = hubMetrics{r.metrics.events.WithLabelValues(h.Name), r.metrics.bytes.WithLabelValues(h.Name)}
	}
	if old == nil || old.Quota != h.Quota || old.log != h.log {
		h.quota.Set(h.Quota, time.Now())
	}
	if old == nil || old.log != h.log || old.Retention != h.Retention {
		// Of several the newest counts; they are in the order of the revisions, as the calls of show are.
		r.logs.Add(h.log, eventlog.Shape{Partitions: h.Partitions, Kind: eventlog.KindHub, Retention: h.Retention})
	}
	h.partitions = make([]eventlog.Partition, 0, h.Partitions)
	for i := range h.Partitions {
		p, err := r.engine.Partition(eventlog.PartitionID{Log: h.log, Number: i})
		if err != nil {
			h.partitions, h.broken = nil, fmt.Errorf("open partition %d of hub %q: %w", i, h.Name, err)
			break
		}
		h.partitions = append(h.partitions, p)
	}
	return h
}
