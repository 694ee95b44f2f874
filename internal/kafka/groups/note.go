package groups

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// objectOf is a group as activity names it: in the hub of a log, so that whoever looks at the hub finds it, and by
// itself where there is no such hub.
func (c Config) objectOf(id, log string) string {
	if hub := broker.HubOf(c.Broker, log); hub != "" {
		return activity.Path("hubs", hub, "kafka-groups", id)
	}
	return activity.Path("kafka-groups", id)
}

// noteDeleted notes that somebody has deleted a group with its offsets: once for each hub in which it had any.
func (c Config) noteDeleted(ctx context.Context, id string, logs []string) {
	if len(logs) == 0 {
		logs = []string{""}
	}
	for _, log := range logs {
		c.Notes.Note(ctx, activity.Entry{Kind: "group.deleted", Object: c.objectOf(id, log), Detail: "a Kafka group"})
	}
}

// noteOffsets notes that an operator has changed what a group has committed; a nil position was forgotten. What
// consumers commit is no news.
func (c Config) noteOffsets(ctx context.Context, id string, change map[Partition]*Position) {
	type what struct {
		log  string
		kind activity.Kind
	}
	noted := make(map[what]*activity.Entry)
	for p, position := range change {
		w, detail := what{p.Log, activity.CheckpointForgotten}, fmt.Sprintf("partition %d", p.Number)
		if position != nil {
			w.kind, detail = activity.CheckpointMoved, fmt.Sprintf("partition %d to offset %d", p.Number, position.Offset)
		}
		e := noted[w]
		if e == nil {
			e = &activity.Entry{Kind: w.kind, Object: c.objectOf(id, p.Log), Detail: detail}
			noted[w] = e
		} else {
			e.Detail = fmt.Sprintf("%d partitions", e.Count+1)
		}
		e.Count++
	}
	for _, e := range noted {
		c.Notes.Note(ctx, *e)
	}
}

const (
	// membersNoted is how many members that came or went with one change are noted by name; of more it is noted how
	// many they are.
	membersNoted = 8
	// hubsNoted is in how many hubs that is noted, of those that the group is about.
	hubsNoted = 8
)

// noteMembers notes who has come into a group and who has left it, once that is stored: in each hub that the group
// subscribes to or has offsets in. Generations of the same members are no news.
func (c Config) noteMembers(id string, was, is entry, topics []string) {
	before, now := was.clients(), is.clients()
	came, went := beyond(now, before), beyond(before, now)
	if len(came)+len(went) == 0 || c.Notes == nil {
		return
	}
	for _, object := range c.objectsOf(id, is, topics) {
		c.noteEach(object, activity.InstanceWent, went)
		c.noteEach(object, activity.InstanceCame, came)
	}
}

// clients are the members that are stored: what their clients call themselves, by id.
func (e entry) clients() map[string]string {
	all := make(map[string]string, e.members())
	switch {
	case e.Consumer != nil:
		for _, m := range e.Consumer.Members() {
			all[m.ID] = m.Client
		}
	case e.Classic != nil:
		for _, m := range e.Classic.Members {
			all[m.ID] = m.Client
		}
	}
	return all
}

// beyond is what is in one map alone.
func beyond(one, other map[string]string) map[string]string {
	one = maps.Clone(one)
	maps.DeleteFunc(one, func(id, _ string) bool { _, both := other[id]; return both })
	return one
}

// objectsOf is a group in each hub that it is about; or by itself where there are none, or too many.
func (c Config) objectsOf(id string, e entry, topics []string) []string {
	hubs := slices.Clone(topics)
	for _, log := range e.logs() {
		if hub := broker.HubOf(c.Broker, log); hub != "" {
			hubs = append(hubs, hub)
		}
	}
	slices.Sort(hubs)
	hubs = slices.Compact(hubs)
	if len(hubs) == 0 || len(hubs) > hubsNoted {
		return []string{activity.Path("kafka-groups", id)}
	}
	objects := make([]string, len(hubs))
	for i, hub := range hubs {
		objects[i] = activity.Path("hubs", hub, "kafka-groups", id)
	}
	return objects
}

// noteEach notes what members did, each by its id, or how many they are.
func (c Config) noteEach(object string, kind activity.Kind, members map[string]string) {
	if len(members) > membersNoted {
		c.Notes.Note(context.Background(), activity.Entry{Kind: kind, Object: object, Count: len(members), Detail: fmt.Sprintf("%d members of a Kafka group", len(members))})
		return
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		c.Notes.Note(context.Background(), activity.Entry{
			Kind: kind, Object: object + "/" + activity.Path("instances", id), Detail: "a member of a Kafka group, by client " + cmp.Or(members[id], "without a name"),
		})
	}
}
