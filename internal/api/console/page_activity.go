package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

const (
	// activityShown is how many changes a page has, activitySaved how many a file has at most, and
	// activityPages how many pages of the API are asked for one of ours: some have nothing that fits.
	activityShown = 50
	activitySaved = 10_000
	activityPages = 20
	// activityEvery is how often the page looks, besides when it is told of a change.
	activityEvery = 5 * time.Second
)

// activityView is what changed, by whom, the newest first.
type activityView struct {
	Shows                  []tab
	Show, Object, By, Save string
	Rows                   []activityRow
	Older, Newest          string
	Command                string
}

type activityRow struct {
	admin.Activity
	Name, Link, Tone, Said, Who string
}

// activityShows are families of kinds that belong together.
var activityShows = []struct {
	name, text string
	kinds      []string
}{
	{"", "All", nil},
	{"owners", "Owners", []string{"ownership", "instance", "checkpoint", "partition"}},
	{"endpoints", "Endpoints", []string{"probation", "dead", "subscription.validated", "subscription.disabled", "subscription.failed", "subscription.expired"}},
	{"circuits", "Circuits", []string{"circuit", "poison"}},
	{"definitions", "Definitions", []string{"hub", "group", "topic", "subscription", "function"}},
	{"keys", "Keys", []string{"key", "policy", "blob-account"}},
	{"yard", "Yard", []string{"node", "disk", "backup", "activity"}},
}

// activityTones are the colours of kinds that are good or bad news.
var activityTones = map[string]string{
	"circuit.opened": "bad", "node.lost": "bad", "disk.full": "bad", "subscription.failed": "bad", "activity.dropped": "bad",
	"probation.began": "odd", "circuit.half-open": "odd", "circuit.held": "odd", "instance.went": "odd", "node.left": "odd", "subscription.disabled": "odd", "subscription.expired": "odd",
	"probation.ended": "good", "circuit.closed": "good", "circuit.resumed": "good", "instance.came": "good", "node.came": "good", "disk.free": "good", "subscription.validated": "good",
}

var activityPage = page{template: "activity", load: loadActivity, every: activityEvery, watch: watchActivity}

// activityQuery is what a request asks for.
func activityQuery(v *visit) admin.ActivityQuery {
	given := v.r.URL.Query()
	q := admin.ActivityQuery{Object: strings.TrimSpace(given.Get("object")), By: strings.TrimSpace(given.Get("by"))}
	q.Before, _ = strconv.ParseInt(given.Get("before"), 10, 64)
	for _, s := range activityShows {
		if s.name == given.Get("show") {
			q.Kinds = s.kinds
		}
	}
	return q
}

func loadActivity(v *visit) (*screen, error) {
	q := activityQuery(v)
	found, next, err := findActivity(v, q, activityShown)
	if err != nil {
		return nil, err
	}
	view := activityView{Show: v.r.URL.Query().Get("show"), Object: q.Object, By: q.By, Command: activityCommand(q)}
	link := func(path, show, before string) string {
		return with(path, "show", show, "object", q.Object, "by", q.By, "before", before)
	}
	for _, s := range activityShows {
		view.Shows = append(view.Shows, tab{Name: s.text, Link: link(at("activity"), s.name, ""), Here: s.name == view.Show})
	}
	view.Save = link(at("activity.json"), view.Show, "")
	if next > 0 {
		view.Older = link(at("activity"), view.Show, strconv.FormatInt(next, 10))
	}
	if q.Before > 0 {
		view.Newest = link(at("activity"), view.Show, "")
	}
	for _, a := range found {
		view.Rows = append(view.Rows, newActivityRow(a))
	}
	return &screen{Title: "Activity", Section: "activity", Crumbs: []crumb{{Name: "Activity"}}, View: view, still: q.Before > 0}, nil
}

// findActivity asks for pages until there are as many as wanted, or no more.
func findActivity(v *visit, q admin.ActivityQuery, most int) (found []admin.Activity, next int64, err error) {
	for range activityPages {
		q.Limit = min(most-len(found), 1000)
		some, err := v.api.Activity(v.ctx, q)
		if err != nil {
			return nil, 0, err
		}
		found, q.Before = append(found, some.Activity...), some.Next
		if some.Next == 0 || len(found) >= most {
			break
		}
	}
	return found, q.Before, nil
}

// watchActivity wakes the page when something changes that it shows.
func watchActivity(ctx context.Context, v *visit, wake func()) {
	for _, err := range v.api.WatchActivity(ctx, activityQuery(v), nil) {
		if err != nil {
			return // the page looks from time to time all the same
		}
		wake()
	}
}

func activityCommand(q admin.ActivityQuery) string {
	parts := []string{"activity"}
	for _, flag := range [][2]string{{"--kind", strings.Join(q.Kinds, ",")}, {"--object", q.Object}, {"--by", q.By}} {
		if flag[1] != "" {
			parts = append(parts, flag[0], flag[1])
		}
	}
	return command(parts...)
}

func newActivityRow(a admin.Activity) activityRow {
	row := activityRow{Activity: a, Tone: activityTones[a.Kind], Said: activityWords(a), Who: cmp.Or(a.By, "the yard")}
	row.Name, row.Link = objectOf(a)
	return row
}

// activityWords say more of a change.
func activityWords(a admin.Activity) string {
	var said []string
	for _, m := range a.Moves {
		said = append(said, fmt.Sprintf("%s: %s → %s", strings.Join(m.Partitions, ", "), orWord(m.From, "nobody"), orWord(m.To, "nobody")))
	}
	if len(a.Fields) > 0 {
		said = append(said, strings.Join(a.Fields, ", "))
	}
	if a.Count > 0 && len(a.Moves) == 0 {
		said = append(said, number(a.Count))
	}
	if a.Detail != "" {
		said = append(said, a.Detail)
	}
	return cmp.Or(strings.Join(said, "; "), a.Object)
}

// objectOf is the name of what changed, and its page; without a link there is none.
func objectOf(a admin.Activity) (name, link string) {
	parts := strings.Split(a.Object, "/")
	for i, p := range parts {
		if plain, err := url.PathUnescape(p); err == nil {
			parts[i] = plain
		}
	}
	if len(parts)%2 != 0 {
		return a.Object, ""
	}
	name = parts[len(parts)-1]
	is := func(kinds ...string) bool {
		for i, kind := range kinds {
			if len(parts) <= 2*i || parts[2*i] != kind {
				return false
			}
		}
		return true
	}
	switch {
	case is("hubs", "groups"):
		return parts[3], at("hubs", parts[1], "groups", parts[3])
	case is("hubs", "kafka-groups"):
		return parts[3], at("hubs", parts[1], "kafka-groups", parts[3])
	case is("hubs", "policies"):
		return name, at("hubs", parts[1], "access")
	case is("hubs"), is("functions"), is("circuits"):
		return name, at(parts[0], parts[1])
	case is("topics", "subscriptions"):
		return name, subscriptionPath(admin.SubscriptionRef{Topic: parts[1], Name: parts[3]})
	case is("topics"):
		return name, at("topics", parts[1])
	case is("subscriptions"):
		if hub, ok := strings.CutPrefix(a.Detail, "of hub "); ok {
			return name, subscriptionPath(admin.SubscriptionRef{Hub: hub, Name: name})
		}
	case is("policies"):
		return name, at("access")
	case is("nodes"):
		return name, at("storage")
	}
	return name, ""
}

// saveActivity gives what a page of activity shows, and what is older, as a file.
func (c *Console) saveActivity(v *visit) error {
	found, _, err := findActivity(v, activityQuery(v), activitySaved)
	if err != nil {
		return err
	}
	if found == nil {
		found = []admin.Activity{}
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="activity-%s.json"`, v.now.UTC().Format("20060102-150405")))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	v.w.WriteHeader(http.StatusOK)
	text := json.NewEncoder(v.w)
	text.SetIndent("", "  ")
	return text.Encode(found)
}
