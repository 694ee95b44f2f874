package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// filled is what each form is sent with, besides the names of what is deleted.
var filled = map[string]url.Values{
	createHub.path:           {"name": {"made"}, "partitions": {"2"}},
	changeHub.path:           {"age": {"48h"}},
	sendEvent.path:           {"body": {"hello"}},
	createGroup.path:         {"name": {"made"}},
	moveCheckpoints.path:     {"to": {"earliest"}},
	createTopic.path:         {"name": {"made"}},
	regenerateTopic.path:     {"key": {"key1"}},
	publishEvent.path:        {"type": {"alarm.glass"}, "data": {`{"kind":"glass"}`}},
	createSubscription.path:  {"name": {"made"}, "source": {"topics/alarms"}, "endpoint": {"https://hooks.example/"}},
	changeTopic.path:         {"events": {"100"}},
	changeFunction.path:      {"batch": {"50"}},
	testNotice.path:          {"target": {"mailto:ops@example.com"}},
	explainSubscription.path: {"event": {`{"id":"1"}`}},
	changeSubscription.path:  {"attempts": {"3"}},
	createFunction.path:      {"name": {"made"}, "hub": {"sensors"}, "endpoint": {"http://127.0.0.1:1/"}},
	createPolicy.path:        {"name": {"made"}, "rights": {"Send,Listen"}},
	changePolicy.path:        {"events": {"100"}},
	regeneratePolicy.path:    {"key": {"primary"}},
	deleteHub.path:           {"name": {"sensors"}}, deleteGroup.path: {"name": {"aggregator"}}, deleteTopic.path: {"name": {"alarms"}},
	deleteSubscription.path: {"name": {"company"}}, deleteFunction.path: {"name": {"score"}}, deletePolicy.path: {"name": {"gateway"}},
}

// V1: what a form does is a call of the API that it names, and no other; and the API has that call.
func TestAFormIsACallOfTheAPI(t *testing.T) {
	table := append(apiTable(t), publishCall) // the one of Event Grid's API
	for _, a := range allActions() {
		t.Run(a.path, func(t *testing.T) {
			for _, call := range a.calls {
				testkit.That(t, slices.Contains(table, call), "the API has no %s", call)
			}
			_, api, h := newFixture(fixed())
			form := url.Values{"step": {act}}
			for name, value := range filled[a.path] {
				form[name] = value
			}
			w := post(h, names.Replace(a.path), form)
			testkit.That(t, w.Code == http.StatusSeeOther || w.Code == http.StatusOK, "it is answered with %d: %s", w.Code, w.Body)
			made := 0
			for _, call := range api.calls {
				if slices.ContainsFunc(a.calls, func(named string) bool { return pathLike(named).MatchString(call) }) {
					made++
				} else if !strings.HasPrefix(call, "GET ") {
					t.Errorf("it calls %s, and does not say so", call)
				}
			}
			testkit.That(t, made > 0, "it calls only %q", api.calls)
		})
	}
}

// apiTable are the calls of the API, as its description has them.
func apiTable(t *testing.T) (calls []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "v1", "openapi.json"))
	testkit.Must(t, err)
	var description struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	testkit.Must(t, json.Unmarshal(text, &description))
	for path, methods := range description.Paths {
		for method := range methods {
			calls = append(calls, strings.ToUpper(method)+" "+path)
		}
	}
	return calls
}

// V1: what cannot be undone is not done by half a name, and what has a dry run is not done before it.
func TestNothingFrighteningIsOneClickAway(t *testing.T) {
	for _, a := range allActions() {
		wantsName := strings.HasSuffix(a.path, "/delete")
		again := a == &sendAgain || a == &publishAgain
		wantsLook := a == &moveCheckpoints || a == &redriveDead || a == &purgeDead || again
		if !wantsName && !wantsLook {
			continue
		}
		t.Run(a.path, func(t *testing.T) {
			_, api, h := newFixture(fixed())
			form, status := url.Values{"step": {look}, "to": {"earliest"}}, http.StatusOK
			if wantsName {
				form, status = url.Values{"step": {act}, "name": {"another"}}, http.StatusUnprocessableEntity
			}
			w := post(h, names.Replace(a.path), form)
			testkit.Equal(t, w.Code, status)
			for _, call := range api.calls {
				if wantsName || a == &purgeDead || again {
					testkit.That(t, strings.HasPrefix(call, "GET "), "it calls %s", call)
				}
			}
			if wantsLook {
				testkit.That(t, strings.Contains(w.Body.String(), "would be"), "it does not say what it would do: %s", w.Body)
			}
		})
	}
}

// V1: what is altered in a form is changed and nothing else: what was left as it was is not sent, what chooses events
// can be emptied, and a hub can be subscribed to as a topic can.
func TestFormsSendWhatWasAltered(t *testing.T) {
	_, api, h := newFixture(fixed())
	for _, tt := range []struct {
		path string
		form url.Values
		sent string
	}{
		{"functions/score/edit", url.Values{"endpoint": {"http://127.0.0.1:9400/score"}, "batch": {"50"}, "retries": {"forever"}, "exponential": {"yes"}, "timeout": {"30s"}}, `{"batch":50,"retries":-1,"exponential":true}`},
		{"functions/score/edit", url.Values{"notify": {""}, "probe": {"5m"}, "maxWait": {""}}, `{"probe":"5m","notify":[]}`},
		{"topics/alarms/subscriptions/company/edit", url.Values{"endpoint": {"https://hooks.example/alerts?..."}, "types": {"alarm.co"}, "ttl": {"24h0m0s"}, "attempts": {"3"}}, `{"attempts":3}`},
		{"topics/alarms/subscriptions/company/edit", url.Values{"types": {""}, "filters": {"data.kind StringIn glass\r\n\r\n{\"operatorType\":\"IsNotNull\",\"key\":\"data.a\"}"}, "begins": {"/homes/"}}, `{"types":[],"subjectBeginsWith":"/homes/","filters":["data.kind StringIn glass",{"operatorType":"IsNotNull","key":"data.a"}]}`},
		{"new/subscription", url.Values{"name": {"made"}, "source": {"hubs/sensors"}, "endpoint": {"https://hooks.example/"}, "types": {""}}, `{"name":"made","sourceHub":"sensors","endpoint":"https://hooks.example/"}`},
		{"new/subscription", url.Values{"name": {"made"}, "source": {"topics/alarms"}, "pull": {"yes"}}, `{"name":"made","topic":"alarms","pull":{}}`},
		{"topics/alarms/settings", url.Values{"events": {"100"}, "keys": {"refused"}}, `{"disableKeys":true,"quota":{"events":100}}`},
	} {
		w := post(h, base+tt.path, tt.form)
		testkit.Equal(t, w.Code, http.StatusSeeOther, tt.path)
		testkit.Equal(t, strings.TrimSpace(api.body), tt.sent, tt.path)
	}
	w := post(h, base+"functions/score/edit", url.Values{"batch": {"many"}})
	testkit.Equal(t, w.Code, http.StatusUnprocessableEntity)
	testkit.That(t, strings.Contains(w.Body.String(), "is not a whole number: see Most events of a call") && strings.Contains(w.Body.String(), `value="many"`), "the form does not say which field is wrong: %s", w.Body)
}

// V4: before dead letters are redriven it is said which of them would die again, and that an endpoint on probation has
// them wait.
func TestRedrivingSaysWhatWouldDieAgain(t *testing.T) {
	answers := fixed()
	letters := []admin.DeadLetter{{Number: 1, Reason: refusedForWhatItIs, Status: 400}, {Number: 2, Reason: refusedForWhatItIs, Status: 413}, {Number: 3, Reason: refusedForWhatItIs, Status: 400}, {Number: 4, Reason: "MaxDeliveryAttemptsExceeded", Status: 503}}
	answers["GET /api/v1/subscriptions/{subscription}/dead"] = admin.DeadLetterPage{Letters: letters, Total: 4}
	_, _, h := newFixture(answers)
	path := base + "topics/alarms/subscriptions/company/redrive"
	page := post(h, path, url.Values{"step": {look}}).Body.String()
	for _, says := range []string{"2 were refused with 400, and would die again", "1 was refused with 413", "on probation: they wait"} {
		testkit.That(t, strings.Contains(page, says), "it does not say %q: %s", says, page)
	}
	page = post(h, path, url.Values{"step": {look}, "number": {"4"}}).Body.String()
	testkit.That(t, !strings.Contains(page, "refused with"), "of one that ran out of attempts it says that it would die again: %s", page)
}

// V2: an event that is tried against a filter is told by which condition it does not pass, on the form that has it.
func TestTryingAnEvent(t *testing.T) {
	_, api, h := newFixture(fixed())
	path := base + "topics/alarms/subscriptions/company/explain"
	testkit.That(t, strings.Contains(get(h, path).Body.String(), "alarm.glass"), "the form does not begin with the newest event of the topic")
	w := post(h, path, url.Values{"step": {look}, "event": {`{"id":"7"}`}})
	testkit.Equal(t, w.Code, http.StatusOK)
	for _, says := range []string{"It does not match: the type is alarm.glass", `class="test fail"`, "does not pass", "{&#34;id&#34;:&#34;7&#34;}"} {
		testkit.That(t, strings.Contains(w.Body.String(), says), "the form does not say %s: %s", says, w.Body)
	}
	testkit.Equal(t, strings.TrimSpace(api.body), `{"id":"7"}`)
	testkit.Equal(t, post(h, path, url.Values{"event": {"{"}}).Code, http.StatusUnprocessableEntity, "what is not JSON")
}

// V3: keys are on no page; they are shown by a form, on an answer that is neither kept nor compressed.
func TestKeysAreShownByFormsAlone(t *testing.T) {
	_, _, h := newFixture(fixed())
	eachPage(t, func(t *testing.T, path string) {
		body := get(h, path).Body.String()
		for _, key := range []string{"first-key", "second-key", ";first", ">one<", ">two<"} {
			testkit.That(t, !strings.Contains(body, key), "the page has %s", key)
		}
	})
	w := post(h, base+"policies/gateway/reveal", url.Values{})
	testkit.That(t, strings.Contains(w.Body.String(), "first-key") && strings.Contains(w.Body.String(), "data-secret"), "the form shows no key")
	testkit.Equal(t, w.Header().Get("Cache-Control"), "no-store")
	testkit.Equal(t, w.Header().Get("Content-Encoding"), "")
}

// V2: an event is sent again as it is, with all that it has, to a hub or to a topic in its schema; what a topic
// refuses is said in its words.
func TestSendingAgain(t *testing.T) {
	_, api, h := newFixture(fixed())
	w := post(h, hubAgainPath("sensors", "0", 41), url.Values{"step": {act}})
	testkit.Equal(t, w.Header().Get("Location"), base+"hubs/sensors/partitions/0/events/42?done=again")
	testkit.That(t, strings.Contains(api.body, `"events":[`+string(fixedEvents()[0])+`]`), "it sends %s", api.body)
	testkit.That(t, strings.Contains(get(h, base+"hubs/sensors/partitions/0/events/41").Body.String(), hubAgainPath("sensors", "0", 41)), "the page of the event does not offer it")

	journey := get(h, base+"events?id=7c1d-e0&in=topics/alarms").Body.String()
	testkit.That(t, strings.Contains(journey, topicAgainPath("alarms", 88214)), "the journey does not offer it")
	w = post(h, topicAgainPath("alarms", 41), url.Values{"step": {act}})
	testkit.Equal(t, w.Header().Get("Location"), base+"topics/alarms?done=again")
	testkit.That(t, strings.HasPrefix(api.body, `{"id":"7c1d-e0","eventType":"alarm.glass"`), "it publishes %s", api.body)
	testkit.Equal(t, topicAgainPath(yardEvents, 1), "", "where only the yard publishes")
	testkit.Equal(t, post(h, topicAgainPath("alarms", 40), url.Values{"step": {act}}).Code, http.StatusNotFound, "an event that is not there")

	for schema, want := range map[string]string{"eventgrid": `{"id":"1","data":{"a":1}}`, "cloudevents": `{"id":"1","data":{"a":1}}`, "custom": `{"a":1}`} {
		_, body := publication(schema, json.RawMessage(`{"id":"1","data":{"a":1}}`))
		testkit.Equal(t, string(body), want, schema)
	}
}

// V4: how long a request took is short, however long it took.
func TestHowLongARequestTook(t *testing.T) {
	for text, shown := range map[string]string{"212.34ms": "212 ms", "1.23456s": "1.2 s", "840µs": "0.8 ms", "3.1ms": "3.1 ms", "1m12.5s": "1 min 12 s", "soon": "soon"} {
		testkit.Equal(t, took(text), shown)
	}
}

// V4: things are counted as people count them, whatever type their number has.
func TestOneOfAThing(t *testing.T) {
	for shown, n := range map[string]any{"1 event": int64(1), "0 events": 0, "1,024 events": 1024, "2 events": new(int64(2)), "– events": (*int64)(nil)} {
		testkit.Equal(t, plural(n, "event", "events"), shown)
	}
	again, over := int64(1), int64(0)
	testkit.Equal(t, foresee([]admin.Moved{{From: &admin.Checkpoint{Sequence: &again}, To: admin.Checkpoint{Sequence: &over}}}, 0).Text, "1 event would be read again.")
	again = 84_000
	testkit.Equal(t, foresee([]admin.Moved{{From: &admin.Checkpoint{Sequence: &again}, To: admin.Checkpoint{Sequence: &over}}}, 1400).More,
		"At 1,400/s, the fastest that the group has read lately, that takes 1 min 0 s. Handlers see events a second time. Nothing is removed.")
}

// G2, V1: what a subscription's form has filled can be emptied, but for its endpoint.
func TestTextsOfASubscriptionCanBeEmptied(t *testing.T) {
	answers := fixed()
	sub := answers["GET /api/v1/subscriptions/{subscription}"].(admin.Subscription)
	sub.OrderBy, sub.DeadLetter = "subject", "yard"
	answers["GET /api/v1/subscriptions/{subscription}"] = sub
	_, api, h := newFixture(answers)
	w := post(h, base+"topics/alarms/subscriptions/company/edit", url.Values{"endpoint": {""}, "ttl": {""}, "orderBy": {""}, "deadLetter": {""}, "types": {"alarm.co"}})
	testkit.Equal(t, w.Code, http.StatusSeeOther)
	testkit.Equal(t, api.body, `{"ttl":"","deadLetter":"","orderBy":""}`)
}

// V1: what few want of a form is folded away, and is sent where it is filled in.
func TestWhatIsFoldedAwayIsSent(t *testing.T) {
	for path, tt := range map[string]struct {
		form url.Values
		sent string
	}{
		"new/function": {url.Values{"name": {"made"}, "hub": {"sensors"}, "endpoint": {"http://127.0.0.1:1/"}, "group": {"night"}, "start": {"latest"}, "format": {"eventhubs"}, "headers": {"Authorization: Bearer x:y\r\nX-Of: yard\r\n"}, "target": {"100"}},
			`{"name":"made","hub":"sensors","group":"night","endpoint":"http://127.0.0.1:1/","format":"eventhubs","headers":{"Authorization":"Bearer x:y","X-Of":"yard"},"start":"latest","target":100}`},
		"new/topic":         {url.Values{"name": {"made"}, "schema": {"custom"}, "mapping": {`{"id":{"sourceField":"key"}}`}}, `{"name":"made","schema":"custom","mapping":{"id":{"sourceField":"key"}}}`},
		"hubs/sensors/send": {url.Values{"body": {"one"}, "properties": {"kind: night"}, "id": {"m-1"}, "partition": {"2"}}, `{"events":[{"body":"one","messageId":"m-1","properties":{"kind":"night"}}],"partition":"2"}`},
	} {
		t.Run(path, func(t *testing.T) {
			_, api, h := newFixture(fixed())
			page := get(h, base+path).Body.String()
			testkit.That(t, strings.Contains(page, `<details id="more"><summary>More settings</summary>`), "nothing is folded away")
			post(h, base+path, tt.form)
			testkit.Equal(t, api.body, tt.sent)
		})
	}
	_, api, h := newFixture(fixed())
	w := post(h, base+"new/function", url.Values{"name": {"made"}, "hub": {"sensors"}, "headers": {"nonsense"}})
	testkit.Equal(t, w.Code, http.StatusUnprocessableEntity)
	testkit.That(t, api.body == "" && strings.Contains(w.Body.String(), "Nothing was done"), "it sends %q", api.body)
}
