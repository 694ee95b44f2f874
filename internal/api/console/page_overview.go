package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

// overviewView is the yard at a glance; or the first steps, while it is empty.
type overviewView struct {
	Empty bool
	// First are the first steps; nil: they are over.
	First   *firstRun
	Needs   []need
	Figures []figure
	Map     yardMap
	// Rates and Behind are the charts; nil: they are not this reader's to see.
	Rates, Behind *chart
	Activity      []feedRow
	// Unknown says what could not be looked at.
	Unknown string
	// Looking is the page that waits for what was not known in time; empty: all was.
	Looking string
	// Known: it is known how the yard is as a whole.
	Known bool
}

// need is something that waits for a person, in a sentence, with what helps.
type need struct {
	Tone, Icon, Name, Said, Link string
	// Press is where a button leads that does Action at once; empty: there is none.
	Press, Action string
}

// figure is a number with its line.
type figure struct {
	ID, Name, Value, Unit, Hint string
	Spark                       *chart
}

// feedRow is one change, in words.
type feedRow struct {
	At                     time.Time
	Tone, Name, Said, Link string
}

var overviewPage = page{
	template: "overview", load: loadOverview,
	watch: func(ctx context.Context, v *visit, wake func()) {
		for _, err := range v.api.WatchActivity(ctx, admin.ActivityQuery{}, nil) {
			if err != nil {
				return // the clock goes on
			}
			wake()
		}
	},
}

func loadOverview(v *visit) (*screen, error) {
	defer func(ctx context.Context) { v.ctx = ctx }(v.ctx)
	ctx, cancel := soon(v)
	defer cancel()
	v.ctx = ctx
	o, lists, err := v.askYard()
	if err != nil {
		return nil, err
	}
	if v.asked = true; o != nil {
		knows(v, o)
	}
	view := overviewView{Known: o != nil}
	if lists.late { // a yard of which not all is known is not taken for an empty one
		view.Looking = waiting(v)
	} else {
		view.Empty = len(lists.hubs) == 0 && !lists.more()
		view.First = firstVisit{v}.steps(lists, view.Empty)
	}
	if o == nil {
		o = &admin.Overview{Whole: true}
	}
	if !o.Whole {
		view.Unknown = "Topics and functions are not looked at: your policy does not allow it."
	}
	if !view.Empty {
		v.draw(&view, *o, lists)
	}
	s := &screen{Title: "Overview", Crumbs: []crumb{{Name: "Overview"}}, View: view, State: "Nothing needs you."}
	switch {
	case !view.Known:
		s.State = "It is still being looked how the yard is."
	case len(view.Needs) > 0:
		s.State = spoken(o.Needs)
	case view.First != nil:
		s.State = view.First.sentence()
	}
	return s, nil
}

// spoken says aloud who needs somebody. Figures are left to the page: they change each second, and each
// change would be read out.
func spoken(needs []admin.Need) string {
	var names []string
	for _, n := range needs[:min(len(needs), needsSpoken)] {
		names = append(names, n.Object.Kind+" "+n.Object.Name+", "+strings.ReplaceAll(n.Kind, "-", " "))
	}
	said := plural(len(needs), "thing needs", "things need") + " you: " + strings.Join(names, "; ")
	if more := len(needs) - len(names); more > 0 {
		said += fmt.Sprintf("; and %d more", more)
	}
	return said + "."
}

// needsSpoken is how many needs are told by name.
const needsSpoken = 3

// askYard asks how the yard is, and for what a map is made of; all at once, as each may wait for other nodes.
// Not every policy may see topics and functions; what was not known in time is left out. No overview: neither was
// that.
func (v *visit) askYard() (o *admin.Overview, l yardLists, err error) {
	var known admin.Overview
	asks := []func() error{
		func() (err error) { known, err = v.api.Overview(v.ctx); return err },
		func() (err error) { l.hubs, err = v.api.HubsWithStats(v.ctx); return err },
		func() (err error) { l.topics, err = v.api.TopicsWithStats(v.ctx); return err },
		func() (err error) { l.subscriptions, err = allSubscriptions(v); return err },
		func() (err error) { l.functions, err = v.api.FunctionsWithStats(v.ctx); return err },
		func() (err error) { l.circuits, err = v.api.Circuits(v.ctx); return err },
	}
	errs := make([]error, len(asks))
	parallel.Each(len(asks), len(asks), func(i int) { errs[i] = asks[i]() })
	for i, err := range errs {
		switch {
		case tooLate(v.ctx, err):
			l.late = true
		case err != nil && (i == 0 || !lacksRight(err) && !notThere(err)):
			return nil, l, err
		}
	}
	l.needs = known.Needs
	if errs[0] != nil {
		return nil, l, nil
	}
	return &known, l, nil
}

// manyAge is how old the state of so many subscriptions may be that no list asks how all of them do.
const manyAge = 10 * time.Second

// allSubscriptions are those of the yard with how their deliveries go. Who needs somebody is known without them, so
// that a page does not ask of very many each second.
func allSubscriptions(v *visit) ([]admin.Subscription, error) {
	const key = "subscriptions and their deliveries"
	if v.sight != nil {
		if known, ok := v.sight.kept.find(key, v.now); ok {
			return known.([]admin.Subscription), nil
		}
	}
	all, err := v.api.SubscriptionsWithStats(v.ctx, admin.SubscriptionRef{})
	if err == nil && v.sight != nil && len(all) > subscriptionsListed {
		v.sight.kept.keep(key, keptAnswer{all, v.now.Add(manyAge)}, v.now)
	}
	return all, err
}

// draw adds the pictures.
func (v *visit) draw(view *overviewView, o admin.Overview, lists yardLists) {
	for _, n := range o.Needs {
		view.Needs = append(view.Needs, newNeed(n, v.now))
	}
	chosen, more := choose(lists.sources(v.now), mapRows)
	view.Map = newMap(v.measure(chosen), more)
	w, series := v.window(), v.series(admin.SeriesQuery{Of: []string{"published", "read", "delivered", "lag-seconds", "waiting"}})
	if view.Known {
		view.Figures = overviewFigures(o, w, series, v.now)
	}
	if len(series) == 0 {
		return
	}
	changes := v.happened("")
	marks := marksOf(changes)
	view.Rates = w.chart(plot{id: "rates", title: "Events per second", box: halfBox, marks: marks}, only(series, "published", "read"), v.now)
	view.Behind = w.chart(plot{id: "behind", title: "Behind", about: "the slowest group", box: halfBox, marks: marks}, only(series, "lag-seconds"), v.now)
	if view.Behind != nil {
		view.Behind.Spans = v.spans()
	}
	for _, a := range changes[:min(len(changes), changesShown)] {
		view.Activity = append(view.Activity, newFeedRow(a))
	}
}

// changesShown is how many changes the overview has.
const changesShown = 6

func only(series []admin.Series, of ...string) (some []admin.Series) {
	for _, s := range series {
		if slices.Contains(of, s.Of) {
			some = append(some, s)
		}
	}
	return some
}

// overviewFigures are the five that tell most.
func overviewFigures(o admin.Overview, w window, series []admin.Series, now time.Time) []figure {
	published := figure{ID: "published", Name: "Published", Value: rateOf(o.Rates.Published), Unit: "/s", Hint: "into " + plural(o.Totals.Hubs, "hub", "hubs")}
	if o.Rates.Bytes != nil {
		published.Hint = size(int64(*o.Rates.Bytes)) + "/s " + published.Hint
	}
	slowest := figure{ID: "slowest", Name: "Slowest group", Value: "0", Unit: "s behind", Hint: "no group is behind"}
	if lag := o.WorstLag; lag != nil {
		slowest.Value, slowest.Unit = span(seconds(lag.Seconds)), "behind"
		slowest.Hint = cutTo(lag.Group, 20) + ", " + plural(int(lag.Events), "event", "events")
	}
	all := []figure{
		published,
		{ID: "read", Name: "Read", Value: rateOf(o.Rates.Read), Unit: "/s", Hint: "by groups and readers"},
		{ID: "delivered", Name: "Delivered", Value: rateOf(o.Rates.Delivered), Unit: "/s", Hint: "by " + plural(o.Totals.Subscriptions, "subscription", "subscriptions")},
		slowest,
		{ID: "waiting", Name: "Wait for delivery", Value: "–", Hint: "or for another try"},
	}
	if o.Rates.Waiting != nil {
		all[4].Value = number(int64(*o.Rates.Waiting))
	}
	for i, of := range []string{"published", "read", "delivered", "lag-seconds", "waiting"} {
		all[i].Spark = w.spark("spark-"+all[i].ID, "", series, of, now)
	}
	return all
}

// newNeed is a need with the way to what it is about.
func newNeed(n admin.Need, now time.Time) need {
	o := n.Object
	shown := need{Tone: toneOfSeverity(n.Severity), Icon: "triangle-alert", Name: o.Name, Said: n.Sentence, Link: at("storage")}
	if n.Since != nil && o.Kind == "function" {
		shown.Said += " So it has been for " + span(now.Sub(n.Since.Time).Truncate(time.Second)) + "."
	}
	if n.Kind == "certificate" {
		shown.Link = at("access")
	}
	switch o.Kind {
	case "function":
		shown.Icon, shown.Link = "zap", circuitPath(admin.CircuitRef{Function: o.Name, Hub: o.Hub, Group: o.Group})
	case "subscription":
		shown.Icon, shown.Link = "webhook", subscriptionPath(admin.SubscriptionRef{Name: o.Name, Topic: o.Topic, Hub: o.Hub, DomainTopic: o.DomainTopic})
	case "group":
		shown.Icon, shown.Link = "layers", at("hubs", o.Hub, "groups", o.Group)
	}
	switch {
	case o.Kind == "function" && n.Action == "resume":
		shown.Press, shown.Action = circuitPath(admin.CircuitRef{Function: o.Name, Hub: o.Hub, Group: o.Group}, "close"), "Resume"
	case o.Kind == "subscription" && (n.Action == "probe" || n.Action == "resume"):
		shown.Press = subscriptionPath(admin.SubscriptionRef{Name: o.Name, Topic: o.Topic, Hub: o.Hub, DomainTopic: o.DomainTopic}, n.Action)
		shown.Action = map[string]string{"probe": "Probe now", "resume": "Resume"}[n.Action]
	}
	return shown
}

// newFeedRow is a change in words: what, and what became of it.
func newFeedRow(a admin.Activity) feedRow {
	row := feedRow{At: a.At.Time, Name: nameOf(a), Said: strings.NewReplacer(".", " ", "-", " ").Replace(a.Kind)}
	_, row.Link = objectOf(a)
	if how, ok := marked[a.Kind]; ok {
		row.Tone, row.Said = how.tone, how.word
	}
	switch {
	case len(a.Moves) > 0:
		row.Said += ", " + activityWords(a)
	case a.Detail != "":
		row.Said += ", " + a.Detail
	}
	if a.By != "" {
		row.Said += ", by " + a.By
	}
	return row
}

// morePage is for narrow screens: the pages that have no tab.
var morePage = page{template: "more", load: func(*visit) (*screen, error) {
	return &screen{Title: "More", Section: "more", Crumbs: []crumb{{Name: "More"}}}, nil
}}
