package console

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: a list asks once how all of its subscriptions do, and shows how the last requests went, what is delivered a
// second, and of one whose owner has to agree the link and until when it is good.
func TestTheListOfSubscriptions(t *testing.T) {
	answers := fixed()
	sub := answers["GET /api/v1/subscriptions/{subscription}"].(admin.Subscription)
	pending := admin.Subscription{Name: "pending", Topic: "alarms", State: "pending", Endpoint: "https://hooks.example/", ValidationURL: "https://yard.example/validate?token=7", ValidationEnds: new(noon.Add(10 * time.Minute))}
	answers["GET /api/v1/subscriptions"] = map[string]any{"subscriptions": []admin.Subscription{sub, pending}}
	_, api, h := newFixture(answers)
	for _, path := range []string{"topics", "topics/alarms", "hubs/sensors/subscriptions"} {
		page := get(h, base+path).Body.String()
		for _, says := range []string{`d="M213 24v-6m6 6v-6m6 6v-20"`, `d="M231 24v-13m6 13v-20"`, "2 of 5 failed", "54/s", "https://yard.example/validate?token=7", "until <time"} {
			testkit.That(t, strings.Contains(page, says), "%s does not say %s: %s", path, says, page)
		}
	}
	for _, call := range api.calls {
		testkit.That(t, !strings.HasPrefix(call, "GET /api/v1/subscriptions/"), "it asks %s", call)
	}
}

// G11, V4: one that delivers in order shows the keys that wait and no schedule; one that clients receive from what is
// locked.
func TestSubscriptionsThatAreNoWebhook(t *testing.T) {
	answers := fixed()
	sub := answers["GET /api/v1/subscriptions/{subscription}"].(admin.Subscription)
	stats := *sub.Stats
	stats.HeldKeys, stats.Held = 30, []admin.HeldKey{{Key: "/homes/7", Attempts: 3, Due: noon.Add(time.Minute), Behind: 12}}
	sub.OrderBy, sub.Stats = "subject", &stats
	answers["GET /api/v1/subscriptions/{subscription}"] = sub
	_, _, h := newFixture(answers)
	page := func() string { return get(h, base+"topics/alarms/subscriptions/company").Body.String() }
	for _, says := range []string{"Keys that wait", "/homes/7", ">12<", "30 keys wait"} {
		testkit.That(t, strings.Contains(page(), says), "an ordered one does not say %s", says)
	}
	testkit.That(t, !strings.Contains(page(), "Retry schedule"), "an ordered one has a schedule")
	sub.OrderBy, sub.Endpoint, sub.Pull = "", "", &admin.Pull{}
	stats.Locked, stats.LockEnds = 3, new(noon.Add(time.Minute))
	answers["GET /api/v1/subscriptions/{subscription}"] = sub
	for _, says := range []string{"In the hands of receivers", "3 events are", "No lock ends before"} {
		testkit.That(t, strings.Contains(page(), says), "one that is received from does not say %s", says)
	}
}
