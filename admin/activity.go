package admin

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Activity is one change of state of a yard.
type Activity struct {
	// Number is that of the journal's entry; later ones have higher numbers.
	Number int64 `json:"number"`
	At     Time  `json:"at"`
	// Kind is what happened, such as hub.created; what comes before the dot is its family.
	Kind string `json:"kind"`
	// Object is what changed, as a path of the API: hubs/orders/groups/billing.
	Object string `json:"object"`
	// By is the policy, or the subject of a token, that asked for it, or an instance; empty: the yard
	// itself. Address is where that came from, and Node where it happened.
	By      string `json:"by,omitempty"`
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Fields are those of a definition that changed, and Count of how many things it tells.
	Fields []string `json:"fields,omitempty"`
	Count  int      `json:"count,omitempty"`
	// Moves are the partitions that changed their owner.
	Moves []OwnershipMove `json:"moves,omitempty"`
}

// OwnershipMove is partitions that went from one owner to another; empty: nobody.
type OwnershipMove struct {
	At         Time     `json:"at"`
	From       string   `json:"from,omitempty"`
	To         string   `json:"to,omitempty"`
	Partitions []string `json:"partitions"`
}

// ActivityPage is some of it, the newest first.
type ActivityPage struct {
	Activity []Activity `json:"activity"`
	// Next is the Before of the next page; 0: there is nothing more. It may be there where this page has
	// fewer than asked for, or none.
	Next int64 `json:"next,omitempty"`
}

// ActivityQuery chooses activity. Its zero value chooses all that the yard keeps.
type ActivityQuery struct {
	// Hub asks for that of one hub, for which the right to manage it is enough.
	Hub string
	// Kinds are kinds, or their families; none: all.
	Kinds []string
	// Object is one, with all that is in it; By is who did it.
	Object, By string
	// Since and Until are times, or how long ago they were.
	Since, Until string
	// Before is the number that all are below, and Limit how many there are at most; 0: as the yard has it.
	Before int64
	Limit  int
	// After is the number behind which a watch begins; nil: it begins with what comes next.
	After *int64
}

func (q ActivityQuery) request() request {
	r := request{method: http.MethodGet, path: []string{"activity"}, query: url.Values{}}
	if q.Hub != "" {
		r.path = []string{"hubs", q.Hub, "activity"}
	}
	for _, kind := range q.Kinds {
		r.query.Add("kind", kind)
	}
	for name, value := range map[string]string{"object": q.Object, "by": q.By, "since": q.Since, "until": q.Until} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if q.Before > 0 {
		r.query.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if q.Limit > 0 {
		r.query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != nil {
		r.query.Set("after", strconv.FormatInt(*q.After, 10))
	}
	return r
}

// Activity gives a page of what changed, the newest first.
func (c *Client) Activity(ctx context.Context, q ActivityQuery) (ActivityPage, error) {
	return one[ActivityPage](ctx, c, q.request())
}

// WatchActivity gives what changes, as it does, until ctx ends or the yard refuses. A connection that breaks
// off is made again, and goes on where it was; notice, if not nil, hears of it. Only the first attempt may
// fail.
func (c *Client) WatchActivity(ctx context.Context, q ActivityQuery, notice func(Notice)) iter.Seq2[Activity, error] {
	return func(yield func(Activity, error) bool) {
		w := &activityWatch{stream: newStream(c, notice), query: q, yield: yield}
		if err := w.run(ctx, w); err != nil {
			yield(Activity{}, err)
		}
	}
}

// activityWatch is one WatchActivity under way, in the goroutine of whoever ranges over it.
type activityWatch struct {
	*stream
	query ActivityQuery // After moves along with what was given
	yield func(Activity, error) bool
}

func (w *activityWatch) request() request {
	r := w.query.request()
	r.query.Set("watch", "true")
	return r
}

func (w *activityWatch) take(ev sseEvent) error {
	w.back()
	if number, err := strconv.ParseInt(ev.id, 10, 64); err == nil {
		w.query.After = &number
	}
	if ev.kind != "activity" {
		return nil // a number alone, or something of a later yard for a later client
	}
	w.failures = 0
	var a Activity
	if err := json.Unmarshal(ev.data, &a); err != nil {
		return &StrangerError{Server: w.client.cfg.Server}
	}
	if !w.yield(a, nil) {
		return errDone
	}
	return nil
}

func (w *activityWatch) ended(end streamEnd) error {
	if end.Reason == "deleted" {
		return HubDeleted(w.query.Hub)
	}
	return nil
}
