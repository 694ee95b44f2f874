package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// hubsView is the list of hubs.
type hubsView struct {
	Hubs  []hubRow
	Pages pager
}

type hubRow struct {
	admin.Hub        // Stats is nil where what it holds could not be found out
	ID        string // of its cells
	Behind    string // how far its slowest group is
}

var hubsPage = page{template: "hubs", load: loadHubs}

func loadHubs(v *visit) (*screen, error) {
	hubs, err := v.api.HubsWithStats(v.ctx)
	if err != nil {
		return nil, err
	}
	view := hubsView{Pages: pageOf(v, len(hubs))}
	for _, h := range hubs[view.Pages.From:view.Pages.To] {
		view.Hubs = append(view.Hubs, newHubRow(h, len(view.Hubs)))
	}
	return &screen{Title: "Hubs", Section: "hubs", Crumbs: []crumb{{Name: "Hubs"}}, View: view}, nil
}

func newHubRow(h admin.Hub, at int) hubRow {
	row := hubRow{Hub: h, ID: "h" + strconv.Itoa(at), Behind: "–"}
	if h.Stats != nil && h.Stats.LagSeconds != nil {
		row.Behind = span(seconds(*h.Stats.LagSeconds))
	}
	return row
}

// askedAtOnce is how many calls of one page are under way.
const askedAtOnce = 4

func totals(partitions []admin.Partition) (events, bytes int64, newest time.Time) {
	for _, p := range partitions {
		events, bytes = events+p.Events(), bytes+p.Bytes
		if p.LastEnqueued != nil && p.LastEnqueued.After(newest) {
			newest = p.LastEnqueued.Time
		}
	}
	return events, bytes, newest
}

// hubView is one hub.
type hubView struct {
	admin.Hub
	Events, Bytes int64
	Newest        time.Time
	Rows          []partitionRow
	Pages         pager
	Share         *share
	Command       string
	Chart         *chart
	Figures       []figure
}

type partitionRow struct {
	admin.Partition
	Events int64
	Rate   string
}

// ratesGood is how long an answer about the rates of partitions is: each is looked up in an index.
const ratesGood = 5 * time.Second

var hubPage = page{template: "hub", load: loadHub}

func loadHub(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	partitions, err := v.api.Partitions(v.ctx, h.Name)
	if err != nil {
		return nil, err
	}
	view := newHubView(h, partitions, pageOf(v, len(partitions)), partitionRates(v, h.Name, partitions))
	if view.Share != nil {
		view.Share.Ranges = ranges(v, view.Pages)
		if view.Share.Skewed != "" {
			view.Share.Busiest = busiestIn(v, h.Name, view.Share.Skewed)
		}
	}
	series := v.series(admin.SeriesQuery{Of: []string{"published", "bytes", "read", "lag", "lag-seconds"}, Hub: h.Name})
	view.Chart = v.flow(only(series, "published", "read"), marksOf(v.happened(h.Name), "hubs", h.Name))
	view.Figures = hubFigures(view, v.window(), series, v.now)
	return hubScreen(v, h, "Partitions", view), nil
}

// partitionRates are what is published to the partitions of a page in a second, by id. Where that is not known in
// time there are none.
func partitionRates(v *visit, hub string, partitions []admin.Partition) map[string]float64 {
	pages, q := pageOf(v, len(partitions)), admin.PageQuery{Limit: rowsOfPage}
	if pages.From > 0 {
		q.After = partitions[pages.From-1].ID
	}
	found, err := remembered(v, "rates after "+q.After, ratesGood, func() (admin.PartitionPage, error) {
		ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
		defer cancel()
		return v.api.PartitionRates(ctx, hub, q)
	})
	if err != nil {
		return nil
	}
	rates := map[string]float64{}
	for _, p := range found.Partitions {
		if p.Published != nil {
			rates[p.ID] = *p.Published
		}
	}
	return rates
}

func newHubView(h admin.Hub, partitions []admin.Partition, pages pager, rates map[string]float64) hubView {
	view := hubView{Hub: h, Pages: pages, Command: command("send", h.Name, "hello")}
	view.Events, view.Bytes, view.Newest = totals(partitions)
	for _, p := range partitions[pages.From:pages.To] {
		row := partitionRow{p, p.Events(), "–"}
		if r, known := rates[p.ID]; known {
			row.Rate = rate(r) + "/s"
		}
		view.Rows = append(view.Rows, row)
	}
	if view.Share = newFlowShare(partitions, rates); view.Share == nil {
		view.Share = newShare(partitions, view.Events)
	}
	return view
}

// hubFigures are the four that tell most of a hub.
func hubFigures(view hubView, w window, series []admin.Series, now time.Time) []figure {
	published := figure{ID: "published", Name: "Published", Value: "–", Unit: "/s", Hint: "not known", Spark: w.spark("spark-published", "in", series, "published", now)}
	slowest := figure{ID: "slowest", Name: "Slowest group", Value: "–", Hint: "no group has a checkpoint", Spark: w.spark("spark-slowest", "idle", series, "lag-seconds", now)}
	if s := lately(series, now); len(s) > 0 {
		published.Value = rateOf(s["published"])
		if s["bytes"] != nil {
			published.Hint = size(int64(*s["bytes"])) + "/s"
		}
		if behind := s["lag-seconds"]; behind != nil {
			slowest.Value, slowest.Unit = span(seconds(*behind)), "behind"
			slowest.Hint = plural(int64(orZero(s["lag"])), "event", "events") + " behind"
		}
	}
	kept := figure{ID: "events", Name: "Kept", Value: number(view.Events), Unit: "events", Hint: "for " + age(view.Retention.Age)}
	if !view.Newest.IsZero() {
		kept.Hint += ", the newest " + span(now.Sub(view.Newest).Truncate(time.Second)) + " ago"
	}
	disk := figure{ID: "bytes", Name: "Size", Value: size(view.Bytes), Hint: "no limit"}
	if all := view.Retention.Bytes * int64(view.Partitions); all > 0 { // its limit is that of a partition
		disk.Hint = fmt.Sprintf("%d %% of %s", 100*view.Bytes/all, size(all))
	}
	return []figure{published, kept, disk, slowest}
}

// hubScreen is a page of a hub, with the tabs to the others.
func hubScreen(v *visit, h admin.Hub, here string, view any) *screen {
	s := &screen{Title: h.Name, Section: "hubs", Crumbs: []crumb{{"Hubs", at("hubs")}, {Name: h.Name}}, View: view}
	if here != "Partitions" {
		s.Title = here + " of " + h.Name
		s.Crumbs = []crumb{{"Hubs", at("hubs")}, {h.Name, at("hubs", h.Name)}, {Name: here}}
	}
	s.Guide = map[string]string{"Groups": "groups", "Access": "access", "Subscriptions": "topics"}[here]
	add := func(name, path string, count int) {
		s.Tabs = append(s.Tabs, tab{name, path, count, here == name})
	}
	add("Partitions", at("hubs", h.Name), h.Partitions)
	if v.may("Listen", h.Name) {
		add("Events", at("hubs", h.Name, "events"), -1)
	}
	add("Groups", at("hubs", h.Name, "groups"), len(h.Groups))
	if v.may("Manage") { // subscriptions belong to the namespace, of whatever they are
		add("Subscriptions", at("hubs", h.Name, "subscriptions"), -1)
	}
	if v.may("Manage", h.Name) {
		add("Access", at("hubs", h.Name, "access"), -1)
		add("Settings", at("hubs", h.Name, "settings"), -1)
	}
	return s
}

var createHub = action{
	path: base + "new/hub", calls: []string{"POST /api/v1/hubs"},
	sheet: func(v *visit) (*sheet, error) {
		name, partitions := v.value("name", ""), v.value("partitions", "4")
		return &sheet{
			Title: "Create a hub", About: "A log that many consumers read at their own pace. The number of partitions is how many of them can share the work; it cannot be changed later.",
			Back: at("hubs"), Buttons: []button{{"Create", "main", act}}, Command: command("hub", "create", orWord(name, "NAME"), "--partitions", partitions),
			Fields: []field{
				{Name: "name", Label: "Name", Kind: "text", Value: name, Placeholder: "orders"},
				{Name: "partitions", Label: "Partitions", Kind: "number", Value: partitions},
				{Name: "age", Label: "Keep events for", Kind: "text", Value: v.value("age", ""), Placeholder: "7d", Hint: "Such as 36h or 7d. Empty: the default of this yard.", Optional: true},
			},
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		partitions, err := v.integer("partitions")
		if err != nil {
			return outcome{}, err
		}
		r := admin.HubRequest{Name: strings.TrimSpace(v.r.PostFormValue("name")), Partitions: partitions}
		if age := v.filled("age"); age != nil {
			r.Retention = &admin.RetentionRequest{Age: age}
		}
		h, err := v.api.CreateHub(v.ctx, r)
		if v.r.PostFormValue("first") != "" { // it is one of the first steps, and the others are there
			return outcome{to: base, done: "created"}, err
		}
		return outcome{to: at("hubs", h.Name), done: "created"}, err
	},
}

func orWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

var changeHub = action{
	path: base + "hubs/{hub}/settings", calls: []string{"PATCH /api/v1/hubs/{hub}"},
	sheet: func(v *visit) (*sheet, error) {
		h, err := v.api.Hub(v.ctx, v.name("hub"))
		if err != nil {
			return nil, err
		}
		return &sheet{
			Title: "Settings of " + h.Name, About: "Events are removed when they are too old, or when there are too many bytes of them: whichever comes first.",
			Back: at("hubs", h.Name), Command: command("hub", "update", h.Name, "--retention-age", h.Retention.Age),
			Fields: []field{
				{Name: "age", Label: "Keep events for", Kind: "text", Value: v.value("age", h.Retention.Age), Hint: "Such as 36h or 7d. 0s: forever."},
				{Name: "bytes", Label: "Bytes kept in a partition", Kind: "number", Value: v.value("bytes", strconv.FormatInt(h.Retention.Bytes, 10)), Hint: "0: no limit."},
				{Name: "events", Label: "Events accepted per second", Kind: "number", Value: v.value("events", strconv.Itoa(h.Quota.Events)), Hint: "0: no limit."},
			},
			Buttons: []button{{"Save", "main", act}},
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		bytes, err := v.integer("bytes")
		if err != nil {
			return outcome{}, err
		}
		events, err := v.integer("events")
		if err != nil {
			return outcome{}, err
		}
		r := admin.HubRequest{Retention: &admin.RetentionRequest{Age: v.filled("age")}, Quota: &admin.QuotaRequest{Events: events}}
		if bytes != nil {
			r.Retention.Bytes = new(int64(*bytes))
		}
		h, err := v.api.UpdateHub(v.ctx, v.name("hub"), r)
		return outcome{to: at("hubs", h.Name), done: "changed"}, err
	},
}

var deleteHub = action{
	path: base + "hubs/{hub}/delete", calls: []string{"DELETE /api/v1/hubs/{hub}"},
	sheet: func(v *visit) (*sheet, error) {
		h, err := v.api.Hub(v.ctx, v.name("hub"))
		if err != nil {
			return nil, err
		}
		partitions, err := v.api.Partitions(v.ctx, h.Name)
		if err != nil {
			return nil, err
		}
		events, bytes, _ := totals(partitions)
		about := fmt.Sprintf("%s (%s) and %s are deleted with it. This cannot be undone.", plural(events, "event", "events"), size(bytes), plural(len(h.Groups), "group", "groups"))
		return deletion("hub", h.Name, about, at("hubs", h.Name), command("hub", "delete", h.Name)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("hub")); err != nil {
			return outcome{}, err
		}
		return outcome{to: at("hubs"), done: "deleted"}, v.api.DeleteHub(v.ctx, v.name("hub"))
	},
}

// notThere tells whether the API says that something does not exist, or is not served by this yard.
func notThere(err error) bool {
	p, ok := errors.AsType[*admin.Problem](err)
	return ok && (p.Status == http.StatusNotFound || p.Status == http.StatusNotImplemented)
}
