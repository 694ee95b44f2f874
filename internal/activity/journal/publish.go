package journal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
)

// published is the event that tells of an entry, in the stored form of Event Grid's schema.
type published struct {
	ID        string         `json:"id"`
	Subject   string         `json:"subject"`
	EventType string         `json:"eventType"`
	EventTime string         `json:"eventTime"`
	Data      activity.Entry `json:"data"`
}

// kept are families that the journal alone has: what it says of itself, and circuits, whose changes are published
// with more about them (package notify). Moves of partitions are published as the journal has them: gathered, one
// event a second and group, within what clients may have noted.
var kept = map[string]bool{"circuit": true, "activity": true}

// isPublished tells whether an entry goes to the grid as well. That somebody has looked at a key is no
// change.
func isPublished(e activity.Entry) bool {
	return !e.Silent && !kept[e.Kind.Family()] && e.Kind != activity.KeyRevealed
}

// EventType is that of the event that tells of a kind: Eventyard.HubCreated of hub.created.
func EventType(k activity.Kind) string {
	name := "Eventyard."
	for _, word := range strings.FieldsFunc(string(k), func(r rune) bool { return r == '.' || r == '-' }) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// publish tells the grid of what was written, once. It may be missing there after a crash; the journal has
// it.
func (j *Journal) publish(ctx context.Context, written []activity.Entry) {
	if j.cfg.Publish == nil {
		return
	}
	var events [][]byte
	for _, e := range written {
		if !isPublished(e) {
			continue
		}
		event, err := json.Marshal(published{
			ID: rand.Text(), Subject: e.Object, EventType: EventType(e.Kind), EventTime: e.At.Format(time.RFC3339Nano), Data: e,
		})
		if err == nil {
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		return
	}
	if err := j.cfg.Publish(ctx, events); err != nil && ctx.Err() == nil {
		j.cfg.Log.Warn("activity could not be published; the journal has it", "error", err)
	}
}
