package groups

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// In groups of KIP-848 it is the coordinator that says how often members are heard of. These are Kafka's
// defaults.
const (
	ConsumerInterval = 5 * time.Second
	consumerSession  = 45 * time.Second
)

// resolveInterval is after how long a regular expression is resolved again although the hubs are the same: rights
// may have changed.
const resolveInterval = time.Minute

// consumerKind is a group of KIP-848. The group is a value; what is not stored of it is here.
type consumerKind struct {
	group     *consumer.Group
	broker    *broker.Broker
	deadlines *consumer.Deadlines
	bytes     int // of the group
	// seen are the hubs by which the target was made, and resolved those by which the regular expression of
	// each member was.
	seen     any
	resolved map[string]resolution
}

// resolution is when, and by which hubs, a regular expression was resolved.
type resolution struct {
	seen any
	at   time.Time
}

func restoreConsumer(now time.Time, g *consumer.Group, b *broker.Broker) *consumerKind {
	k := &consumerKind{group: new(consumer.Group), broker: b, deadlines: consumer.NewDeadlines(consumerSession), resolved: make(map[string]resolution)}
	k.advance(now, g)
	return k
}

// advance goes on with the group as it has become, and reports whether that has to be stored.
func (k *consumerKind) advance(now time.Time, next *consumer.Group) bool {
	if next == k.group {
		return false
	}
	k.group = next
	k.deadlines.Follow(next, now)
	k.bytes = next.Bytes()
	for id := range k.resolved {
		if next.Member(id) == nil {
			delete(k.resolved, id)
		}
	}
	return true
}

// heartbeat gives what a member hears, and whether the group has to be stored first. What has become of hubs
// meanwhile counts also if the heartbeat itself is refused. grow is asked where somebody joins, or says what it
// subscribes to: what members are given of that later has to come through.
func (k *consumerKind) heartbeat(now time.Time, h consumer.Heartbeat, right may, grow func(bytes int) error) (answer consumer.Answer, changed bool, err error) {
	hubs := catalog{k.broker, right}
	seen := broker.Seen(k.broker)
	if seen != k.seen {
		k.seen, changed = seen, k.advance(now, k.group.Refresh(hubs))
	}
	if m := k.group.Member(h.Member); m != nil {
		if err := right.all(m.Subscription.Names); err != nil {
			return answer, changed, err
		}
		last := k.resolved[m.ID]
		h.Resolve = m.Subscription.Expression != "" &&
			(last.seen != seen || now.Sub(last.at) >= resolveInterval || right.all(m.Subscription.Matched) != nil)
	}
	next, answer, err := k.group.Heartbeat(h, hubs)
	if err == nil && next != k.group && (h.Epoch == consumer.EpochJoin || h.Names != nil || h.Expression != nil) {
		err = grow(next.Bytes() - k.bytes)
	}
	if err != nil {
		return consumer.Answer{}, changed, err
	}
	changed = k.advance(now, next) || changed
	k.deadlines.Heard(h.Member, now)
	if h.Resolve || h.Expression != nil {
		k.resolved[h.Member] = resolution{seen, now}
	}
	return answer, changed, nil
}

func (k *consumerKind) Idle() bool      { return k.group.Len() == 0 }
func (k *consumerKind) Absent() bool    { return k.Idle() }
func (k *consumerKind) Bytes() int      { return k.bytes }
func (k *consumerKind) Next() time.Time { return k.deadlines.Next() }

func (k *consumerKind) Topics() (names []string) {
	for _, m := range k.group.Members() {
		names = append(names, m.Subscription.Names...)
		names = append(names, m.Subscription.Matched...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (k *consumerKind) TopicsOf(id string) []string {
	m := k.group.Member(id)
	if m == nil {
		return nil
	}
	return slices.Concat(m.Subscription.Names, m.Subscription.Matched)
}

// commit lets a member that has yet to hear of its new epoch go on committing what it has kept (KIP-1251). What it has
// given up is another's by now.
func (k *consumerKind) commit(_ time.Time, by Committer, positions map[Partition]*Position) error {
	err := k.group.CheckCommit(by.Member, by.Generation)
	m := k.group.Member(by.Member)
	if !errors.Is(err, consumer.ErrStaleEpoch) || !m.Trails(by.Generation) {
		return err
	}
	has := make(map[Partition]bool)
	for topic, numbers := range m.Assigned.Or(m.Revoking).Topics() {
		for _, n := range numbers {
			has[Partition{broker.LogOf(k.broker, topic), n}] = true
		}
	}
	for p := range positions {
		if !has[p] {
			return err
		}
	}
	return nil
}

// tick removes members that were not heard of, or did not give up in time what they were to.
func (k *consumerKind) tick(now time.Time) classic.Effect {
	return classic.Effect{Save: k.advance(now, k.group.Remove(k.deadlines.Due(now), catalog{broker: k.broker}))}
}

func (k *consumerKind) store(e *entry) { e.Kind, e.Classic, e.Consumer = KindConsumer, nil, k.group }

func (k *consumerKind) show(d *Description) {
	d.Kind, d.State, d.Generation, d.Type, d.Protocol = KindConsumer, k.group.State(), k.group.Epoch, member.ConsumerProtocol, k.group.Assignor()
	for _, m := range k.group.Members() {
		view := classic.MemberView{ID: m.ID, Instance: m.Instance, Client: m.Client, Host: m.Host}
		d.Members = append(d.Members, Member{MemberView: view, assigned: m.Assigned})
	}
}

// catalog is the hubs as somebody with some rights sees them. Nobody without the right to a hub matches it; who
// names one was let in for it.
type catalog struct {
	broker *broker.Broker
	right  may
}

func (c catalog) Topic(name string) (consumer.Topic, bool) {
	hub, err := c.broker.Hub(name)
	if err != nil {
		return consumer.Topic{}, false
	}
	return consumer.Topic{ID: hub.ID, Name: hub.Name, Partitions: int32(hub.Partitions)}, true
}

func (c catalog) Match(expression *regexp.Regexp) (names []string) {
	for _, hub := range c.broker.Hubs() {
		if c.right(hub.Name) && expression.MatchString(hub.Name) {
			names = append(names, hub.Name)
		}
	}
	return names
}

// ConsumerHeartbeat has a client join a group of KIP-848, be in it, or leave it. It answers when what it says is
// durable. The client needs a right to all hubs that it names, and who joins to those of the other members, whom
// it disturbs, and to those in which the group has offsets, which it would go on from.
func (c *Coordinator) ConsumerHeartbeat(ctx context.Context, id string, h consumer.Heartbeat, right func(hub string) bool) (consumer.Answer, error) {
	if err := h.Check(); err != nil { // before rights to any number of names are looked at
		return consumer.Answer{}, err
	}
	if err := may(right).all(h.Names); err != nil {
		return consumer.Answer{}, err
	}
	var answer consumer.Answer
	joins := h.Epoch == consumer.EpochJoin
	heartbeat := func(g *group) error {
		_, err := g.ask(ctx, func(now time.Time, t classic.Ticket) (classic.Effect, error) {
			k, err := g.consumerLocked(now, joins)
			if err != nil {
				return classic.Effect{}, err
			}
			if joins {
				if err := may(right).all(k.Topics(), g.hubsLocked()); err != nil {
					return classic.Effect{}, err
				}
			}
			var changed bool
			answer, changed, err = k.heartbeat(now, h, right, g.growLocked)
			if err == nil {
				g.kind = k
			}
			return classic.Effect{Save: changed, Answers: []classic.Answer{{Ticket: t, Err: err}}}, nil
		})
		return err
	}
	if joins {
		err := c.findOrMake(ctx, id, heartbeat)
		return answer, err
	}
	g, err := c.find(ctx, id, false)
	if err == nil {
		err = heartbeat(g)
	}
	if errors.Is(err, ErrNotFound) {
		err = member.ErrUnknown
	}
	return answer, err
}

// consumerLocked gives the group as one of KIP-848. Where nobody is in a group of another kind it becomes one by
// whoever joins, once he has.
func (g *group) consumerLocked(now time.Time, joins bool) (*consumerKind, error) {
	k, ok := g.kind.(*consumerKind)
	switch {
	case ok:
		return k, nil
	case !joins:
		return nil, member.ErrUnknown
	case !g.kind.Idle():
		return nil, member.ErrKind
	}
	return restoreConsumer(now, new(consumer.Group), g.coordinator.cfg.Broker), nil
}

// DescribeConsumer gives a group of KIP-848 that is this node's; ErrNotFound where there is none.
func (c *Coordinator) DescribeConsumer(ctx context.Context, id string) (*consumer.Group, error) {
	g, err := c.find(ctx, id, false)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k, ok := g.kind.(*consumerKind)
	if !ok {
		return nil, ErrNotFound
	}
	return k.group, nil
}

// CheckFetch tells whether a member may go on from the group's offsets: not while it has an epoch that is not its
// own any more. Members of classic groups do not say what they are, and nobody else has to.
func (c *Coordinator) CheckFetch(ctx context.Context, id, member string, epoch int32) error {
	if member == "" && epoch < 0 {
		return nil
	}
	group, err := c.DescribeConsumer(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return group.CheckFetch(member, epoch)
}
