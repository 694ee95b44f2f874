package topics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// draft is the next state that readers will see, made with the view's lock held. It begins as the present one; maps and lists
// are copied when the first change touches them. Among ten thousand subscriptions that is a
// matter of microseconds, where to build everything anew would be one of milliseconds.
//
// After each change it holds that readers see the topics that are there and not being deleted,
// all subscriptions of these, and all subscriptions of hubs.
type draft struct {
	v    *view
	next live
	// Which maps are this draft's own.
	ownTopics, ownSubscriptions bool
	// ownLists are the sources whose list of members is this draft's own.
	ownLists map[string]bool
}

// publish shows it to readers, if anything changed.
func (d *draft) publish() bool {
	if !d.ownTopics && !d.ownSubscriptions {
		return false
	}
	d.v.live.Store(&d.next)
	return true
}

// visible gives the topic, if users may see it.
func visible(t *topicRecord) *Topic {
	if t == nil || t.Deleting {
		return nil
	}
	return &t.Topic
}

func (d *draft) changeTopic(old, now *Topic) {
	d.copyTopics()
	if old != nil && (now == nil || now.ID != old.ID) {
		delete(d.next.Topics, auth.Fold(old.Name))
		delete(d.next.logs, old.ID)
		d.hide(old.ID)
	}
	if now == nil {
		return
	}
	d.next.Topics[auth.Fold(now.Name)] = now
	if old == nil || now.ID != old.ID {
		log, err := d.v.open(now)
		d.next.logs[now.ID] = topicLog{log, err}
		d.show(now.ID)
	}
}

// show and hide are for all subscriptions of a topic.
func (d *draft) show(topic string) {
	members := d.v.members[topic]
	if len(members) == 0 {
		return
	}
	d.copySubscriptions()
	d.next.BySource[topic] = members
	for _, s := range members {
		d.next.Subscriptions[s.ID] = s
	}
}

func (d *draft) hide(topic string) {
	members := d.v.members[topic]
	if len(members) == 0 {
		return
	}
	d.copySubscriptions()
	delete(d.next.BySource, topic)
	for _, s := range members {
		delete(d.next.Subscriptions, s.ID)
	}
}

func (d *draft) changeSubscription(old, now *record) {
	if old != nil && (now == nil || now.ID != old.ID) {
		d.leave(&old.Subscription)
	}
	if now != nil {
		d.join(&now.Subscription)
	}
}

func (d *draft) leave(s *Subscription) {
	list := d.ownList(s.SourceID)
	if at, found := indexOf(list, s); found {
		d.setList(s, slices.Delete(list, at, at+1))
	}
	if d.shows(s) {
		d.copySubscriptions()
		delete(d.next.Subscriptions, s.ID)
	}
}

// join puts a subscription in its place: behind all others as a rule, since the newest is.
func (d *draft) join(s *Subscription) {
	list := d.v.members[s.SourceID]
	at, found := indexOf(list, s)
	switch {
	case found:
		list = d.ownList(s.SourceID)
		list[at] = s
	case at == len(list):
		list = append(list, s) // beyond the length that others see
	default:
		list = slices.Insert(d.ownList(s.SourceID), at, s)
	}
	d.setList(s, list)
	if d.shows(s) {
		d.copySubscriptions()
		d.next.Subscriptions[s.ID] = s
	}
}

// indexOf finds where a subscription is among those of its source, or would be.
func indexOf(list []*Subscription, s *Subscription) (at int, found bool) {
	return slices.BinarySearchFunc(list, s, func(x, y *Subscription) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
}

// shows tells whether readers see the subscriptions of its source.
func (d *draft) shows(s *Subscription) bool {
	_, known := d.next.logs[s.SourceID]
	return known || s.Source.Hub != ""
}

// ownList gives a source's list such that it may be changed.
func (d *draft) ownList(source string) []*Subscription {
	if d.ownLists[source] {
		return d.v.members[source]
	}
	if d.ownLists == nil {
		d.ownLists = make(map[string]bool)
	}
	d.ownLists[source] = true
	own := slices.Clone(d.v.members[source])
	d.v.members[source] = own
	return own
}

// setList keeps the list of a subscription's source, and shows it.
func (d *draft) setList(s *Subscription, list []*Subscription) {
	if len(list) == 0 {
		delete(d.v.members, s.SourceID)
	} else {
		d.v.members[s.SourceID] = list
	}
	if !d.shows(s) {
		return
	}
	d.copySubscriptions()
	if len(list) == 0 {
		delete(d.next.BySource, s.SourceID)
	} else {
		d.next.BySource[s.SourceID] = list
	}
}

func (d *draft) copyTopics() {
	if d.ownTopics {
		return
	}
	d.ownTopics = true
	d.next.Topics, d.next.logs = maps.Clone(d.next.Topics), maps.Clone(d.next.logs)
}

func (d *draft) copySubscriptions() {
	if d.ownSubscriptions {
		return
	}
	d.ownSubscriptions = true
	d.next.Subscriptions, d.next.BySource = maps.Clone(d.next.Subscriptions), maps.Clone(d.next.BySource)
}
