package console

import (
	"net/http"
	"slices"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// deeds are all that are walked through.
func (y *stocked) deeds() []deed {
	return slices.Concat(y.hubDeeds(), y.groupDeeds(), y.topicDeeds(),
		y.subscriptionDeeds(madeOfTopic, ""), y.subscriptionDeeds(madeOfHub, ofAHub), y.deliveryDeeds(company, guard, ""), y.deliveryDeeds(archive, siren, ofAHub), y.functionDeeds(), y.policyDeeds(), y.deletions())
}

// ofAHub ends the names of deeds that are done to subscriptions of topics as well.
const ofAHub = " of a hub"

func (y *stocked) hubDeeds() []deed {
	var before int64
	return []deed{
		{name: "make a hub", at: "hubs", do: []step{
			press(`main a[href="/console/new/hub"]`, shows(act)), write("name", "made"), write("partitions", "2"), press(act, done("created")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Hub(v.t.Context(), "made"))(v.t).Partitions, 2)
		}},
		{name: "change a hub", at: "hubs/made", do: []step{
			press(`.tabs a[href$="/settings"]`, shows(act)), write("age", "48h"), press(act, done("changed")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Hub(v.t.Context(), "made"))(v.t).Retention.Age, "48h")
		}},
		{name: "send an event", at: "hubs/made", do: []step{
			press(`main a[href="/console/hubs/made/send"]`, shows(act)), write("body", `{"from":"hands"}`), write("key", "some"), press(act, done("sent")+" && "+times(1)),
		}, check: func(v *visitor) {
			v.await("the event among those of the hub", contains("hands"))
			testkit.Equal(v.t, y.events(v, "made"), 1)
		}},
		{name: "send an event again", at: "hubs/made/events", do: []step{
			press(`main table a[href*="show="]`, shows(`main a[href$="/again"]`)), press(`main a[href$="/again"]`, shows(foresee)),
			func(v *visitor) { testkit.Equal(v.t, y.events(v, "made"), 1, "events after a look") },
			press(act, done("again")),
		}, check: func(v *visitor) { testkit.Equal(v.t, y.events(v, "made"), 2) }},
		{name: "send a CloudEvent", at: "hubs/made", do: []step{
			press(`main a[href="/console/hubs/made/send"]`, shows(act)), write("body", `{"kind":"glass"}`), choose("form", "cloudevent"), write("ctype", "alarm.glass"), press(act, done("sent")+" && "+times(1)),
			press(`main table a[href*="show="]`, shows(`main a[href*="as=cloudevent"]`)), press(`main a[href*="as=cloudevent"]`, contains(`"specversion": "1.0"`)),
		}, check: func(v *visitor) {
			v.await("the CloudEvent", contains(`"type": "alarm.glass"`)+" && "+contains(`"kind": "glass"`))
			testkit.Equal(v.t, y.events(v, "made"), 3)
		}},
		{name: "follow a hub", at: "hubs/orders/events", live: true, do: []step{
			func(v *visitor) { before = y.events(v, "orders") }, y.follow,
		}, check: func(v *visitor) { testkit.Equal(v.t, y.events(v, "orders"), before+2) }},
	}
}

// events is how many a hub has.
func (y *stocked) events(v *visitor, hub string) (n int64) {
	v.t.Helper()
	for _, p := range testkit.Value(y.client.Partitions(v.t.Context(), hub))(v.t) {
		n += p.Events()
	}
	return n
}

// follow sees an event come, stops the page, and sees the next when it lets it go on.
func (y *stocked) follow(v *visitor) {
	v.t.Helper()
	v.run("mark the page", evaluate(`window.left = false; 0`))
	y.send(v.t, "the first to follow")
	v.await("the first event", contains("the first to follow"))
	v.push(v.page, "button.live")
	v.await("a page that stands still", shows("button.live.paused"))
	y.send(v.t, "the second to follow")
	v.push(v.page, "button.live")
	v.await("the second event", contains("the second to follow")+` && window.left === false`)
}

func (y *stocked) groupDeeds() []deed {
	checkpoints := func(v *visitor) (at []int64) {
		for _, c := range testkit.Value(y.client.Checkpoints(v.t.Context(), "orders", "billing"))(v.t).Checkpoints {
			at = append(at, *c.Sequence)
		}
		return at
	}
	return []deed{
		{name: "make a group", at: "hubs/made/groups", do: []step{
			press(`main a[href$="/new-group"]`, shows(act)), write("name", "audit"), press(act, done("created")),
		}, check: func(v *visitor) {
			testkit.That(v.t, slices.Contains(testkit.Value(y.client.Hub(v.t.Context(), "made"))(v.t).Groups, "audit"), "there is no group")
		}},
		{name: "move checkpoints", at: "hubs/orders/groups/billing", do: []step{
			press(`main a[href$="/move"]`, shows(look)), choose("to", "earliest"), press(look, shows(foresee)),
			func(v *visitor) {
				testkit.That(v.t, slices.Max(checkpoints(v)) >= 0, "they are moved by a look")
			},
			press(act, done("moved")+" && "+times(4)),
		}, check: func(v *visitor) { testkit.Slices(v.t, checkpoints(v), []int64{-1, -1, -1, -1}) }},
		{name: "release a partition", at: "hubs/orders/groups/night", do: []step{
			press(`main a[href$="/night/release/2"]`, shows(act)), press(act, done("release")),
		}, check: func(v *visitor) {
			for _, p := range y.owned(v.t).Partitions {
				testkit.Equal(v.t, p.Owner == "", p.Partition == "2", "partition "+p.Partition+" is nobody's")
			}
		}},
	}
}

func (y *stocked) functionDeeds() []deed {
	is := func(state string) func(v *visitor) {
		return func(v *visitor) {
			testkit.Eventually(v.t, "a function that is "+state, func() bool {
				return testkit.Value(y.client.Function(v.t.Context(), "resize"))(v.t).State == state
			})
		}
	}
	circuit := func(state string) func(v *visitor) {
		return func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Circuit(v.t.Context(), outside))(v.t).State, state)
		}
	}
	return []deed{
		{name: "make a function", at: "functions", do: []step{
			press(`main a[href="/console/new/function"]`, shows(act)), write("name", "made"), choose("hub", "orders"), write("endpoint", y.hook.URL+"/made"), press(act, done("created")),
		}, check: func(v *visitor) {
			testkit.Equal(v.t, testkit.Value(y.client.Function(v.t.Context(), "made"))(v.t).Hub, "orders")
		}},
		{name: "hold a circuit", at: "functions/resize", do: []step{press(`main form[action$="/resize/hold"] button`, done("held"))}, check: is("paused")},
		{name: "resume a circuit", at: "functions/resize", do: []step{press(`main form[action$="/resize/resume"] button`, done("resumed"))}, check: is("running")},
		{name: "change a function", at: "functions/made", do: []step{
			press(`.tabs a[href$="/made/edit"]`, shows(act)), write("batch", "7"), write("retries", "forever"), press(act, done("changed")),
		}, check: func(v *visitor) {
			f := testkit.Value(y.client.Function(v.t.Context(), "made"))(v.t)
			testkit.That(v.t, f.Batch == 7 && f.Retries == int(admin.Forever), "it has batches of %d and %d retries", f.Batch, f.Retries)
		}},
		{name: "send a test notice", at: "functions/made", do: []step{
			press(`main a[href$="/made/notice"]`, shows(act)), write("target", y.hook.URL+"/notices"), press(act, done("noticed")),
		}, check: func(v *visitor) { testkit.That(v.t, y.hook.asked("/notices") > 0, "nobody was told") }},
		{name: "open a circuit", at: "functions", do: []step{
			press(`main a[href^="/console/circuits/outside"]`, shows(`main form[action*="/circuits/outside/open"] button`)),
			press(`main form[action*="/circuits/outside/open"] button`, done("held")),
		}, check: circuit("held")},
		{name: "close a circuit", at: "functions", do: []step{
			press(`main a[href^="/console/circuits/outside"]`, shows(`main form[action*="/circuits/outside/close"] button`)),
			press(`main form[action*="/circuits/outside/close"] button`, done("resumed")),
		}, check: circuit("closed")},
		{name: "redrive poison events", at: "functions/picky", do: []step{
			func(*visitor) { y.hook.answer("/picky", http.StatusOK) },
			press(`main a[href$="/picky/redrive"]`, shows(foresee)), press(act, done("redriven")+" && "+times(2)),
		}, check: func(v *visitor) {
			testkit.Eventually(v.t, "no poison event", func() bool { return y.poisoned(v.t) == 0 })
		}},
	}
}

// deletions undo what was made before. What is deleted has its name written out.
func (y *stocked) deletions() []deed {
	undo := func(what, name, at string, find func(v *visitor) error) deed {
		return deed{name: "delete a " + what, at: at, do: []step{
			press(`main a[href$="/delete"]`, shows(act)), write("name", "another"), press(act, shows(refusal)),
			func(v *visitor) { testkit.Must(v.t, find(v), "by another name") },
			write("name", name), press(act, done("deleted")),
		}, check: func(v *visitor) { testkit.That(v.t, find(v) != nil, "the %s is there", what) }}
	}
	return []deed{
		undo("hub", "made", "hubs/made", func(v *visitor) error { return testkit.Err(y.client.Hub(v.t.Context(), "made")) }),
		undo("function", "made", "functions/made", func(v *visitor) error { return testkit.Err(y.client.Function(v.t.Context(), "made")) }),
		undo("subscription", "made", pageOf(madeOfTopic), func(v *visitor) error {
			return testkit.Err(y.client.Subscription(v.t.Context(), madeOfTopic, false))
		}),
		undo("subscription"+ofAHub, "made", pageOf(madeOfHub), func(v *visitor) error {
			return testkit.Err(y.client.Subscription(v.t.Context(), madeOfHub, false))
		}),
		undo("topic", "made", "topics/made", func(v *visitor) error { return testkit.Err(y.client.Topic(v.t.Context(), "made")) }),
		{name: "forget an instance", at: "hubs/orders/groups/night", do: []step{
			func(v *visitor) { // a minute after it was killed
				testkit.Eventually(v.t, "an instance that counts as dead", func() bool {
					return !slices.ContainsFunc(y.owned(v.t).Instances, func(i admin.Instance) bool { return i.Alive })
				})
				v.visit("hubs/orders/groups/night")
			},
			press(`main a[href$="/night/forget/lost"]`, shows(act)), press(act, done("forgotten")),
		}, check: func(v *visitor) {
			testkit.That(v.t, !slices.ContainsFunc(y.owned(v.t).Instances, func(i admin.Instance) bool { return i.Present }), "it is known still")
		}},
		undo("group", "night", "hubs/orders/groups/night", func(v *visitor) error { return testkit.Err(y.client.Ownership(v.t.Context(), "orders", "night", 0)) }),
	}
}
