package console

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// checkPages looks at pages on all screens, at once.
func checkPages(t *testing.T, y *yard, paths ...string) {
	t.Helper()
	axe := parts.Axe(t)
	t.Run("pages", func(t *testing.T) {
		for _, screen := range screens() {
			t.Run(screen.String(), func(t *testing.T) {
				t.Parallel()
				p := newPage(t, y.base, screen.width, screen.scheme)
				for _, path := range paths {
					p.open("/console/" + path)
					p.check(axe, path+"-"+screen.String())
				}
			})
		}
	})
}

// alarm publishes an event to topic shop, of which one subscription takes nothing and one takes no such
// thing, and waits until it is a dead letter of the first.
func (y *yard) alarm(t *testing.T, id string) {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such alarm", http.StatusBadRequest)
	}))
	t.Cleanup(endpoint.Close)
	topic := testkit.Value(y.client.CreateTopic(t.Context(), admin.TopicRequest{Name: "shop", Schema: "cloudevents"}))(t)
	for _, s := range []admin.SubscriptionRequest{{Name: "company", DeadLetter: new("yard")}, {Name: "fire", Types: []string{"alarm.smoke"}}} {
		s.Topic, s.Endpoint, s.SkipValidation = "shop", new(endpoint.URL), new(true)
		testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), s)))
	}
	client := testkit.Value(grid.NewClient(grid.Config{Endpoint: topic.Endpoint, Key: topic.Keys.Key1, Schema: grid.CloudEvents, Source: "/homes"}))(t)
	testkit.Must(t, client.Publish(t.Context(), grid.Event{ID: id, Type: "alarm.glass", Subject: "/homes/7", Data: []byte(`{"kind":"glass"}`)}))
	testkit.Eventually(t, "a dead letter", func() bool {
		page, err := y.client.DeadLetters(t.Context(), admin.SubscriptionRef{Name: "company", Topic: "shop"}, admin.DeadLetterChoice{}, 0, 1)
		return err == nil && len(page.Letters) == 1
	})
}

// V2: a stranger who has an event's id knows after two clicks why it was not delivered, and by a third
// of one who sees it among attempts or dead letters.
func TestWhyWasThisEventNotDelivered(t *testing.T) {
	y := newYard(t)
	y.alarm(t, "alarm-7")
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/")
	p.press(`.side a[href="/console/events"]`, "Why was this event not delivered?")
	p.run("write the id", chromedp.SendKeys("#id", "alarm-7", chromedp.ByQuery))
	p.press(`main form button`, "not delivered")
	for _, says := range []string{"It was not delivered to the one subscription that it matches.", "UndeliverableDueToClientError", "no such alarm", `is "alarm.glass"`} {
		p.await(says, contains(says))
	}
	p.open("/console/topics/shop/subscriptions/company")
	p.press(`#part-attempts a`, "It was not delivered")
	p.open("/console/topics/shop/subscriptions/company/dead/0")
	p.press(`main dd a`, "It was not delivered")
	checkPages(t, y, "events", "events?id=alarm-7&in=topics/shop", "events?id=nothing")
}

// V2: of an event that a function has put away a stranger sees, one click from what was put away, which call
// failed, and why.
func (y *stocked) callsWithAnEvent(t *testing.T) {
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/events?id=0/0&in=hubs/photos")
	for _, says := range []string{"Functions that it was for", "put away as poison after", "400"} {
		p.await(says, contains(says))
	}
	p.await("the call that failed", `[...document.querySelectorAll("#part-ways .verdicts tbody tr")].some(r => r.textContent.includes("attempt 1") && r.querySelector(".bad"))`)
	p.await("the call in the picture", `document.querySelectorAll("#part-picture circle.k-bad").length > 0`)
	p.press(`#part-ways a[href="/console/functions/picky/poison"]`, "Poison events of picky")
}
