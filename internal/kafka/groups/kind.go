package groups

import (
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// kind is what a group is to who keeps it and watches its time, whatever the protocol of its members is. It is
// called with the group's lock held.
type kind interface {
	// Idle: nobody is in the group, or about to be. Then members of another kind may come.
	Idle() bool
	// Absent: nobody is in the group, whoever is about to be. Then it may be forgotten: who comes begins anew.
	Absent() bool
	// Bytes is about what its members take in memory.
	Bytes() int
	// Next is when tick has something to do; zero: never.
	Next() time.Time
	// Topics are those that members subscribe to.
	Topics() []string
	// TopicsOf are those that one member subscribes to.
	TopicsOf(member string) []string

	// commit judges whether somebody may commit positions of partitions.
	commit(now time.Time, by Committer, positions map[Partition]*Position) error
	tick(now time.Time) classic.Effect
	// store writes what is to be kept into an entry, and its kind.
	store(e *entry)
	// show fills in what operators and clients see.
	show(d *Description)
}

// restore makes the group of an entry.
func restore(now time.Time, e entry, cfg Config) kind {
	if e.Consumer != nil {
		return restoreConsumer(now, e.Consumer, cfg.Broker)
	}
	if e.Classic == nil {
		return classicKind{classic.New(cfg.InitialDelay)}
	}
	return classicKind{classic.Restore(now, *e.Classic, cfg.InitialDelay)}
}

// classicKind is a group of the classic protocol.
type classicKind struct{ *classic.Group }

// Absent: somebody may have been given an id. If the group is forgotten he joins as a new one.
func (k classicKind) Absent() bool { return k.State() == classic.Empty }

func (k classicKind) tick(now time.Time) classic.Effect { return k.Tick(now) }

func (k classicKind) commit(now time.Time, by Committer, _ map[Partition]*Position) error {
	return k.Commit(now, by.Member, by.Instance, by.Generation)
}

func (k classicKind) store(e *entry) {
	stored := k.Stored()
	e.Kind, e.Classic, e.Consumer = KindClassic, &stored, nil
}

func (k classicKind) show(d *Description) {
	v := k.View()
	d.Kind, d.State, d.Generation, d.Type, d.Protocol = KindClassic, string(v.State), v.Generation, v.Type, v.Protocol
	for _, m := range v.Members {
		d.Members = append(d.Members, Member{MemberView: m})
	}
}

// classicLocked gives the group as one of the classic protocol. Where nobody is in a group of another kind it becomes
// one by whoever joins, once he has.
func (g *group) classicLocked(joins bool) (*classic.Group, error) {
	k, ok := g.kind.(classicKind)
	switch {
	case ok:
		return k.Group, nil
	case !g.kind.Idle():
		return nil, member.ErrKind
	case !joins:
		return nil, member.ErrUnknown
	}
	return classic.New(g.coordinator.cfg.InitialDelay), nil
}
