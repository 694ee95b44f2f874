package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1, V2: an event is published in the schema of its topic, and the form leads to its journey by its id, which is
// made where none is given.
func TestPublishing(t *testing.T) {
	all := url.Values{"step": {act}, "id": {"a 7"}, "type": {"alarm.glass"}, "subject": {"/homes/7"}, "source": {"/homes"}, "data": {` {"kind":"glass"} `}}
	journey := base + "events?id=a+7&in=topics%2Falarms&done=published"
	for name, tt := range map[string]struct {
		topic    admin.Topic
		body, to string
	}{
		"Event Grid": {admin.Topic{Schema: "eventgrid"},
			`[{"id":"a 7","subject":"/homes/7","eventType":"alarm.glass","eventTime":"2026-01-31T12:00:00Z","dataVersion":"1.0","data":{"kind":"glass"}}]`, journey},
		"a domain": {admin.Topic{Schema: "eventgrid", Domain: true},
			`[{"topic":"/homes","id":"a 7","subject":"/homes/7","eventType":"alarm.glass","eventTime":"2026-01-31T12:00:00Z","dataVersion":"1.0","data":{"kind":"glass"}}]`, journey},
		"CloudEvents": {admin.Topic{Schema: "cloudevents"},
			`{"specversion":"1.0","id":"a 7","source":"/homes","type":"alarm.glass","time":"2026-01-31T12:00:00Z","subject":"/homes/7","data":{"kind":"glass"}}`, journey},
		"a schema of its own": {admin.Topic{Schema: "custom"}, `{"kind":"glass"}`, base + "topics/alarms?done=published"},
	} {
		answers := fixed()
		tt.topic.Name = "alarms"
		answers["GET /api/v1/topics/{topic}"] = tt.topic
		_, api, h := newFixture(answers)
		testkit.Equal(t, post(h, base+"topics/alarms/publish", all).Header().Get("Location"), tt.to, name)
		testkit.Equal(t, api.body, tt.body, name)
	}
}

// V1: what is wrong with an event is said on the form, and nothing is published; data that is no JSON is text.
func TestWhatIsNotPublished(t *testing.T) {
	answers := fixed()
	_, api, h := newFixture(answers)
	publish := func(data string) string {
		api.body = ""
		w := post(h, base+"topics/alarms/publish", url.Values{"step": {act}, "type": {"alarm.glass"}, "data": {data}})
		return w.Header().Get("Location") + w.Body.String()
	}
	said := publish(`{"kind": "glass"`)
	testkit.That(t, strings.Contains(said, "looks like JSON and is none") && strings.Contains(said, "&#34;glass&#34;") && api.body == "", "half an object is answered with %s, and published is %q", said, api.body)
	testkit.That(t, strings.HasPrefix(publish("glass"), base+"events?id=") && strings.HasSuffix(api.body, `"data":"glass"}]`), "of a text is published %q", api.body)
	answers["GET /api/v1/topics/{topic}"] = admin.Topic{Name: "alarms", Schema: "eventgrid", Domain: true}
	testkit.That(t, strings.Contains(publish(""), "name one of its topics") && api.body == "", "to a domain is published %q", api.body)
	answers["GET /api/v1/topics/{topic}"] = admin.Topic{Name: yardEvents, Schema: "cloudevents"}
	testkit.That(t, !strings.Contains(get(h, base+"topics/"+yardEvents).Body.String(), "/publish"), "it is offered where only the yard publishes")
	testkit.Equal(t, get(h, base+"topics/alarms/publish").Code, http.StatusOK)
}

// V1: an event is sent to a hub as it is, or as a CloudEvent with what was written as its data; one without a type is
// refused on the form.
func TestSendingACloudEvent(t *testing.T) {
	_, api, h := newFixture(fixed())
	form := url.Values{"step": {act}, "body": {`{"kind":"glass"}`}, "key": {"h-7"}, "type": {"application/json"}, "form": {cloudForm}, "ctype": {"alarm.glass"}, "source": {"/homes"}}
	testkit.Equal(t, post(h, base+"hubs/sensors/send", form).Code, http.StatusSeeOther)
	sent := strings.ReplaceAll(api.body, `\"`, `"`)
	for _, has := range []string{`"specversion":"1.0"`, `"type":"alarm.glass"`, `"source":"/homes"`, `"data":{"kind":"glass"}`, "application/cloudevents+json"} {
		testkit.That(t, strings.Contains(sent, has), "what is sent has no %s: %s", has, sent)
	}
	api.body = ""
	form.Set("ctype", " ")
	w := post(h, base+"hubs/sensors/send", form)
	testkit.That(t, w.Code == http.StatusUnprocessableEntity && strings.Contains(w.Body.String(), "has a type and a source") && api.body == "", "it is answered with %d, and sent is %q", w.Code, api.body)
	form.Set("form", "")
	testkit.Equal(t, post(h, base+"hubs/sensors/send", form).Code, http.StatusSeeOther)
	testkit.That(t, !strings.Contains(api.body, "specversion"), "a plain event is sent as %s", api.body)
}

// V1: an event of a hub is also shown as subscriptions see it.
func TestAnEventAsACloudEvent(t *testing.T) {
	answers := fixed()
	answers["GET /api/v1/hubs/{hub}/events"] = []json.RawMessage{json.RawMessage(`{"partition":"0","sequence":41,"enqueued":"2026-01-31T11:59:00Z","cloudEvent":{"specversion":"1.0","id":"home-yard/sensors/0/41"}}`)}
	_, _, h := newFixture(answers)
	page := get(h, base+"hubs/sensors/partitions/0/events/41?as=cloudevent").Body.String()
	for _, says := range []string{"home-yard/sensors/0/41", "specversion", `as=cloudevent" aria-current="true">CloudEvent`} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %q", says)
	}
}
