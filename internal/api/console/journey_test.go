package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// journeyPaths show events.
var journeyPaths = []string{
	base + "events?id=7c1d-e0&in=topics/alarms",
	base + "events?id=0/41&in=hubs/sensors",
}

// fixedJourney has one of each: delivered, waiting on probation, dead and not matched.
func fixedJourney() admin.Journey {
	published := before(4*time.Minute + 36*time.Second)
	after := func(d time.Duration) time.Time { return published.Add(d) }
	try := func(d time.Duration, status int, outcome, said string) admin.JourneyTry {
		return admin.JourneyTry{Time: after(d), Took: "12ms", Outcome: outcome, Status: status, Said: said, Events: 1}
	}
	glass := admin.Finding{Key: "data.kind", Operator: "StringIn", Values: json.RawMessage(`["smoke","co"]`), Met: json.RawMessage(`"glass"`)}
	return admin.Journey{
		Topic: "alarms", Sequence: 88214, ID: "7c1d-e0", Type: "alarm.glass", Subject: "/homes/h-048213", Published: published, Event: json.RawMessage(`{"id":"7c1d-e0","data":{"kind":"glass"}}`),
		Subscriptions: []admin.JourneyTo{
			{Subscription: "resident", State: "delivered", Summary: "delivered at 2026-01-31T11:55:24.061Z, attempt 1, answered 200 in 12ms", Matches: true, Attempts: 1, Tries: []admin.JourneyTry{try(49*time.Millisecond, 200, "Success", "")}},
			{Subscription: "company", State: "waiting", Summary: "not yet: it waits for its next attempt", Matches: true, Attempts: 2, Due: new(after(90 * time.Second)), Expires: new(after(24 * time.Hour)),
				Conditions: []admin.Finding{{Key: "eventType", Operator: "StringIn", Values: json.RawMessage(`["alarm.glass"]`), Met: json.RawMessage(`"alarm.glass"`), Passes: true}},
				Tries:      []admin.JourneyTry{try(21*time.Millisecond, 503, "Busy", "maintenance"), try(31*time.Second, 0, "TimedOut", "no answer")},
				Endpoint:   &admin.EndpointHealth{State: "probation", Failures: 10, Last: "503", Until: new(noon.Add(38 * time.Second))}},
			{Subscription: "insurance", State: "dead-lettered", Summary: "dead-lettered at 2026-01-31T11:55:25.000Z: UndeliverableDueToClientError after 1 attempt", Matches: true, Attempts: 1,
				Tries: []admin.JourneyTry{try(40*time.Millisecond, 400, "BadRequest", "unknown field")}, DeadLetter: &admin.DeadLetter{Number: 7, Died: after(time.Second)}},
			{Subscription: "fire", State: "unmatched", Summary: `never: the filter wants data.kind StringIn smoke, co, and it is "glass"`, Conditions: []admin.Finding{glass}},
		},
	}
}

func fixedHubJourney() admin.Journeys {
	return admin.Journeys{Events: []admin.Journey{{
		Hub: "sensors", Partition: "0", Sequence: 41, ID: "home-yard/sensors/0/41", Published: before(time.Second), Event: fixedEvents()[0],
		Groups:      []admin.JourneyGroup{{Group: "aggregator", State: "past"}, {Group: "$Default", State: "unknown"}},
		KafkaGroups: []admin.JourneyGroup{{Group: "readers", State: "past"}, {Group: "late", State: "before"}, {Group: "new", State: "unknown"}},
		Cause:       &admin.JourneyCause{By: "correlation-id", Text: "orders/3/1041", Hub: "orders", Partition: "3", Sequence: new(int64(1041)), Published: new(before(2 * time.Second))},
		Functions: []admin.JourneyFunction{
			{Function: "score", State: "before", Summary: "not yet: called 2 times, the last ended in failed at 11:59:59: 503: refused; it is open", KnownSince: new(before(time.Hour)), Calls: []admin.JourneyCall{
				{Time: before(900 * time.Millisecond), Took: "12ms", Attempt: 1, Events: 100, Outcome: "failed", Error: "503: refused"},
				{Time: before(100 * time.Millisecond), Took: "9ms", Attempt: 2, Events: 1, Outcome: "failed", Error: "503: refused"}}},
			{Function: "resize", State: "poison", Summary: "put away as poison after 1 attempt: 400: no picture", Poison: &admin.PoisonEvent{ID: "resize/sensors/0/41", Attempts: 1, Poisoned: new(before(500 * time.Millisecond))}, Missing: []string{"yard-2"}},
			{Function: "tally", State: "handled", Summary: "handled at 11:59:59, attempt 1, in 3ms", Calls: []admin.JourneyCall{{Time: before(700 * time.Millisecond), Took: "3ms", Attempt: 1, Events: 1, Outcome: "done"}}},
		},
	}}}
}

// V2: which functions were called with an event, what came of each call and why; and what the event came from.
func TestTheCallsWithAnEvent(t *testing.T) {
	_, _, h := newFixture(fixed())
	page := get(h, base+"events?id=0/41&in=hubs/sensors").Body.String()
	for _, says := range []string{
		"called 2 times, the last ended in failed", "attempt 1, 100 events", "503: refused", "called again", // in the picture
		"put away as poison", "functions/resize/poison", "yard-2 did not answer", "done in 3.0 ms",
		"Where it came from", "orders / 3 / 1,041", "events?id=3%2F1041&amp;in=hubs%2Forders", "by <code>correlation-id</code>",
	} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
}

// V2: why an event was not delivered: the page says it first, then each subscription with the value that
// failed its filter, what was answered, and what can be done.
func TestWhyWasThisEventNotDelivered(t *testing.T) {
	_, _, h := newFixture(fixed())
	page := get(h, base+"events?id=7c1d-e0&in=topics/alarms").Body.String()
	for _, says := range []string{
		"delivered to 1 of 3", "It was delivered to 1 of the 3 subscriptions that it matches.", "company: not yet: it waits", "StringIn [&#34;smoke&#34;,&#34;co&#34;] is &#34;glass&#34;", "does not pass",
		"503", "maintenance", "topics/alarms/subscriptions/company/probe", "topics/alarms/subscriptions/insurance/dead/7", "given up", "probe, then try 3",
		`data-live="/console/events?id=7c1d-e0&amp;in=topics%2Falarms&amp;number=88214"`,
	} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
}

// V2: an event is found wherever it is, by its id or by its place; of several one is chosen; and what is
// not found says where was looked, and how to look further.
func TestFindingAnEvent(t *testing.T) {
	answers := fixed()
	_, api, h := newFixture(answers)
	path := "GET /api/v1/topics/{topic}/events/{id}/journey"
	twice := fixedJourney()
	twice.Sequence = 7
	find := func(query string) string { return get(h, base+"events?"+query).Body.String() }

	answers[path] = admin.Journeys{Events: []admin.Journey{fixedJourney(), twice}}
	page := find("id=7c1d-e0")
	testkit.That(t, strings.Contains(page, "2 events have this id. Choose one.") && strings.Contains(page, "number=7") && !strings.Contains(page, "data-live"), "several: %s", page)
	page = find("id=7c1d-e0&in=topics/alarms&number=7")
	testkit.That(t, strings.Contains(page, "stored as alarms 7<"), "the one that was chosen: %s", page)

	answers[path] = admin.Journeys{Events: []admin.Journey{}, Summary: "no event of topic alarms has the id x: looked at 10000 events", Looked: admin.Looked{Events: 10000, Before: new(int64(504))}}
	page = find("id=x&in=topics/alarms")
	testkit.That(t, strings.Contains(page, "No event of topic alarms has the id x: looked at 10000 events.") && strings.Contains(page, "before=504"), "none: %s", page)

	for _, query := range []string{"id=sensors/0/41", "id=sensors+/+0+/+41", "id=0/41&in=hubs/sensors"} {
		testkit.That(t, strings.Contains(find(query), "<h1>sensors / 0 / 41<"), "%s is not found", query)
	}
	testkit.That(t, strings.Contains(find("id=x&in=hubs/sensors"), "is no event of a hub: write PARTITION/NUMBER"), "a place that is none")
	delete(answers, "GET /api/v1/hubs/{hub}/partitions/{partition}/events/{sequence}/journey")
	api.calls = nil
	find("id=a/1/2")
	testkit.That(t, strings.Contains(strings.Join(api.calls, " "), "/topics/alarms/events/a%2F1%2F2/journey"), "an id with slashes is not looked for: %q", api.calls)
}

// What will not change any more has no stream.
func TestAnEventThatIsDoneWithIsStill(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	j := fixedJourney()
	j.Subscriptions = j.Subscriptions[2:]
	answers["GET /api/v1/topics/{topic}/events/{id}/journey"] = admin.Journeys{Events: []admin.Journey{j}}
	testkit.That(t, !strings.Contains(get(h, base+"events?id=7c1d-e0&in=topics/alarms").Body.String(), "data-live"), "it has one")
}

// The axis has a place for a millisecond and for a day, and each mark is within the picture.
func TestTheAxisOfAJourney(t *testing.T) {
	a := newAxis(time.Hour)
	testkit.Equal(t, a.x(0), axisLeft)
	testkit.Equal(t, a.x(time.Millisecond), axisLeft)
	testkit.Equal(t, a.x(24*time.Hour), axisRight)
	testkit.Equal(t, newAxis(7*24*time.Hour).x(7*24*time.Hour), axisRight)
	testkit.That(t, a.x(time.Second)-a.x(100*time.Millisecond) > 90, "a tenth is %v wide", a.x(time.Second)-a.x(100*time.Millisecond))
	testkit.Equal(t, coarse(276*time.Second), 270*time.Second)
	testkit.Equal(t, coarse(-time.Second), 0)
	e := newJourneyEvent(fixedJourney(), noon)
	for _, row := range e.Picture.Rows {
		for _, m := range row.Marks {
			testkit.That(t, m.X >= axisLeft && m.X <= 980, "%s has a mark at %v", row.Name, m.X)
		}
	}
}

// V6: the page of an event's journey names its trace, and links to where that is looked at.
func TestAJourneyLinksToItsTrace(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	j := fixedJourney()
	j.TraceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	for link, says := range map[string]string{
		"":                                    ", trace <code>" + j.TraceID + "</code>.",
		"https://traces.example/" + j.TraceID: `, trace <a href="https://traces.example/` + j.TraceID + `" rel="noreferrer"><code>` + j.TraceID + "</code></a>.",
	} {
		j.TraceURL = link
		answers["GET /api/v1/topics/{topic}/events/{id}/journey"] = admin.Journeys{Events: []admin.Journey{j}}
		page := get(h, base+"events?id=7c1d-e0&in=topics/alarms").Body.String()
		testkit.That(t, strings.Contains(page, says), "the page does not say %s", says)
	}
}

// V3: a link that is copied has the address by which others reach the yard, which is not always that of its listener.
func TestACopiedLinkHasThePublicAddress(t *testing.T) {
	c, _, h := newFixture(fixed())
	for public, want := range map[string]string{"": "http://example.com", "https://yard.example.com": "https://yard.example.com"} {
		c.cfg.PublicURL = public
		page := get(h, base+"events?id=a1&in=topics/alarms").Body.String()
		testkit.That(t, strings.Contains(page, `data-copy="`+want+`/console/events?`), "with %q nothing to be copied begins with %s", public, want)
	}
}
