package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Activity is the journal of what changed. All methods may be called by many goroutines at once.
type Activity interface {
	// Note takes a change, and does not wait.
	Note(ctx context.Context, e activity.Entry)
	Page(ctx context.Context, q journal.Query) ([]journal.Recorded, eventlog.Sequence, error)
	Follow(ctx context.Context, q journal.Query, after eventlog.Sequence) (*journal.Tail, error)
}

var _ Activity = (*journal.Journal)(nil)

// note has a change kept that is the listener's to tell.
func (d *Handler) note(r *http.Request, e activity.Entry) {
	if d.cfg.Activity != nil {
		activity.Notes(d.cfg.Activity.Note).Note(r.Context(), e)
	}
}

// reveal has it kept that somebody was shown keys.
func (d *Handler) reveal(r *http.Request, object string) {
	d.note(r, activity.Entry{Kind: activity.KeyRevealed, Object: object})
}

const (
	maxActivityPage = 1000
	// maxKinds is how many kinds a query may name.
	maxKinds = 64
)

// listActivity gives a page of the journal, or with watch what comes.
func (d *Handler) listActivity(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q, err := activityQuery(query)
	if err != nil {
		return err
	}
	if name := r.PathValue("hub"); name != "" {
		if q, err = d.ofHub(r, q, name); err != nil {
			return err
		}
	}
	watch, err := asksToWatch(r)
	if err != nil {
		return err
	}
	if watch {
		return d.watchActivity(w, r, q)
	}
	found, next, err := d.cfg.Activity.Page(r.Context(), q)
	if err != nil {
		return err
	}
	page := admin.ActivityPage{Activity: make([]admin.Activity, len(found)), Next: int64(next)}
	for i, f := range found {
		page.Activity[i] = showActivity(f)
	}
	return writeJSON(w, http.StatusOK, page)
}

// ofHub narrows a query to a hub: to the one that has the name now, and not to one that had it before.
func (d *Handler) ofHub(r *http.Request, q journal.Query, name string) (journal.Query, error) {
	hub, err := d.cfg.Broker.LookUp(r.Context(), name)
	if err != nil {
		return q, err
	}
	whole := activity.Path("hubs", hub.Name)
	switch {
	case q.Object == "":
		q.Object = whole
	case !(journal.Query{Object: whole}).Chooses(activity.Entry{Object: q.Object}):
		return q, badRequest("name something in "+whole+", or leave it out", "object=%.128s is not of this hub", q.Object)
	}
	if q.Since.Before(hub.Created) {
		q.Since = hub.Created
	}
	return q, nil
}

// sayKinds lists all kinds of changes by their families.
func sayKinds() string {
	families := activity.Families()
	var all []string
	for _, family := range slices.Sorted(maps.Keys(families)) {
		all = append(all, family+" ("+strings.Join(families[family], ", ")+")")
	}
	return strings.Join(all, ", ")
}

func activityQuery(query url.Values) (q journal.Query, err error) {
	for _, text := range query["kind"] {
		q.Kinds = append(q.Kinds, strings.Split(text, ",")...)
	}
	if len(q.Kinds) > maxKinds {
		return q, badRequest("name families of kinds, such as hub", "%d kinds are too many", len(q.Kinds))
	}
	for _, kind := range q.Kinds {
		if !activity.IsKind(kind) {
			return q, badRequest("name one of these, or one with a dot, such as hub.created: "+sayKinds(), "kind=%.64s is no kind of change", kind)
		}
	}
	q.Object, q.By = strings.Trim(query.Get("object"), "/"), query.Get("by")
	now := time.Now()
	for _, bound := range []struct {
		name  string
		field *time.Time
	}{{"since", &q.Since}, {"until", &q.Until}} {
		if text := query.Get(bound.name); text != "" {
			if *bound.field, err = parseMoment(text, now); err != nil {
				return q, err
			}
		}
	}
	if text := query.Get("before"); text != "" {
		n, ok := parseSequence(text)
		if !ok {
			return q, badRequest("give the next of an earlier page, or leave it out", "before=%.64s is no number", text)
		}
		q.Before = n
	}
	q.Limit, err = positive(query, "limit", 0)
	q.Limit = min(q.Limit, maxActivityPage)
	return q, err
}

func showActivity(f journal.Recorded) admin.Activity {
	e := f.Entry
	shown := admin.Activity{
		Number: int64(f.Number), At: admin.Time{Time: e.At}, Kind: string(e.Kind), Object: e.Object, By: e.By, Address: e.Address, Node: e.Node,
		Detail: e.Detail, Fields: e.Fields, Count: e.Count,
	}
	for _, m := range e.Moves {
		shown.Moves = append(shown.Moves, admin.OwnershipMove{At: admin.Time{Time: m.At}, From: m.From, To: m.To, Partitions: m.Partitions})
	}
	return shown
}

// afterOf is the entry that a watch begins behind, by the query or by what a browser says that it heard
// last; below zero: it begins with what comes.
func afterOf(r *http.Request) (eventlog.Sequence, error) {
	text := r.URL.Query().Get("after")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		text = last
	}
	if text == "" {
		return -1, nil
	}
	n, ok := parseSequence(text)
	if !ok {
		return 0, badRequest("give the number of an entry, or leave it out", "after=%.64s is no number", text)
	}
	return n, nil
}

// watchActivity sends entries as server-sent events until the client leaves, the token expires or is revoked
// or the yard stops. But for the first of these, the last thing it sends is an event named end.
func (d *Handler) watchActivity(w http.ResponseWriter, r *http.Request, q journal.Query) error {
	after, err := afterOf(r)
	if err != nil {
		return err
	}
	leave, err := d.followed.Take(grantOf(r).Account(), 1)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	tail, err := d.cfg.Activity.Follow(ctx, q, after)
	if err != nil {
		return err
	}
	defer tail.Close()
	d.metrics.tails.Inc()
	defer d.metrics.tails.Dec()
	out := newStream(w, "text/event-stream", d.cfg.WriteTimeout)
	err = giveActivity(ctx, tail, out, d.cfg.Heartbeat)
	if errors.Is(err, errClientGone) || r.Context().Err() != nil {
		return nil
	}
	reason := endReason(err)
	if reason == endFailed {
		d.logOurs("watching the activity broke off", err)
	}
	out.sayEnd(endJSON{Reason: reason, Detail: frame.Words(err)})
	return nil
}

// giveActivity sends what comes until there is a reason to end, and gives it. The first thing is a number
// without an entry, for who comes back before there was any.
func giveActivity(ctx context.Context, tail *journal.Tail, out *stream, heartbeat time.Duration) error {
	if out.send("id: "+strconv.FormatInt(int64(tail.At())-1, 10)+"\n\n") != nil {
		return errClientGone
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, heartbeat)
		found, err := tail.Next(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			if out.send(": still here\n\n") != nil {
				return errClientGone
			}
			continue
		case err != nil:
			return err
		}
		for _, f := range found {
			data, err := json.Marshal(showActivity(f))
			if err != nil {
				return err
			}
			if out.send(fmt.Sprintf("id: %d\nevent: activity\ndata: %s\n\n", f.Number, data)) != nil {
				return errClientGone
			}
		}
	}
}

// asksToWatch tells whether a request wants to be told again and again, by its query or by what it accepts.
func asksToWatch(r *http.Request) (bool, error) {
	switch text := r.URL.Query().Get("watch"); text {
	case "":
		return strings.Contains(r.Header.Get("Accept"), "text/event-stream"), nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, badRequest("watch is true or false", "watch cannot be %.64q", text)
	}
}
