package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
)

// Notice informs a reader of a hub that something happened between two events.
type Notice struct {
	// Lost is why the tail broke off; nil means that it is back.
	Lost error
	// Skipped: reading went on behind events that are damaged, as Lost says.
	Skipped bool
}

// Follow gives every event from the start on and continues with each new one, until ctx
// ends, the count is reached, the hub is deleted, or the yard refuses. A tail that
// breaks off is asked for again from the last position, so that no event is missed
// and none comes twice; notice, if not nil, hears of it. Only the first attempt may
// fail: where no yard ever answered there is nothing to come back to.
func (c *Client) Follow(ctx context.Context, q Query, notice func(Notice)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		f := &follower{stream: newStream(c, notice), query: q, yield: yield}
		if err := f.run(ctx, f); err != nil {
			yield(nil, err)
		}
	}
}

// follower is one Follow under way, in the goroutine of whoever ranges over it.
type follower struct {
	*stream
	query Query // From and Count move along with what was given
	yield func(json.RawMessage, error) bool
}

func (f *follower) request() request {
	query := f.query.values()
	query.Set("follow", "true")
	return request{
		method: http.MethodGet, path: []string{"hubs", f.query.Hub, "events"}, query: query,
		header: http.Header{"Accept": {"text/event-stream"}},
	}
}

func (f *follower) take(ev sseEvent) error {
	f.back()
	// A tail begins with its position, before any event: who asked for the latest and loses it then
	// comes back to the same latest.
	if ev.id != "" {
		f.query.From = ev.id
	}
	if ev.kind != "event" {
		return nil // a position alone, or something of a later yard for a later client
	}
	f.failures = 0
	if !f.yield(ev.data, nil) {
		return errDone
	}
	if f.query.Count > 0 {
		if f.query.Count--; f.query.Count == 0 {
			return errDone
		}
	}
	return nil
}

func (f *follower) ended(end streamEnd) error {
	f.back()
	moved := end.Resume != "" && end.Resume != f.query.From
	if moved {
		f.query.From = end.Resume
	}
	switch {
	case end.Reason == "count":
		return errDone
	case end.Reason == "deleted":
		return HubDeleted(f.query.Hub)
	case end.Reason == "damaged" && moved:
		f.notice(Notice{Lost: errors.New(end.Detail), Skipped: true})
		return errResume
	case end.Reason == "damaged":
		return fmt.Errorf("%s: %w", end.Detail, errStuck)
	}
	return nil
}
