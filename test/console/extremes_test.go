package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/servertest"
)

// The longest names that there may be.
var (
	longHub          = "tenant/" + strings.Repeat("sensors.of-the_house-", 12)[:248] + "9"
	longGroup        = strings.Repeat("g", 256)
	longTopic        = strings.Repeat("t", 50)
	longSubscription = strings.Repeat("s", 64)
	longFunction     = strings.Repeat("f", 100)
)

// strange are bodies as nobody expects them.
var strange = []struct{ name, body string }{
	{"binary", "\x00\x01\xfe\xff\x7f\x1b[31m" + strings.Repeat("\xde\xad\xbe\xef", 5000)},
	{"deep", strings.Repeat(`{"a":[`, 10_000) + strings.Repeat(`]}`, 10_000)},
	{"malformed", `{"total": 42, "open": [1, 2`},
	{"a MiB", `{"text":"` + strings.Repeat("a word and another ", 55_000) + `"}`},
	{"without a break", strings.Repeat("x", 100_000)},
	{"right to left", `{"שם":"דלת הכניסה נפתחה","الاسم":"فُتح الباب الأمامي"}` + "\u202e and turned round"},
	{"emoji", `{"family":"👩‍👩‍👧‍👦","flag":"🇩🇪","skin":"👋🏽","marks":"` + strings.Repeat("h\u0335\u0341\u0321", 200) + `"}`},
	{"hostile", `</pre><script>document.title = "taken"</script><img src=x onerror=alert(1)>`},
	{"empty", ""},
}

// V4: hubs of 1,024 partitions and 10,000 in all, the longest names and the strangest bodies are shown whole,
// and nothing has to be scrolled sideways.
func TestExtremes(t *testing.T) {
	long(t)
	y := newYard(t)
	y.furnish(t)
	y.Hub(t, longHub, 1024, longGroup)
	for i := range 8 {
		y.Hub(t, fmt.Sprint("wide-", i), 1024)
	}
	y.Hub(t, "wide-8", 10_000-9*1024-4)
	y.nameAtLength(t)
	hub := "hubs/" + url.PathEscape(longHub)
	paths := []string{"", "hubs", "activity", "find?q=a", "access", "topics", "functions",
		hub, hub + "/events", hub + "/groups", hub + "/groups/" + longGroup, hub + "/groups/" + longGroup + "/move", hub + "/settings", hub + "/access", hub + "/send", hub + "/delete", hub + "?page=10",
		"topics/" + longTopic, "topics/" + longTopic + "/subscriptions/" + longSubscription, "topics/" + longTopic + "/subscriptions/" + longSubscription + "/edit", "functions/" + longFunction}
	y.sendStrange(t)
	for i := range strange {
		path := fmt.Sprintf("%s/partitions/0/events/%d", hub, i)
		paths = append(paths, path, path+"?as=json&all=1", path+"?as=text&all=1", path+"?as=hex")
	}
	checkPages(t, y, paths...)
}

// nameAtLength makes one of everything with the longest name.
func (y *yard) nameAtLength(t *testing.T) {
	t.Helper()
	endpoint := "http://127.0.0.1:1/" + strings.Repeat("hooks/", 200)
	testkit.Must(t, testkit.Err(y.client.CreateTopic(t.Context(), admin.TopicRequest{Name: longTopic, Schema: "cloudevents"})))
	testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{
		Name: longSubscription, Topic: longTopic, Endpoint: &endpoint, SkipValidation: new(true), Description: new("מי שפותח את הדלת 🚪 " + strings.Repeat("d", 200)),
	})))
	testkit.Must(t, testkit.Err(y.client.CreateFunction(t.Context(), admin.FunctionRequest{Name: longFunction, Hub: longHub, Endpoint: &endpoint})))
}

// sendStrange stores all strange bodies, with properties as strange.
func (y *yard) sendStrange(t *testing.T) {
	t.Helper()
	client := y.Dial(t).Hub(longHub)
	for _, s := range strange {
		testkit.Must(t, client.SendTo(t.Context(), "0", event.Event{
			Body: []byte(s.body), Subject: s.name, MessageID: "مرحبا 🚪", Properties: map[string]any{"שם 👋🏽": strings.Repeat("property", 100)},
		}))
	}
}

// V4: a yard with nothing in it says what to do first.
func TestAnEmptyYard(t *testing.T) {
	long(t)
	y := &yard{Yard: servertest.Start(t, servertest.Listeners)}
	y.base = y.Addresses()["http"]
	checkPages(t, y, "", "hubs", "topics", "functions", "activity", "events", "find?q=a", "access", "storage", "more", "docs", "new/hub", "new/topic", "new/subscription", "new/function", "new/policy")
}
