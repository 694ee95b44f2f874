package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxCause bounds the name of a cause that is told of.
const maxCause = 500

// causeOf is what an event came from, as its publisher says: by data.cause, or by a correlation id. Where that
// names an event of a hub it is looked up. nil: nothing is said.
func (d *Handler) causeOf(ctx context.Context, t *traveller) (*admin.JourneyCause, error) {
	c := &admin.JourneyCause{By: "data.cause", Text: textOf(t.envelope.Field("data.cause"))}
	if c.Text == "" {
		c.By, c.Text = "correlation-id", cmp.Or(t.correlation, textOf(t.envelope.Field("correlationid")))
	}
	if c.Text == "" || len(c.Text) > maxCause {
		return nil, nil
	}
	hub, partition, sequence, ok := causePosition(c.Text)
	if !ok {
		return c, nil
	}
	cursor, err := d.cfg.Broker.Cursor(ctx, hub, broker.DefaultGroup, partition, eventlog.At(eventlog.Sequence(sequence)))
	if missing, _ := errors.AsType[*broker.NotFoundError](err); missing != nil {
		return c, nil // it only looks like one
	}
	c.Hub, c.Partition, c.Sequence = hub, partition, &sequence
	if gone, _ := errors.AsType[*eventlog.PositionError](err); gone != nil {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the event's cause: %w", err)
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err == nil && len(run.Events) > 0 && int64(run.First) == sequence {
		c.Published = new(run.Time.UTC())
	}
	return c, nil // who cannot be read is named all the same
}

// textOf is a JSON string, or a number as it is written; empty: it is neither.
func textOf(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// causePosition reads HUB/PARTITION/SEQUENCE; a hub's name may have slashes itself.
func causePosition(text string) (hub, partition string, sequence int64, ok bool) {
	parts := strings.Split(text, "/")
	n := len(parts)
	if n < 3 {
		return "", "", 0, false
	}
	_, wrong := strconv.ParseUint(parts[n-2], 10, 16)
	sequence, err := strconv.ParseInt(parts[n-1], 10, 64)
	return strings.Join(parts[:n-2], "/"), parts[n-2], sequence, wrong == nil && err == nil && sequence >= 0
}
