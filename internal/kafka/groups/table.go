package groups

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Row is one partition of a hub in the table of a group.
type Row struct {
	Hub       string
	Partition int32
	// Member is the id of who has it, and Client what that calls itself; empty: nobody has it.
	Member, Client string
	// Committed is nil where nothing was.
	Committed *Position
	// First and Last are the oldest event kept and the newest; see broker.PartitionInfo.
	First, Last int64
	// Lag is nil where nothing was committed: where such a group begins is for its members to say.
	Lag *Lag
	// Beyond: what was committed is behind the end, and cannot be right.
	Beyond bool
}

// Lag is what a group has yet to read of a partition: how many events, and for how long the oldest of them has been
// stored.
type Lag struct {
	Events int64
	Oldest time.Duration
}

// Operator is what operators may do to groups, at whichever node these are. Rights are the caller's to judge. All methods
// may be called by many goroutines at once.
type Operator struct{ *Coordinator }

// Hubs are those that a group is about, by name: its members subscribe to them, or it has offsets there. Those that do
// not exist are left out.
func (o Operator) Hubs(d Description) (names []string) {
	for _, topic := range d.Topics {
		if hub, err := o.cfg.Broker.Hub(topic); err == nil {
			names = append(names, hub.Name)
		}
	}
	for _, log := range d.Logs {
		if name := broker.HubOf(o.cfg.Broker, log); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Assigned are the partitions that a member has, by hub. Those of members that are no consumers are not known.
func (o Operator) Assigned(d Description, m Member) map[string][]int32 {
	all := make(map[string][]int32)
	for topic, numbers := range m.assigned.Topics() {
		if name := broker.HubOf(o.cfg.Broker, broker.LogOf(o.cfg.Broker, topic)); name != "" {
			all[name] = append(all[name], numbers...)
		}
	}
	if d.Kind != KindClassic || d.Type != member.ConsumerProtocol || len(m.Assignment) == 0 {
		return all
	}
	// What cannot be read is a matter between the members.
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(m.Assignment) != nil {
		return all
	}
	for _, topic := range a.Topics {
		if hub, err := o.cfg.Broker.Hub(topic.Topic); err == nil {
			all[hub.Name] = append(all[hub.Name], topic.Partitions...)
		}
	}
	return all
}

// Rows are the partitions of one hub in a group: all of them if members subscribe to it, else those that the group has
// committed. They are not of one moment in the strict sense: while they are read, things change.
func (o Operator) Rows(ctx context.Context, d Description, hub string) ([]Row, error) {
	h, err := o.cfg.Broker.LookUp(ctx, hub)
	if err != nil {
		return nil, err
	}
	log := broker.LogOf(o.cfg.Broker, h.ID)
	committed, err := committedIn(ctx, o.cfg.Meta, d.ID, log)
	if err != nil {
		return nil, err
	}
	owners := make(map[int32]Member)
	for _, m := range d.Members {
		for _, n := range o.Assigned(d, m)[h.Name] {
			owners[n] = m
		}
	}
	infos, err := o.cfg.Broker.Partitions(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	subscribed := slices.ContainsFunc(d.Topics, func(t string) bool { return auth.Fold(t) == auth.Fold(h.Name) })
	now := time.Now()
	var rows []Row
	for i, info := range infos {
		n := int32(i)
		owner, owned := owners[n]
		position, found := committed[n]
		if !subscribed && !owned && !found {
			continue
		}
		row := Row{Hub: h.Name, Partition: n, Member: owner.ID, Client: owner.Client, First: int64(info.First), Last: int64(info.Next) - 1}
		if found {
			row.Committed, row.Beyond = &position, position.Offset > int64(info.Next)
			if row.Lag, err = o.lag(ctx, d.ID, log, info, position.Offset, now); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// lag is what is behind an offset. What retention has removed is not waited for.
func (o Operator) lag(ctx context.Context, id, log string, info broker.PartitionInfo, offset int64, now time.Time) (*Lag, error) {
	oldest := max(offset, int64(info.First), 0)
	lag := &Lag{Events: max(0, int64(info.Next)-oldest)}
	if lag.Events == 0 {
		return lag, nil
	}
	at, err := o.oldest.Of(log+"/"+info.ID+"/"+id, oldest, func() (time.Time, error) {
		cursor, err := o.cfg.Broker.RawCursor(ctx, info.Hub, info.ID, eventlog.At(eventlog.Sequence(oldest)))
		if err != nil {
			return time.Time{}, err
		}
		defer cursor.Close()
		run, err := cursor.TryNext(ctx)
		return run.Time, wrap(err, "read event %d of %s/%s", oldest, info.Hub, info.ID)
	})
	if err != nil {
		return nil, err
	}
	if !at.IsZero() { // else it is not there any more
		lag.Oldest = max(0, now.Sub(at))
	}
	return lag, nil
}

// All gives all groups, by id: those in use here as they are, others as the store has them.
func (o Operator) All(ctx context.Context) ([]Description, error) {
	return list(ctx, o.Coordinator, func(string) bool { return true })
}

// Look gives one of these; ErrNotFound where there is none.
func (o Operator) Look(ctx context.Context, id string) (Description, error) {
	if err := checkID(id); err != nil {
		return Description{}, err
	}
	o.mu.Lock()
	g := o.all[id]
	o.mu.Unlock()
	if g != nil {
		select {
		case <-g.loaded:
			if g.failed == nil && g.exists() && o.cfg.Mine(id) {
				return g.describe(), nil
			}
		default:
		}
	}
	e, err := o.read(ctx, id)
	if err != nil {
		return Description{}, err
	}
	return e.describe(id, o.cfg), nil
}

// Committed is what a group has committed in a hub, by partition.
func (o Operator) Committed(ctx context.Context, id, hub string) (map[int32]Position, error) {
	log, err := o.log(ctx, hub)
	if err != nil {
		return nil, err
	}
	return committedIn(ctx, o.cfg.Meta, id, log)
}

// SetOffsets sets what a group has committed in a hub, and makes the group where there is none. ErrNotEmpty: it has members.
func (o Operator) SetOffsets(ctx context.Context, id, hub string, offsets map[int32]int64) error {
	log, err := o.log(ctx, hub)
	if err != nil {
		return err
	}
	change := make(map[Partition]*Position)
	for n, offset := range offsets {
		change[Partition{log, n}] = &Position{Offset: offset, Epoch: -1, Time: time.Now()}
	}
	err = o.visit(ctx, id, true, func(g *group) error { return g.setOffsets(ctx, change) })
	if err == nil {
		o.cfg.noteOffsets(ctx, id, change)
	}
	return err
}

// Forget removes what a group has committed in a hub. ErrNotEmpty: it has members.
func (o Operator) Forget(ctx context.Context, id, hub string) error {
	log, err := o.log(ctx, hub)
	if err != nil {
		return err
	}
	change := make(map[Partition]*Position)
	err = o.visit(ctx, id, false, func(g *group) error {
		there, err := committedIn(ctx, o.cfg.Meta, id, log)
		if err != nil {
			return err
		}
		clear(change) // somebody else may have had the group the first time
		for n := range there {
			change[Partition{log, n}] = nil
		}
		return g.setOffsets(ctx, change)
	})
	if err == nil {
		o.cfg.noteOffsets(ctx, id, change)
	}
	return err
}

// Delete deletes a group without members, with its offsets; see Coordinator.Delete.
func (o Operator) Delete(ctx context.Context, id string, may func(logs []string) error) error {
	return o.visit(ctx, id, false, func(g *group) error {
		if err := may(g.logs()); err != nil {
			return err
		}
		return o.delete(ctx, g, func(_ context.Context, e entry) error { return may(e.logs()) })
	})
}

// setOffsets has positions stored that operators want; nil ones are removed.
func (g *group) setOffsets(ctx context.Context, change map[Partition]*Position) error {
	failed, err := g.commit(ctx, change, func(time.Time) error {
		if !g.kind.Idle() {
			return ErrNotEmpty
		}
		return nil
	})
	return cmp.Or(err, cmp.Or(slices.Collect(maps.Values(failed))...))
}

// visit has an operator change a group, at whichever node it is, and makes it where there is none if create says so. One
// of another node's is taken over for that, unless somebody is in it: its coordinator hears of it with its next write,
// and loads it anew. What was committed in transactions before is written first: it must not come behind the change.
func (o Operator) visit(ctx context.Context, id string, create bool, do func(g *group) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	if o.cfg.Mine(id) {
		if err := o.Stages.foldHere(ctx, id); err != nil {
			return err
		}
		if create {
			return o.findOrMake(ctx, id, do)
		}
		g, err := o.find(ctx, id, false)
		if err != nil {
			return err
		}
		return do(g)
	}
	switch d, err := o.Look(ctx, id); {
	case err == nil && len(d.Members) > 0:
		return ErrNotEmpty
	case err != nil && !(create && errors.Is(err, ErrNotFound)):
		return err
	}
	g := newGroup(o.Coordinator, id, accountOf(ctx))
	g.visiting = true
	if !o.begin() {
		return ErrStopping
	}
	defer o.work.Done()
	g.load()
	if g.failed != nil {
		return g.failed
	}
	defer g.giveUp(ErrNotCoordinator)
	if err := o.Stages.foldFor(ctx, id, func(do func(*group) error) error { return do(g) }); err != nil {
		return err
	}
	return do(g)
}

// begin has Run wait for something that is about to be done; false: it has ended.
func (o Operator) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stopped {
		o.work.Add(1)
	}
	return !o.stopped
}

// read gives the entry of a group; ErrNotFound where there is none.
func (o Operator) read(ctx context.Context, id string) (entry, error) {
	there, err := getEntry(ctx, o.Coordinator, groupKey(id))
	if errors.Is(err, meta.ErrNotFound) {
		return entry{}, ErrNotFound
	}
	if err != nil {
		return entry{}, wrap(err, "read group %.80q", id)
	}
	return decodeEntry(there)
}

// log is that of a hub.
func (o Operator) log(ctx context.Context, hub string) (string, error) {
	h, err := o.cfg.Broker.LookUp(ctx, hub)
	if err != nil {
		return "", err
	}
	log := broker.LogOf(o.cfg.Broker, h.ID)
	if log == "" { // it was deleted just now
		return "", &broker.NotFoundError{Kind: broker.KindHub, Hub: h.Name, Name: h.Name}
	}
	return log, nil
}
