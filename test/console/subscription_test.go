package console

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: a subscription that is called what is done to one has its pages, with its requests and its dead
// letters, and is paused and deleted by them like any other.
func TestASubscriptionCalledDelete(t *testing.T) {
	y := newYard(t)
	y.alarm(t, "alarm-7")
	testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{Name: "delete", Topic: "shop", Endpoint: new("http://127.0.0.1:1/"), SkipValidation: new(true)})))
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/topics/shop")
	p.press(`main a[href="/console/topics/shop/subscriptions/delete"]`, "Pause")
	p.press(`main form[action$="/pause"] button`, "Deliveries are paused.")
	p.press(`main a[href="/console/topics/shop/subscriptions/delete/delete"]`, "Type delete to confirm")
	p.fill(map[string]string{"name": "delete"})
	p.press(`button[value="act"]`, "Deleted.")
	p.open("/console/topics/shop/subscriptions/company")
	p.press(`.tabs a[href$="/attempts"]`, "no such alarm")
	p.press(`.tabs a[href$="/dead"]`, "UndeliverableDueToClientError")
	checkPages(t, y, "topics/shop/subscriptions/company/attempts", "topics/shop/subscriptions/company/dead", "topics/shop/subscriptions/company/dead/0")
}
