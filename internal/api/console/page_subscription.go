package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
)

const (
	attemptsShown = 20
	attemptBars   = 60
	deadShown     = 50
)

// subscriptionView is one subscription and how its deliveries go.
type subscriptionView struct {
	subscriptionRow
	Ref      admin.SubscriptionRef
	Paths    map[string]string // of what can be done
	Why      *note
	Attempts []attemptRow
	Bars     []bar
	Ladder   *ladder
	Probes   *probes
	Dead     []admin.DeadLetter
	DeadAll  int64
	Next     string // more dead letters
	Filter   string
	Probed   bool // a probe makes sense
	Stopped  bool // paused
	Signed   bool
	Source   string
	From     string // the source's page
	Failed   []pair
	Chart    *chart
	Test     string // the form that sends an event which it would get
}

type attemptRow struct {
	admin.Attempt
	Tone, Said string
	Failed     bool
}

var subscriptionPage = page{template: "subscription", load: loadSubscription}

// ref is the subscription that a path is about.
func (v *visit) ref() admin.SubscriptionRef {
	return admin.SubscriptionRef{Name: v.name("subscription"), Topic: v.name("topic"), Hub: v.name("hub"), DomainTopic: v.r.URL.Query().Get("domainTopic")}
}

func loadSubscription(v *visit) (*screen, error) {
	ref := v.ref()
	s, err := v.api.Subscription(v.ctx, ref, false)
	if err != nil {
		return nil, err
	}
	attempts, err := v.api.Attempts(v.ctx, ref)
	if err != nil {
		return nil, err
	}
	dead, err := v.api.DeadLetters(v.ctx, ref, admin.DeadLetterChoice{Redriven: true}, 0, deadShown)
	if err != nil {
		return nil, err
	}
	view := newSubscriptionView(s, attempts, dead, v.now)
	view.Chart = v.flow(v.series(admin.SeriesQuery{Of: []string{"delivered", "failed"}, Topic: s.Topic, Hub: s.SourceHub, DomainTopic: s.DomainTopic, Subscription: s.Name}), nil)
	return &screen{
		Title: s.Name, Section: "topics", View: view, State: s.Name + " is " + orWord(stateSaid[view.Said], view.Said) + ".", Tabs: subscriptionTabs(s, "Subscription"),
		Crumbs: subscriptionCrumbs(refOf(s)),
	}, nil
}

// stateSaid are the states that do not make a sentence as they are.
var stateSaid = map[string]string{"probation": "on probation", "probing": "on probation, and probed now"}

func newSubscriptionView(s admin.Subscription, attempts []admin.Attempt, dead admin.DeadLetterPage, now time.Time) subscriptionView {
	ref := refOf(s)
	view := subscriptionView{
		subscriptionRow: newSubscriptionRow(s, 0), Ref: ref, Dead: dead.Letters, DeadAll: dead.Total, Why: whyOf(s, now),
		Stopped: s.State == "paused", Signed: len(s.Signing) > 0, Filter: filterText(s.Filter), Paths: map[string]string{},
	}
	for _, what := range []string{"probe", "pause", "resume", "rotate", "redrive", "purge", "delete", "edit", "explain"} {
		view.Paths[what] = subscriptionPath(ref, what)
	}
	if view.Source, view.From = s.Topic, at("topics", s.Topic); s.SourceHub != "" {
		view.Source, view.From = s.SourceHub, at("hubs", s.SourceHub)
	}
	if view.Test = testPath(s); s.Topic == yardEvents {
		view.Test = ""
	}
	if dead.Next > 0 {
		view.Next = subscriptionPath(ref, "dead")
	}
	view.Bars = attemptBarsOf(attempts)
	for _, a := range attempts[:min(len(attempts), attemptsShown)] {
		view.Attempts = append(view.Attempts, newAttemptRow(a))
	}
	if s.Stats == nil {
		return view
	}
	view.Probed = s.Stats.Endpoint.State == "probation" || s.Stats.Endpoint.State == "probing"
	view.Ladder, view.Probes = newLadder(s), newProbes(s, attempts, now)
	for _, counts := range []struct {
		what string
		of   map[string]int64
	}{{"failed: ", s.Stats.Failed}, {"dropped: ", s.Stats.Dropped}, {"dead-lettered: ", s.Stats.DeadLettered}} {
		for _, name := range sorted(counts.of) {
			if n := counts.of[name]; n > 0 {
				view.Failed = append(view.Failed, pair{counts.what + name, number(n)})
			}
		}
	}
	return view
}

// testPath is the form that sends a test: an event of the source, of a type that the subscription takes.
func testPath(s admin.Subscription) string {
	if s.SourceHub != "" {
		return at("hubs", s.SourceHub, "send")
	}
	var f filterOf
	_ = json.Unmarshal(s.Filter, &f) // one without a filter has none
	kind := ""
	if len(f.Types) > 0 {
		kind = f.Types[0]
	}
	return with(at("topics", s.Topic, "publish"), "type", kind, "source", s.DomainTopic)
}

// whyOf is the sentence of a subscription that is not well.
func whyOf(s admin.Subscription, now time.Time) *note {
	switch {
	case s.State == "pending":
		until := ""
		if s.ValidationEnds != nil {
			until = fmt.Sprintf(" It is good for %s.", span(s.ValidationEnds.Sub(now)))
		}
		return &note{"odd", "triangle-alert", "The owner of the endpoint has to agree before anything is sent to it.", "Open this link there: " + s.ValidationURL + until}
	case s.State == "paused":
		return &note{"odd", "pause", "Deliveries are paused.", "Events wait in the log. Their time to live runs on."}
	case s.State != "active":
		return &note{"bad", "circle-alert", "Nothing is delivered: the subscription is " + s.State + ".", s.Why}
	case s.Stats == nil:
		return nil
	}
	health := s.Stats.Endpoint
	switch health.State {
	case "probation", "probing":
		more := "Events wait in the log meanwhile. Waiting uses up no attempt, but time to live runs on."
		if health.Until != nil && health.Until.After(now) {
			more = "The next probe is in " + span(health.Until.Sub(now)) + ". " + more
		}
		return &note{"odd", "triangle-alert", fmt.Sprintf("The endpoint failed %s in a row (%s), so it is left alone and probed.", plural(health.Failures, "time", "times"), orWord(health.Last, "no answer")), more}
	case "failing":
		return &note{"odd", "triangle-alert", fmt.Sprintf("The endpoint failed %s in a row: %s.", plural(health.Failures, "time", "times"), orWord(health.Last, "no answer")), "Deliveries are tried again, each after its wait."}
	}
	return nil
}

func filterText(filter json.RawMessage) string {
	var text bytes.Buffer
	if len(filter) == 0 || json.Indent(&text, filter, "", "  ") != nil || text.String() == "{}" {
		return ""
	}
	return text.String()
}

func newAttemptRow(a admin.Attempt) attemptRow {
	row := attemptRow{Attempt: a, Tone: "good", Said: orWord(a.Answer, a.Error), Failed: a.Status/100 != 2}
	if row.Failed {
		row.Tone = "bad"
	}
	return row
}

// attemptBarsOf draws the last requests, the newest at the right, as high as they took.
func attemptBarsOf(attempts []admin.Attempt) []bar {
	attempts = slices.Clone(attempts[:min(len(attempts), attemptBars)])
	slices.Reverse(attempts)
	longest := time.Millisecond
	took := make([]time.Duration, len(attempts))
	for i, a := range attempts {
		took[i], _ = time.ParseDuration(a.Took)
		longest = max(longest, took[i])
	}
	var bars []bar
	step := 980 / float64(attemptBars)
	for i, a := range attempts {
		height := 4 + 40*float64(took[i])/float64(longest)
		tone := "k-good"
		if a.Status/100 != 2 {
			tone = "k-bad"
		}
		bars = append(bars, bar{X: 980 - step*float64(len(attempts)-i), Y: 44 - height, Height: height, Tone: tone})
	}
	return bars
}

// deadView is one dead letter.
type deadView struct {
	admin.DeadLetter
	Body template.HTML
	Ref  admin.SubscriptionRef
	Back string
	Only string // the form that redrives it alone
}

var deadPage = page{template: "dead", load: func(v *visit) (*screen, error) {
	n, err := strconv.ParseInt(v.name("number"), 10, 64)
	if err != nil {
		return nil, notHere(v.r)
	}
	d, err := v.api.DeadLetter(v.ctx, v.ref(), n)
	if err != nil {
		return nil, err
	}
	ref := v.ref()
	view := deadView{DeadLetter: d, Ref: ref, Back: subscriptionPath(ref), Body: showBody(d.Event[:min(len(d.Event), maxColoured)], "json", len(d.Event) > maxColoured), Only: subscriptionPath(ref, "redrive")}
	return &screen{
		Title: "Dead letter " + number(n), Section: "topics", View: view,
		Crumbs: subscriptionCrumbs(ref, crumb{"Dead letters", subscriptionPath(ref, "dead")}, crumb{Name: number(n)}),
	}, nil
}}
