package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

var activityPaths = []string{base + "activity?show=owners&object=hubs/sensors&by=ops&before=90"}

func fixedActivity() admin.ActivityPage {
	at := func(d time.Duration) admin.Time { return *apiTime(d) }
	return admin.ActivityPage{Next: 40, Activity: []admin.Activity{
		{Number: 90, At: at(time.Second), Kind: "ownership.moved", Object: "hubs/sensors/groups/aggregator", By: "consumer-2", Moves: []admin.OwnershipMove{{From: "consumer-1", To: "consumer-2", Partitions: []string{"0", "2"}}}},
		{Number: 80, At: at(time.Minute), Kind: "circuit.opened", Object: "circuits/score", Count: 101, Detail: "101 failures within 30 s"},
		{Number: 70, At: at(time.Hour), Kind: "key.regenerated", Object: "policies/gateway", By: "ops", Address: "192.0.2.7:4711", Fields: []string{"secondaryKey"}},
		{Number: 60, At: at(2 * time.Hour), Kind: "subscription.created", Object: "topics/alarms/subscriptions/company"},
	}}
}

// V4: each change says what it was, who did it, and leads to what changed; a filter stays in every link.
func TestActivity(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	page := get(h, base+"activity?show=owners&object=hubs/sensors&by=ops").Body.String()
	for _, says := range []string{
		"0, 2: consumer-1 → consumer-2", `href="/console/hubs/sensors/groups/aggregator"`, `href="/console/circuits/score"`, "101; 101 failures within 30 s", "the yard", "192.0.2.7", "secondaryKey",
		"activity.json?by=ops&amp;object=hubs%2Fsensors&amp;show=owners", "before=40&amp;by=ops&amp;object=hubs%2Fsensors&amp;show=owners",
		"eventyard activity --kind ownership,instance,checkpoint,partition --object hubs/sensors --by ops", "data-live",
	} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
	testkit.That(t, !strings.Contains(get(h, base+"activity?before=90").Body.String(), "data-live"), "a page of what is older moves")
	answers["GET /api/v1/activity"] = admin.ActivityPage{}
	testkit.That(t, strings.Contains(get(h, base+"activity").Body.String(), "No such change"), "an empty page says nothing")
}

// V4: what is saved is what the API said, page after page, and nothing that a browser would run.
func TestActivityIsSaved(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	last := fixedActivity()
	last.Next = 0
	answers["GET /api/v1/activity"] = last
	w := get(h, base+"activity.json?show=owners")
	var saved []admin.Activity
	testkit.Must(t, json.Unmarshal(w.Body.Bytes(), &saved))
	testkit.Equal(t, w.Code, http.StatusOK)
	testkit.Equal(t, len(saved), 4)
	testkit.That(t, strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") && strings.Contains(w.Header().Get("Content-Security-Policy"), "sandbox"), "it is not a file: %v", w.Header())
}

// What changed has a page, whatever it is called.
func TestObjectsHavePages(t *testing.T) {
	for object, want := range map[string][2]string{
		"hubs/a%2Fb":                     {"a/b", "/console/hubs/a%2Fb"},
		"hubs/orders/groups/billing/x/y": {"billing", "/console/hubs/orders/groups/billing"},
		"hubs/orders/policies/till":      {"till", "/console/hubs/orders/access"},
		"functions/score":                {"score", "/console/functions/score"},
		"subscriptions/audit":            {"audit", ""},
		"nodes/one":                      {"one", "/console/storage"},
		"elsewhere/x":                    {"x", ""},
		"yard":                           {"yard", ""},
	} {
		name, link := objectOf(admin.Activity{Object: object})
		testkit.Equal(t, [2]string{name, link}, want, object)
		testkit.Equal(t, newFeedRow(admin.Activity{Object: object}).Link, want[1], "on the overview, "+object)
	}
}

// What needs somebody leads to where it is seen: a certificate to those of the listeners, the rest of a node to storage.
func TestNeedsLeadToTheirPages(t *testing.T) {
	node := admin.NeedObject{Kind: "node", Name: "yard-1"}
	for kind, want := range map[string]string{"certificate": "/console/access", "disk-low": "/console/storage"} {
		testkit.Equal(t, newNeed(admin.Need{Kind: kind, Object: node}, noon).Link, want, kind)
	}
}
