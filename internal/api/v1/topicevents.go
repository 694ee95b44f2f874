package v1

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// topicPartition is what positions in a topic's log are written with: it has one partition.
const topicPartition = "0"

// readTopic gives a page of what a topic holds. It settles nothing: who receives are its subscriptions.
func (d *Handler) readTopic(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	from, err := parseStart(query.Get("from"))
	if err == nil {
		err = from.check([]string{topicPartition})
	}
	if err != nil {
		return err
	}
	most, err := positive(query, "max", defaultPageEvents)
	if err != nil {
		return err
	}
	t, err := d.cfg.Grid.Topics.Topic(r.PathValue("topic"))
	if err != nil {
		return err
	}
	log, err := d.cfg.Grid.Topics.Log(&t)
	if err != nil {
		return err
	}
	reading := d.newReading(w, r)
	defer reading.end()
	if err := reading.hold(r.Context(), maxPageBytes+maxRunBytes); err != nil {
		return err
	}
	cursor, err := log.Cursor(r.Context(), from.of(topicPartition))
	if err != nil {
		return err
	}
	cursor = eventlog.EventsOnly(cursor)
	defer cursor.Close()
	page, err := readTopicPage(r.Context(), cursor, min(most, maxPageEvents))
	if err != nil {
		return err
	}
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	frame.Reply(w, http.StatusOK, "application/json", append(text, '\n'))
	return nil
}

// readTopicPage takes what there is, up to a number and about maxPageBytes.
func readTopicPage(ctx context.Context, cursor eventlog.Cursor, most int) (admin.TopicEvents, error) {
	page, bytes := admin.TopicEvents{Events: []admin.TopicEvent{}, Next: int64(cursor.At())}, 0
	for len(page.Events) < most && bytes < maxPageBytes {
		run, err := cursor.TryNext(ctx)
		if err != nil && len(page.Events) == 0 {
			return page, err
		}
		if err != nil || len(run.Events) == 0 {
			break
		}
		for i := 0; i < len(run.Events) && len(page.Events) < most; i++ {
			one := admin.TopicEvent{Sequence: int64(run.First) + int64(i), Enqueued: admin.Time{Time: run.Time}, Event: storedJSON(run.Events[i])}
			page.Events, page.Next, bytes = append(page.Events, one), one.Sequence+1, bytes+len(one.Event)
		}
	}
	return page, nil
}

// storedJSON is an event as it was published, in the form of its schema; null where it cannot be read.
func storedJSON(stored eventlog.Event) json.RawMessage {
	if body, _, ok := message.BodyAndProperties(stored.Message); ok && json.Valid(body) {
		return append(json.RawMessage{}, body...)
	}
	return json.RawMessage("null")
}
