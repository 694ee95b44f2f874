package v1

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6: lists tell what their members do where that is asked for, of hubs as far as the caller may see it.
func TestListsWithStats(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hub("orders", 2)
		y.send("orders", "1", "a", "b", "c")
		y.figures.count(map[series.Key]float64{
			{Of: series.Published, Hub: "orders"}: 7, {Of: series.LagSeconds, Hub: "orders", Group: "g"}: 2.5,
			{Of: series.Published, Topic: "alarms"}: 3, {Of: series.Waiting, Topic: "alarms", Subscription: "mailer"}: 5,
		})
		hubs := func(y *yard, query string) []admin.Hub {
			return read[map[string][]admin.Hub](t, y.want(http.StatusOK, "GET", "/api/v1/hubs"+query, nil))["hubs"]
		}
		testkit.That(t, hubs(y.yard, "")[0].Stats == nil, "it has stats that nobody asked for")
		s := hubs(y.yard, "?stats=true")[0].Stats
		testkit.That(t, s.Events == 3 && *s.Published == 7 && *s.LagSeconds == 2.5 && s.Read == nil, "the hub's are %+v", s)
		p := testkit.Value(y.registry.Create(t.Context(), access.Policy{Hub: "orders", Name: "sender", Rights: auth.Send}))(t)
		s = hubs(y.as(basic(p.Name, p.Primary)), "?stats=true")[0].Stats
		testkit.That(t, *s.Published == 7 && s.LagSeconds == nil, "who may only send is told %+v", s)
		y.refused(http.StatusBadRequest, "bad-request", "GET", "/api/v1/hubs?stats=perhaps", nil)

		y.want(http.StatusCreated, "POST", "/api/v1/topics", `{"name":"alarms"}`)
		y.want(http.StatusCreated, "POST", "/api/v1/subscriptions", `{"name":"mailer","topic":"alarms","pull":{}}`)
		synctest.Wait()
		topics := read[map[string][]admin.Topic](t, y.want(http.StatusOK, "GET", "/api/v1/topics?stats=true", nil))["topics"]
		for _, topic := range topics {
			if topic.Name == "alarms" {
				testkit.That(t, *topic.Stats.Published == 3 && *topic.Stats.Waiting == 5, "the topic's are %+v", topic.Stats)
			}
		}
		subs := read[map[string][]admin.Subscription](t, y.want(http.StatusOK, "GET", "/api/v1/subscriptions?stats=true", nil))["subscriptions"]
		testkit.That(t, subs[0].Stats != nil && subs[0].DeadLetters != nil, "the subscription's are %+v", subs[0])
		subs = read[map[string][]admin.Subscription](t, y.want(http.StatusOK, "GET", "/api/v1/subscriptions", nil))["subscriptions"]
		testkit.That(t, subs[0].Stats == nil, "it has stats that nobody asked for")
	})
}
