package topics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// view is what readers see of the topics and subscriptions that this node knows. They see live
// only, which is never changed, but replaced as a whole; what did not change is shared with the one
// before (see draft).
type view struct {
	// open gives a topic's log.
	open func(*Topic) (eventlog.Partition, error)
	// nodes says how many nodes share the quotas; nil: there is one.
	nodes func() int
	live  atomic.Pointer[live]
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
	// quota is the same as long as the topic is, whatever its limits, and so is published: how many
	// events this node has stored.
	quota     *quota.Meter
	published *atomic.Int64
}

func newView(open func(*Topic) (eventlog.Partition, error)) *view {
	v := &view{open: open, deadlines: newDeadlines(), members: make(map[string][]*Subscription)}
	v.live.Store(&live{
		Snapshot: Snapshot{
			Topics:   make(map[string]*Topic),
			BySource: make(map[string][]*Subscription),
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
	d.subscriptions.Index = d.next.Subscriptions
	changes(d)
	d.next.Subscriptions = d.subscriptions.Index
	replaced := d.ownTopics || d.ownSubscriptions
	if replaced {
		v.live.Store(&d.next)
	}
	v.mu.Unlock()
	if replaced {
		v.listeners.Notify()
	}
}

// draft is the next state that readers will see, made with the view's lock held. It begins as the
// present one; maps and lists are copied when the first change touches them, and of the subscriptions by
// ID only a part. So what a change costs hardly grows with them.
//
// After each change it holds that readers see the topics that are there and not being deleted,
// all subscriptions of these, and all subscriptions of hubs.
type draft struct {
	v    *view
	next live
	// subscriptions are those of next, in the making.
	subscriptions edit
	// Which maps are this draft's own: those of topics, and those of subscriptions.
	ownTopics, ownSubscriptions bool
	// ownLists are the sources whose list of members is this draft's own.
	ownLists map[string]bool
}

// visible gives the topic, if users may see it.
func visible(t *topicRecord) *Topic {
	if t == nil || t.Deleting {
		return nil
	}
	return &t.Topic
}

func (d *draft) changeTopic(old, now *Topic) {
	if !d.ownTopics {
		d.ownTopics = true
		d.next.Topics, d.next.logs = maps.Clone(d.next.Topics), maps.Clone(d.next.logs)
	}
	if old != nil && (now == nil || now.ID != old.ID) {
		delete(d.next.Topics, auth.Fold(old.Name))
		delete(d.next.logs, old.ID)
		if members := d.v.members[old.ID]; len(members) > 0 {
			d.copySubscriptions()
			delete(d.next.BySource, old.ID)
			for _, s := range members {
				d.subscriptions.remove(s.ID)
			}
		}
	}
	if now == nil {
		return
	}
	d.next.Topics[auth.Fold(now.Name)] = now
	if old != nil && now.ID == old.ID {
		if now.Quota != old.Quota {
			d.next.logs[now.ID].quota.Set(now.Quota, time.Now())
		}
		return
	}
	log, err := d.v.open(now)
	limit := quota.NewMeter(fmt.Sprintf("topic %q", now.Name), "events").Among(d.v.nodes)
	limit.Set(now.Quota, time.Now())
	d.next.logs[now.ID] = topicLog{log, err, limit, new(atomic.Int64)}
	if members := d.v.members[now.ID]; len(members) > 0 {
		d.copySubscriptions()
		d.next.BySource[now.ID] = members
		for _, s := range members {
			d.subscriptions.set(s)
		}
	}
}

func (d *draft) changeSubscription(old, now *record) {
	if old != nil && (now == nil || now.ID != old.ID) {
		s := &old.Subscription
		list := d.ownList(s.SourceID)
		if at, found := slices.BinarySearchFunc(list, s, byCreation); found {
			list = slices.Delete(list, at, at+1)
		}
		if d.setList(s, list) {
			d.subscriptions.remove(s.ID)
		}
	}
	if now == nil {
		return
	}
	s := &now.Subscription
	list := d.v.members[s.SourceID]
	at, found := slices.BinarySearchFunc(list, s, byCreation)
	switch {
	case found:
		list = d.ownList(s.SourceID)
		list[at] = s
	case at == len(list): // as a rule, since the newest is the last
		list = append(list, s) // beyond the length that others see
	default:
		list = slices.Insert(d.ownList(s.SourceID), at, s)
	}
	if d.setList(s, list) {
		d.subscriptions.set(s)
	}
}

// byCreation orders the subscriptions of a source.
func byCreation(x, y *Subscription) int {
	return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
}

// ownList gives a source's list such that it may be changed.
func (d *draft) ownList(source string) []*Subscription {
	if d.ownLists == nil {
		d.ownLists = make(map[string]bool)
	}
	if !d.ownLists[source] {
		d.ownLists[source] = true
		d.v.members[source] = slices.Clone(d.v.members[source])
	}
	return d.v.members[source]
}

// setList keeps the list of a subscription's source, and reports whether readers see the source.
// Then it shows them the list.
func (d *draft) setList(s *Subscription, list []*Subscription) (shown bool) {
	put := func(lists map[string][]*Subscription) {
		if len(list) > 0 {
			lists[s.SourceID] = list
		} else {
			delete(lists, s.SourceID)
		}
	}
	put(d.v.members)
	if _, known := d.next.logs[s.SourceID]; !known && s.Source.Hub == "" {
		return false
	}
	d.copySubscriptions()
	put(d.next.BySource)
	return true
}

func (d *draft) copySubscriptions() {
	if !d.ownSubscriptions {
		d.ownSubscriptions = true
		d.next.BySource = maps.Clone(d.next.BySource)
	}
}
