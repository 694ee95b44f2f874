package v1

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func gridEvent(id, data string) string {
	return `{"id":"` + id + `","subject":"/s","eventType":"order.placed","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1","data":` + data + `}`
}

// V2: an event that is not published yet shows by which condition a subscription would not get it.
func TestAFilterIsExplained(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook","types":["order.placed"],"filters":["data.total NumberGreaterThan 100"]`)
		path := billingPath + "/explain"
		no := read[admin.Explanation](t, y.want(200, "POST", path, gridEvent("1", `{"total":42}`)))
		testkit.That(t, !no.Matches && len(no.Conditions) == 2 && no.Conditions[0].Passes && !no.Conditions[1].Passes, "it says %+v", no)
		testkit.Equal(t, no.Summary, "the event does not match: the filter wants data.total NumberGreaterThan 100, and it is 42")
		yes := read[admin.Explanation](t, y.want(200, "POST", path, "["+gridEvent("1", `{"total":142}`)+"]"))
		testkit.That(t, yes.Matches && yes.Summary == "the event matches: it passes all 2 conditions", "it says %+v", yes)

		y.want(400, "POST", path, `{"id":"1"}`)
		y.want(400, "POST", path, "["+gridEvent("1", "1")+","+gridEvent("2", "2")+"]")
		y.want(404, "POST", strings.Replace(path, "billing", "nobody", 1), gridEvent("1", "1"))
		testkit.Equal(t, len(y.hook.deliveries()), 0, "delivered")
	})
}

// V2: the events of a hub are explained as they are sent there.
func TestAFilterOfAHubIsExplained(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/hubs", `{"name":"readings"}`)
		y.want(201, "POST", "/api/v1/subscriptions", `{"name":"audit","sourceHub":"readings","endpoint":"https://example.com/hook","skipValidation":true,"filters":["data.t NumberLessThan 0","subject StringIn h1"]}`)
		got := read[admin.Explanation](t, y.want(200, "POST", "/api/v1/subscriptions/audit/explain", `{"key":"h1","body":{"t":5}}`))
		testkit.Equal(t, got.Summary, "the event does not match: the filter wants data.t NumberLessThan 0, and it is 5")
		testkit.That(t, got.Conditions[1].Passes && string(got.Conditions[1].Met) == `"h1"`, "its key: %+v", got)
	})
}
