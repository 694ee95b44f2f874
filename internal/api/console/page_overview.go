package console

import (
	"github.com/eventyard/eventyard/admin"
)

// overviewView is the yard at a glance, made of the lists; or the first steps, while it is empty.
type overviewView struct {
	Empty    bool
	Needs    []need
	Hubs     []hubRow
	HubCount int
	More     int // hubs that are not shown
	// Events and Bytes are those of the hubs that are shown.
	Events, Bytes                    int64
	Topics, Subscriptions, Functions int
	// Unknown says what could not be looked at.
	Unknown      string
	Send, Create string
}

// need is something that waits for a person, in a sentence.
type need struct{ Tone, Name, Said, Link string }

var overviewPage = page{template: "overview", load: loadOverview}

// overviewRows is how many hubs the overview has.
const overviewRows = 12

func loadOverview(v *visit) (*screen, error) {
	hubs, err := v.api.Hubs(v.ctx)
	if err != nil {
		return nil, err
	}
	view := overviewView{HubCount: len(hubs), Create: command("hub", "create", "orders", "--partitions", "4"), Send: command("send", "orders", "hello")}
	for _, h := range hubs[:min(len(hubs), overviewRows)] {
		view.Hubs = append(view.Hubs, newHubRow(h, len(view.Hubs)))
	}
	view.More = len(hubs) - len(view.Hubs)
	v.sumUp(view.Hubs)
	for _, h := range view.Hubs {
		view.Events, view.Bytes = view.Events+h.Events, view.Bytes+h.Bytes
	}
	if err := v.lookAround(&view); err != nil {
		return nil, err
	}
	view.Empty = len(hubs) == 0 && view.Subscriptions == 0 && view.Topics == 0
	s := &screen{Title: "Overview", Crumbs: []crumb{{Name: "Overview"}}, View: view, State: "Nothing needs you."}
	if len(view.Needs) > 0 {
		s.State = view.Needs[0].Name + ": " + view.Needs[0].Said
	}
	return s, nil
}

// lookAround adds topics and functions, which not every policy may see, and what of them is not well.
func (v *visit) lookAround(view *overviewView) error {
	topics, err := v.api.Topics(v.ctx)
	if lacksRight(err) {
		view.Unknown = "Topics and functions are not looked at: your policy does not allow it."
		return nil
	}
	if err != nil && !notThere(err) {
		return err
	}
	for _, t := range topics {
		if t.Name != yardEvents {
			view.Topics++
		}
	}
	subscriptions, err := v.subscriptions(admin.SubscriptionRef{})
	if err != nil && !notThere(err) {
		return err
	}
	functions, err := v.api.Functions(v.ctx)
	if err != nil && !notThere(err) {
		return err
	}
	circuits, err := v.api.Circuits(v.ctx)
	if err != nil && !notThere(err) {
		return err
	}
	rows := functionRows(functions, circuits)
	view.Subscriptions, view.Functions, view.Needs = len(subscriptions), len(rows), needsOf(rows, subscriptions, v)
	return nil
}

// needsOf is what waits for a person, the worst first.
func needsOf(functions []functionRow, subscriptions []subscriptionRow, v *visit) []need {
	var worst, others []need
	add := func(n need) {
		if n.Tone == "bad" {
			worst = append(worst, n)
		} else {
			others = append(others, n)
		}
	}
	for _, f := range functions {
		switch f.State {
		case "open", "failing", "held", "paused":
			said := "The function is " + f.State + "."
			if f.Lag != nil {
				said += " " + number(*f.Lag) + " events wait."
			}
			add(need{f.Tone, f.Name, said, f.Link})
		}
	}
	for _, s := range subscriptions {
		if why := whyOf(s.Subscription, v.now); why != nil {
			add(need{s.Tone, s.Name, why.Text, s.Link})
		}
	}
	return append(worst, others...)
}

// morePage is for narrow screens: the pages that have no tab.
var morePage = page{template: "more", load: func(*visit) (*screen, error) {
	return &screen{Title: "More", Section: "more", Crumbs: []crumb{{Name: "More"}}}, nil
}}
