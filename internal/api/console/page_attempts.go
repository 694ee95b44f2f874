package console

import (
	"strconv"

	"github.com/eventyard/eventyard/admin"
)

// subscriptionCrumbs lead to a subscription, and to what of it is looked at.
func subscriptionCrumbs(s admin.SubscriptionRef, rest ...crumb) []crumb {
	way := []crumb{{"Topics", at("topics")}, {s.Topic, at("topics", s.Topic)}}
	if s.Hub != "" {
		way = []crumb{{"Hubs", at("hubs")}, {s.Hub, at("hubs", s.Hub)}}
	}
	if len(rest) == 0 {
		return append(way, crumb{Name: s.Name})
	}
	return append(append(way, crumb{s.Name, subscriptionPath(s)}), rest...)
}

// subscriptionTabs are the pages of a subscription.
func subscriptionTabs(s admin.Subscription, here string) []tab {
	ref, dead := refOf(s), 0
	if s.DeadLetters != nil {
		dead = int(s.DeadLetters.Kept)
	}
	tabs := []tab{
		{Name: "Subscription", Link: subscriptionPath(ref), Count: -1},
		{Name: "Attempts", Link: subscriptionPath(ref, "attempts"), Count: -1},
		{Name: "Dead letters", Link: subscriptionPath(ref, "dead"), Count: dead},
	}
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == here
	}
	return tabs
}

// attemptsView is all that is remembered of a subscription's requests.
type attemptsView struct {
	Ref      admin.SubscriptionRef
	Target   string
	Attempts []attemptRow
	Command  string
}

var attemptsPage = page{template: "attempts", load: func(v *visit) (*screen, error) {
	s, err := v.api.Subscription(v.ctx, v.ref(), false)
	if err != nil {
		return nil, err
	}
	attempts, err := v.api.Attempts(v.ctx, v.ref())
	if err != nil {
		return nil, err
	}
	view := attemptsView{Ref: refOf(s), Target: targetOf(s), Command: command("subscription", "attempts", s.Name)}
	for _, a := range attempts {
		view.Attempts = append(view.Attempts, newAttemptRow(a))
	}
	return &screen{
		Title: "Attempts of " + s.Name, Section: "topics", View: view, Tabs: subscriptionTabs(s, "Attempts"), Crumbs: subscriptionCrumbs(view.Ref, crumb{Name: "Attempts"}),
	}, nil
}}

// deadLettersView is the dead letters of a subscription, or those that fit.
type deadLettersView struct {
	Ref            admin.SubscriptionRef
	Choice         admin.DeadLetterChoice
	Letters        []admin.DeadLetter
	Total          int64
	First, Next    string // pages
	Redrive, Purge string
	Command        string
}

var deadLettersPage = page{template: "deadletters", load: func(v *visit) (*screen, error) {
	s, err := v.api.Subscription(v.ctx, v.ref(), false)
	if err != nil {
		return nil, err
	}
	q := v.r.URL.Query()
	choice := admin.DeadLetterChoice{Reason: q.Get("reason"), EventType: q.Get("type"), EventID: q.Get("event"), Redriven: true}
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	found, err := v.api.DeadLetters(v.ctx, v.ref(), choice, from, deadShown)
	if err != nil {
		return nil, err
	}
	ref := refOf(s)
	view := deadLettersView{
		Ref: ref, Choice: choice, Letters: found.Letters, Total: found.Total, Command: command("dead", "list", s.Name),
		Redrive: more(subscriptionPath(ref, "redrive"), "reason", choice.Reason), Purge: more(subscriptionPath(ref, "purge"), "reason", choice.Reason),
	}
	link := func(from string) string {
		return more(subscriptionPath(ref, "dead"), "reason", choice.Reason, "type", choice.EventType, "event", choice.EventID, "from", from)
	}
	if from > 0 {
		view.First = link("")
	}
	if found.Next > 0 {
		view.Next = link(strconv.FormatInt(found.Next, 10))
	}
	return &screen{
		Title: "Dead letters of " + s.Name, Section: "topics", View: view, Tabs: subscriptionTabs(s, "Dead letters"), Crumbs: subscriptionCrumbs(ref, crumb{Name: "Dead letters"}),
	}, nil
}}
