package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// newStillVisitor opens a page in which no script runs.
func newStillVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	v := &visitor{page: newBarePage(t, base, 1280, "light"), hands: mouse{}, still: true}
	v.run("turn scripts off", emulation.SetScriptExecutionDisabled(true))
	return v
}

// V4: without a script each page has what it is for, and no button that would do nothing.
func (y *stocked) withoutScript(t *testing.T) {
	testkit.Must(t, testkit.Err(y.client.CopyKafkaOffsets(t.Context(), "orders", "readers", admin.KafkaCopy{Group: "billing", To: admin.ToKafka})))
	v := newStillVisitor(t, y.base)
	for path, has := range map[string]string{
		"": shows("#needs"), "hubs": contains("orders"), "hubs/orders": shows("#fig-events"), "hubs/orders/events": contains("three"),
		"hubs/orders/partitions/0/events/0": shows("pre.code"), "hubs/orders/groups": contains("billing"), "hubs/orders/groups/billing": shows("#p0"),
		"hubs/orders/access": shows("main .empty"), "topics": contains("guard"), "topics/shop": contains("company"),
		"topics/alarms/subscriptions/guard": contains("left alone and probed"), "topics/shop/subscriptions/company/attempts": contains("400"),
		"topics/shop/subscriptions/company/dead": contains("UndeliverableDueToClientError"), "topics/shop/subscriptions/company/dead/0": contains("glass"),
		"functions": contains("resize"), "functions/resize": shows("svg.states"), "events": shows(named("id")), "activity": contains("topic.created"),
		"access": shows(`main form[action$="/reveal"]`), "storage": shows("main table"), "find?q=bill": contains("billing"),
		"docs/guides/first": contains("eventyard send orders"), "more": shows(".shots a"),
		"hubs/orders/connect": contains("Endpoint="), "topics/shop/events": contains("alarm.glass"), "topics/shop/publish": shows(named("data")),
		"functions/picky/poison": contains("picky"), "hubs/orders/kafka-groups/readers": contains("readers"), "signin": shows(`main [name="key"]`),
		"events?id=0/0&in=hubs/photos": contains("picky"),
	} {
		v.visit(path)
		v.await(path+" has what it is for", has)
		v.await("no idle button at "+path, `[...document.querySelectorAll("button")].every(b => b.type === "submit" || !b.checkVisibility({visibilityProperty: true}))`)
	}
}

// V4: nor does the first run need one: its button makes the hub, and the page has what comes next.
func TestTheFirstRunWithoutScript(t *testing.T) {
	y := newEmptyYard(t)
	v := newStillVisitor(t, y.base)
	v.visit("")
	v.press(`#part-first form button`, `document.querySelectorAll("#part-first .steps > li.done").length === 2`)
	testkit.Equal(t, len(testkit.Value(y.client.Hubs(t.Context()))(t)), 1, "hubs")
}
