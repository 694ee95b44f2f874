package topics

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// view is what readers see of the topics and subscriptions that this node knows. They see live
// only, which is never changed, but replaced as a whole; what did not change is shared with the one
// before (draft.go).
type view struct {
	// open gives a topic's log.
	open func(*Topic) (eventlog.Partition, error)
	live atomic.Pointer[live]
	// listeners are called after live was replaced.
	listeners mirror.Listeners
	deadlines *deadlines

	mu sync.Mutex
	// members are the subscriptions of each source in order of creation, also of topics that
	// are not (or no longer) known. A slice is never changed within its length, since
	// snapshots share it. Guarded by mu.
	members map[string][]*Subscription
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

func newView(open func(*Topic) (eventlog.Partition, error)) *view {
	v := &view{open: open, deadlines: newDeadlines(), members: make(map[string][]*Subscription)}
	v.live.Store(&live{
		Snapshot: Snapshot{
			Topics:        make(map[string]*Topic),
			Subscriptions: make(map[string]*Subscription),
			BySource:      make(map[string][]*Subscription),
		},
		logs: make(map[string]topicLog),
	})
	return v
}

// showTopics and showSubscriptions make readers see what has changed, in one step.
func (v *view) showTopics(updates []mirror.Update[*topicRecord]) {
	v.show(func(d *draft) {
		for _, u := range updates {
			if old, now := visible(u.Old.Value), visible(u.New.Value); old != nil || now != nil {
				d.changeTopic(old, now)
			}
		}
	})
}

func (v *view) showSubscriptions(updates []mirror.Update[*record]) {
	// To load brings all of them by name. By creation each is appended to its list, where otherwise
	// it would be inserted and move half of it.
	if !slices.ContainsFunc(updates, func(u mirror.Update[*record]) bool { return u.Old.Exists() }) {
		slices.SortFunc(updates, func(x, y mirror.Update[*record]) int {
			return byCreation(&x.New.Value.Subscription, &y.New.Value.Subscription)
		})
	}
	v.show(func(d *draft) {
		for _, u := range updates {
			d.changeSubscription(u.Old.Value, u.New.Value)
			v.deadlines.set(u.Key, u.New.Value.deadline())
		}
	})
}

func (v *view) show(changes func(*draft)) {
	v.mu.Lock()
	d := &draft{v: v, next: *v.live.Load()}
	changes(d)
	replaced := d.ownTopics || d.ownSubscriptions
	if replaced {
		v.live.Store(&d.next)
	}
	v.mu.Unlock()
	if replaced {
		v.listeners.Notify()
	}
}
