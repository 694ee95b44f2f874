package console

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// journeyWay is the way of an event to one subscription.
type journeyWay struct {
	admin.JourneyTo
	Tone string
	// Head is the verdict in a word, and Rest why.
	Head, Rest string
	Tests      []journeyTest
	Tried      []journeyTried
	// Link is the subscription's page, Probe the form that tries its endpoint now, Dead its dead letter.
	Link, Probe, Dead string
}

// journeyTest is one condition of a filter, and what the event has for it.
type journeyTest struct {
	Want, Met string
	Passes    bool
}

// journeyTried is an attempt.
type journeyTried struct {
	admin.JourneyTry
	Tone string
}

// wayTones are the colours of what can become of an event; what is not here has none.
var wayTones = map[string]string{
	"delivered": "good", "settled": "good", "dead-lettered": "bad", "dropped": "bad",
	"waiting": "odd", "parked": "odd", "queued": "odd", "sending": "odd", "locked": "odd", "behind": "odd", "inactive": "odd",
}

func newJourneyWay(j admin.Journey, to admin.JourneyTo) journeyWay {
	ref := admin.SubscriptionRef{Name: to.Subscription, Topic: j.Topic, Hub: j.Hub, DomainTopic: to.DomainTopic}
	w := journeyWay{JourneyTo: to, Tone: wayTones[to.State], Link: subscriptionPath(ref)}
	if !w.got() && to.State == "settled" {
		w.Tone = ""
	}
	w.Head, w.Rest = headline(to.Summary)
	if to.Endpoint != nil && to.Endpoint.State == "probation" && w.Tone == "odd" {
		w.Probe = subscriptionPath(ref, "probe")
	}
	if to.DeadLetter != nil {
		w.Dead = subscriptionPath(ref, "dead", strconv.FormatInt(to.DeadLetter.Number, 10))
	}
	w.Tests = testsOf(to.Conditions)
	for _, t := range to.Tries {
		w.Tried = append(w.Tried, journeyTried{t, toneOfTry(t)})
	}
	return w
}

// testsOf are conditions as they are shown.
func testsOf(findings []admin.Finding) (tests []journeyTest) {
	for _, f := range findings {
		tests = append(tests, journeyTest{strings.TrimSpace(f.Key + " " + f.Operator + " " + cmp.Or(string(f.Value), string(f.Values))), cmp.Or(string(f.Met), "absent"), f.Passes})
	}
	return tests
}

func toneOfTry(t admin.JourneyTry) string {
	if t.Outcome == "Success" || t.Status/100 == 2 {
		return "good"
	}
	return "bad"
}

// got tells whether the event came to the subscription, also where nobody remembers when.
func (w *journeyWay) got() bool {
	return w.State == "delivered" || strings.HasPrefix(w.Summary, "delivered:")
}

// wanted tells whether the event was meant for the subscription.
func (w *journeyWay) wanted() bool {
	return w.State != "unmatched" && w.State != "early" && w.State != "late"
}

// headline divides what the API says into its first words and the rest.
func headline(summary string) (head, rest string) {
	head, rest, ok := strings.Cut(summary, ": ")
	if !ok || len(head) > 40 {
		return "", capital(summary)
	}
	return capital(head) + ":", rest
}

// verdictOf is the whole answer: in a word for the badge, and in a sentence with the reasons.
func verdictOf(e *journeyEvent) (said string, why *note) {
	wanted, got, tone := 0, 0, "good"
	var missing []string
	for i := range e.Ways {
		w := &e.Ways[i]
		if !w.wanted() {
			continue
		}
		wanted++
		if w.got() {
			got++
			continue
		}
		missing = append(missing, w.Subscription+": "+w.Summary)
		if tone == "good" || w.Tone == "bad" {
			tone = cmp.Or(w.Tone, "odd")
		}
	}
	for _, f := range e.Functions {
		if f.State != "handled" {
			missing = append(missing, "function "+f.Function+": "+f.Summary)
		}
		if f.State == "poison" {
			tone = "bad"
		}
	}
	said, text := countWords(len(e.Ways)+e.Omitted, wanted, got, e.Hub != "")
	if wanted == 0 && e.Hub == "" {
		tone = "odd"
	}
	icon := map[string]string{"good": "circle-check", "odd": "triangle-alert", "bad": "circle-alert"}[tone]
	return said, &note{tone, icon, text, strings.Join(missing[:min(len(missing), 3)], "; ")}
}

func countWords(all, wanted, got int, hub bool) (said, text string) {
	switch {
	case all == 0 && hub:
		return "no subscription", "It goes to no subscription: groups and functions read it."
	case all == 0:
		return "goes to nobody", "It goes to nobody: there is no subscription."
	case wanted == 0:
		return "goes to nobody", fmt.Sprintf("It goes to nobody: it matches none of %s.", plural(all, "subscription", "subscriptions"))
	case wanted == got && got == 1:
		return "delivered", "It was delivered to the one subscription that it matches."
	case wanted == got:
		return "delivered", fmt.Sprintf("It was delivered to all %s subscriptions that it matches.", number(got))
	case got == 0 && wanted == 1:
		return "not delivered", "It was not delivered to the one subscription that it matches."
	case got == 0:
		return "not delivered", fmt.Sprintf("It was delivered to none of %s that it matches.", plural(wanted, "subscription", "subscriptions"))
	}
	return fmt.Sprintf("delivered to %s of %s", number(got), number(wanted)), fmt.Sprintf("It was delivered to %s of the %s subscriptions that it matches.", number(got), number(wanted))
}
