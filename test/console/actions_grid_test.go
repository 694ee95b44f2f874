package console

import (
	"net/http"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func (y *stocked) topicDeeds() []deed {
	topic := func(v *visitor, name string) admin.Topic {
		return testkit.Value(y.client.Topic(v.t.Context(), name))(v.t)
	}
	var before string
	return []deed{
		{name: "make a topic", at: "topics", do: []step{
			press(`main a[href="/console/new/topic"]`, shows(act)), write("name", "made"), choose("schema", "eventgrid"), press(act, done("created")),
		}, check: func(v *visitor) { testkit.Equal(v.t, topic(v, "made").Schema, "eventgrid") }},
		{name: "show the keys of a topic", at: "topics/made", do: []step{press(`main form[action$="/made/reveal"] button`, shows(secret))}, check: func(v *visitor) {
			before = topic(v, "made").Keys.Key1
			v.await("the key", contains(before))
		}},
		{name: "make a key of a topic anew", at: "topics/made", do: []step{
			press(`main a[href$="/made/regenerate"]`, shows(act)), choose("key", "key1"), press(act, shows(secret)),
		}, check: func(v *visitor) {
			after := topic(v, "made").Keys.Key1
			testkit.That(v.t, after != before, "the key is the same")
			v.await("the key", contains(after))
		}},
		{name: "subscribe", at: "topics/shop", do: []step{
			press(`main a[href^="/console/new/subscription"]`, shows(act)), write("name", "made"), choose("source", "topics/shop"), write("endpoint", y.hook.URL+"/made"), press(act, done("created")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Subscription(v.t.Context(), madeOfTopic, false))(v.t).Endpoint, y.hook.URL+"/made")
		}},
		{name: "publish an event", at: "topics/made", do: []step{
			press(`main a[href$="/made/publish"]`, shows(act)), write("type", "order.placed"), write("data", `{"total":42}`), write("id", "by-hand"), press(act, done("published")),
		}, check: func(v *visitor) {
			v.await("its journey", contains("by-hand")+" && "+contains("order.placed"))
			events := testkit.Value(y.client.ReadTopic(v.t.Context(), "made", "earliest", 1))(v.t).Events
			testkit.That(v.t, len(events) == 1 && strings.Contains(string(events[0].Event), `"by-hand"`), "the topic has %v", events)
		}},
		{name: "publish an event again", at: "topics/made/events", do: []step{
			press(`#part-list a[href*="by-hand"]`, contains("by-hand")), press(`main a[href$="/again"]`, shows(foresee)),
			func(v *visitor) { testkit.Equal(v.t, topic(v, "made").Events, 1, "events after a look") },
			press(act, done("again")),
		}, check: func(v *visitor) { testkit.Equal(v.t, topic(v, "made").Events, 2, "events") }},
		{name: "change a topic", at: "topics/made", do: []step{
			press(`.tabs a[href$="/made/settings"]`, shows(act)), write("events", "500"), choose("keys", "refused"), press(act, done("changed")),
		}, check: func(v *visitor) {
			t := topic(v, "made")
			testkit.That(v.t, t.Quota.Events == 500 && t.DisableKeys, "it has %+v", t)
		}},
		{name: "subscribe to a hub", at: "hubs/orders/subscriptions", do: []step{
			press(`main a[href^="/console/new/subscription"]`, shows(act)), write("name", "made"), write("endpoint", y.hook.URL+"/made"), press(act, done("created")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Subscription(v.t.Context(), madeOfHub, false))(v.t).SourceHub, "orders")
		}},
	}
}

// madeOfTopic and madeOfHub are made by hand.
var (
	madeOfTopic = admin.SubscriptionRef{Name: "made", Topic: "shop"}
	madeOfHub   = admin.SubscriptionRef{Name: "made", Hub: "orders"}
)

// pageOf is where a subscription is.
func pageOf(s admin.SubscriptionRef) string {
	if s.Hub != "" {
		return "hubs/" + s.Hub + "/subscriptions/" + s.Name
	}
	return "topics/" + s.Topic + "/subscriptions/" + s.Name
}

// subscriptionDeeds are done to one that was made by hand. Names of deeds end with what it is.
func (y *stocked) subscriptionDeeds(of admin.SubscriptionRef, what string) []deed {
	return []deed{
		{name: "try an event" + what, at: pageOf(of), do: []step{
			press(`main a[href$="/made/explain"]`, shows(look)), press(look, shows(".sheet .note.good")),
		}, check: func(v *visitor) { v.await("what it says of the filter", contains("no filter")) }},
		{name: "change a subscription" + what, at: pageOf(of), do: []step{
			press(`main a[href$="/made/edit"]`, shows(act)), write("attempts", "3"), write("filters", "data.total NumberGreaterThan 100"), press(act, done("changed")),
		}, check: func(v *visitor) {
			made := testkit.Value(y.client.Subscription(v.t.Context(), of, false))(v.t)
			testkit.Equal(v.t, made.Retry.Attempts, 3)
			testkit.That(v.t, strings.Contains(string(made.Filter), "NumberGreaterThan"), "its filter is %s", made.Filter)
		}},
	}
}

// deliveryDeeds are done to a subscription that has dead letters, and to one whose endpoint is on probation.
func (y *stocked) deliveryDeeds(dead, probed admin.SubscriptionRef, what string) []deed {
	is := func(state string) func(v *visitor) {
		return func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Subscription(v.t.Context(), dead, false))(v.t).State, state)
		}
	}
	mend := func(s admin.SubscriptionRef) step {
		return func(*visitor) { y.hook.answer("/"+s.Name, http.StatusOK) }
	}
	at := pageOf(dead)
	return []deed{
		{name: "pause a subscription" + what, at: at, do: []step{press(`main form[action$="/pause"] button`, done("paused"))}, check: is("paused")},
		{name: "resume a subscription" + what, at: at, do: []step{press(`main form[action$="/resume"] button`, done("resumed"))}, check: is("active")},
		{name: "rotate a signing key" + what, at: at, do: []step{press(`main form[action$="/rotate"] button`, done("rotated"))}, check: func(v *visitor) {
			testkit.Equal(v.t, len(testkit.Value(y.client.Subscription(v.t.Context(), dead, false))(v.t).Signing), 2, "keys that are good")
		}},
		{name: "redrive a dead letter" + what, at: at, do: []step{
			mend(dead), press(`#dead a[href$="/redrive"]`, shows(look)), write("number", "0"), press(look, shows(foresee)),
			func(v *visitor) { testkit.That(v.t, y.dead(v.t, dead)[0].Redriven == nil, "it is redriven by a look") },
			press(act, done("redriven")+" && "+times(1)),
		}, check: func(v *visitor) {
			testkit.Eventually(v.t, "a dead letter that is redriven", func() bool {
				letters := y.dead(v.t, dead)
				return len(letters) == 1 || letters[0].Redriven != nil
			})
		}},
		{name: "purge dead letters" + what, at: at, do: []step{
			press(`#dead a[href$="/purge"]`, shows(look)), press(look, shows(foresee)),
			func(v *visitor) { testkit.That(v.t, len(y.dead(v.t, dead)) > 0, "they are deleted by a look") },
			press(act, done("purged")+" && "+times(2)),
		}, check: func(v *visitor) { testkit.Equal(v.t, len(y.dead(v.t, dead)), 0, "dead letters") }},
		{name: "probe an endpoint" + what, at: pageOf(probed), do: []step{
			mend(probed), press(`main form[action$="/probe"] button`, done("probed")),
		}, check: func(v *visitor) {
			testkit.Eventually(v.t, "an endpoint that is healthy", func() bool { return y.health(v.t, probed) == "healthy" })
		}},
	}
}
