package groups

import (
	"context"
	"fmt"

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
