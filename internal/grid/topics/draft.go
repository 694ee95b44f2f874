package topics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// draft is the next state that readers will see, made with the view's lock held. It begins as the
// present one; maps and lists are copied when the first change touches them. Among ten thousand
// subscriptions that is a matter of microseconds, where to build everything anew would be one of
// milliseconds.
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
				delete(d.next.Subscriptions, s.ID)
			}
		}
	}
	if now == nil {
		return
	}
	d.next.Topics[auth.Fold(now.Name)] = now
	if old != nil && now.ID == old.ID {
		return
	}
	log, err := d.v.open(now)
	d.next.logs[now.ID] = topicLog{log, err}
	if members := d.v.members[now.ID]; len(members) > 0 {
		d.copySubscriptions()
		d.next.BySource[now.ID] = members
		for _, s := range members {
			d.next.Subscriptions[s.ID] = s
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
			delete(d.next.Subscriptions, s.ID)
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
		d.next.Subscriptions[s.ID] = s
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
// Then it shows them the list, and the map of subscriptions may be changed.
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
		d.next.Subscriptions, d.next.BySource = maps.Clone(d.next.Subscriptions), maps.Clone(d.next.BySource)
	}
}
