package v1

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// maxDeadPage is the most dead letters that are listed at once.
const maxDeadPage = 1000

func (d *Handler) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	q, err := parseDeadQuery(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := d.cfg.Grid.Dead.List(r.Context(), s.ID, q)
	if err != nil {
		return err
	}
	shown := admin.DeadLetterPage{Letters: make([]admin.DeadLetter, len(page.Letters)), Next: page.Next, Total: page.Total}
	for i := range page.Letters {
		shown.Letters[i] = showLetter(&page.Letters[i], nil)
	}
	return writeJSON(w, http.StatusOK, shown)
}

func parseDeadQuery(query url.Values) (deadletter.Query, error) {
	q, err := deadQuery(admin.DeadLetterChoice{
		EventID: query.Get("eventId"), EventType: query.Get("eventType"), Reason: query.Get("reason"), Outcome: query.Get("outcome"),
		Since: query.Get("since"), Until: query.Get("until"), Redriven: query.Get("redriven") == "true",
	})
	if err != nil {
		return q, err
	}
	if q.Limit, err = positive(query, "max", 100); err != nil {
		return q, err
	}
	q.Limit = min(q.Limit, maxDeadPage)
	if text := query.Get("from"); text != "" {
		if q.From, err = strconv.ParseInt(text, 10, 64); err != nil || q.From < 0 {
			return q, badRequest("use the next of a page before", "from cannot be %.64q", text)
		}
	}
	return q, nil
}

// deadQuery reads which letters are meant.
func deadQuery(c admin.DeadLetterChoice) (deadletter.Query, error) {
	q := deadletter.Query{
		Numbers: c.Numbers, EventID: c.EventID, EventType: c.EventType, Reason: c.Reason, Outcome: c.Outcome, Redriven: c.Redriven,
	}
	for _, bound := range []struct {
		text  string
		field *time.Time
	}{{c.Since, &q.Since}, {c.Until, &q.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := parseMoment(bound.text, time.Now())
		if err != nil {
			return q, err
		}
		*bound.field = at
	}
	return q, nil
}

// parseMoment reads a time, or how long ago it was.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if age, err := quantity.ParseSigned(text); err == nil {
		return now.Add(-age), nil
	}
	return time.Time{}, badRequest("write a time like 2026-01-31T18:00:00Z, or how long ago it was, like 2h", "%.64q is no time", text)
}

// showLetter shows a dead letter; with its subscription also the event, as it would have been
// delivered.
func showLetter(l *deadletter.Letter, s *topics.Subscription) admin.DeadLetter {
	shown := admin.DeadLetter{
		Number: l.Number, Reason: l.Reason, Attempts: l.Attempts, Outcome: string(l.LastOutcome), Status: l.LastStatus,
		Published: l.Published.UTC(), LastAttempt: spec.TimeIfAny(l.LastAttempt), Died: l.Died.UTC(), Written: l.Written,
		Redriven: spec.TimeIfAny(l.Redriven), Redrives: l.Redrives,
	}
	if l.Reason == retry.ReasonHops {
		shown.Advice = hops.Advice
	}
	var e schema.Envelope
	if err := e.Scan(l.Form, l.Delivery.Event); err != nil {
		return shown // what cannot be read is listed all the same
	}
	shown.EventID, shown.EventType, shown.Subject = string(e.ID), string(e.Type), string(e.Subject)
	e.Trace = l.Trace
	trace := e.TraceContext()
	shown.TraceID, shown.TraceParent = trace.Trace(), trace.TraceParent()
	if s != nil {
		e.Topic = s.Resource
		body, err := schema.AppendEvent(nil, &e, s.Output)
		if err != nil {
			body = e.Raw // as it is stored, where the subscription asks by now for a schema that cannot have it
		}
		shown.Event = body
	}
	return shown
}

func (d *Handler) getDeadLetter(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil {
		return badRequest("use a number from the list", "%.64q is no dead letter's number", r.PathValue("number"))
	}
	letter, err := d.cfg.Grid.Dead.Get(r.Context(), s.ID, number)
	return answer(w, showLetter(&letter, &s), err)
}

func (d *Handler) redrive(w http.ResponseWriter, r *http.Request) error {
	var q admin.RedriveRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	for _, field := range []struct {
		name  string
		value float64
	}{{"from", float64(q.From)}, {"max", float64(q.Max)}, {"rate", q.Rate}} {
		if field.value < 0 {
			return badRequest("give 0 or more, or leave it out", "%s cannot be %v", field.name, field.value)
		}
	}
	query, err := deadQuery(q.DeadLetterChoice)
	if err != nil {
		return err
	}
	query.From, query.Limit = q.From, q.Max
	redriven, err := d.cfg.Grid.Dead.Redrive(r.Context(), s.ID, query, deadletter.RedriveOptions{Rate: q.Rate, Force: q.Force, Dry: q.DryRun})
	if !q.DryRun && redriven.Count > 0 {
		d.noteLetters(r, activity.DeadRedriven, &s, redriven.Count)
	}
	return answer(w, admin.Redriven{
		Redriven: redriven.Count, Skipped: redriven.Skipped, Next: redriven.Next, Until: redriven.Until.UTC().Format(time.RFC3339Nano), DryRun: q.DryRun,
	}, err)
}

func (d *Handler) purgeDeadLetters(w http.ResponseWriter, r *http.Request) error {
	var q admin.DeadLetterChoice
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	query, err := deadQuery(q)
	if err != nil {
		return err
	}
	n, err := d.cfg.Grid.Dead.Purge(r.Context(), s.ID, query)
	if n > 0 {
		d.noteLetters(r, activity.DeadPurged, &s, n)
	}
	return answer(w, admin.Purged{Purged: n}, err)
}

func (d *Handler) noteLetters(r *http.Request, kind activity.Kind, s *topics.Subscription, count int) {
	e := activity.Entry{Kind: kind, Count: count, Silent: s.Source.IsYardsOwn()}
	e.Object, e.Detail = topics.ObjectOf(s)
	d.note(r, e)
}
