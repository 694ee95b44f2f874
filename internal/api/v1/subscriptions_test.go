package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

const billingPath = "/api/v1/subscriptions/billing"

// G1, G2, G6, G8, G10: what is created is what is shown, and events go out at once.
func TestASubscriptionDelivers(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
		made := y.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","topic":"ORDERS","endpoint":"https://example.com/hook","types":["order.placed"],"filters":["data.n NumberGreaterThan 0"]}`)
		testkit.Equal(t, made.header.Get("Location"), billingPath+"?topic=orders", "it is at")
		y.publish("orders", "1", "2")
		if got := y.hook.deliveries(); len(got) != 2 || got[0].header.Get("aeg-subscription-name") != "BILLING" {
			t.Errorf("delivered were %+v", got)
		}
		got := y.show("billing", "")
		if got.State != "active" || got.Stats.Matched != 2 || got.Stats.Delivered != 2 || got.Stats.Requests != 2 || got.Stats.Endpoint.State != "healthy" {
			t.Errorf("shown is %+v, %+v", got, got.Stats)
		}
		if got.DeadLetters == nil || got.Retry.Attempts != 30 || got.Retry.TTL != "24h" || got.Schema != "eventgrid" || got.DeadLetter != "" {
			t.Errorf("shown is %+v", got)
		}
		want := filter.Config{EventTypes: []string{"order.placed"}, Advanced: []filter.Condition{{Operator: "NumberGreaterThan", Key: "data.n", Value: json.RawMessage("0")}}}
		var shown filter.Config
		if testkit.Must(t, json.Unmarshal(got.Filter, &shown)); !cmp.Equal(want, shown) {
			t.Errorf("its filter is %s", got.Filter)
		}
	})
}

// G4, G5: each request to an endpoint can be looked at, the newest first.
func TestAttemptsAreListed(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook","retrySchedule":"10s","maxEvents":10`)
		var list struct{ Attempts []admin.Attempt }
		if y.want(200, "GET", billingPath+"/attempts", nil).json(t, &list); list.Attempts == nil || len(list.Attempts) != 0 {
			t.Errorf("before the first: %+v", list)
		}
		y.hook.set(true, 503)
		y.publish("orders", "1")
		y.hook.set(true, 0)
		time.Sleep(time.Minute)
		y.want(200, "GET", billingPath+"/attempts", nil).json(t, &list)
		testkit.MustEqual(t, len(list.Attempts), 2, "listed are %+v", list)
		last, first := list.Attempts[0], list.Attempts[1]
		if first.Status != 503 || first.Outcome != "Busy" || first.Attempt != 1 || first.EventID != "1" || first.Events != 1 || first.Answer != "answer 503" || first.NextTry == nil {
			t.Errorf("the first is %+v", first)
		}
		if last.Status != 200 || last.Attempt != 2 || last.NextTry != nil || last.Took == "" || last.Time.Before(*first.NextTry) {
			t.Errorf("the last is %+v", last)
		}
	})
}

// G7: probation shows, and an operator ends it.
func TestProbationIsShownAndEnded(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		y.hook.set(true, 500)
		y.publish("orders", strings.Split("0123456789ab", "")...)
		got := y.show("billing", "").Stats.Endpoint
		if got.State != "probation" || got.Failures < 10 || got.Until == nil || got.Since == nil || got.Last == "" {
			t.Errorf("the endpoint is %+v", got)
		}
		y.hook.set(true, 0)
		y.want(204, "POST", billingPath+"/probe", nil)
		y.settle()
		y.publish("orders", "c")
		if got := y.show("billing", "").Stats.Endpoint; got.State != "healthy" || got.Until != nil {
			t.Errorf("then it is %+v", got)
		}
	})
}

// What was paused goes on with resume, and to resume what was not paused changes nothing.
func TestResumeUndoesPause(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		y.want(200, "PATCH", billingPath, `{"paused":true}`)
		testkit.Equal(t, y.show("billing", "").State, "paused", "after a pause it")
		for range 2 {
			y.want(204, "POST", billingPath+"/resume", nil)
			testkit.Equal(t, y.show("billing", "").State, "active", "resumed, it")
		}
	})
}

// G11: an endpoint that does not answer the question is pending, with the link that agrees for it.
func TestAPendingSubscriptionShowsItsLink(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hook.set(false, 0)
		made := y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		if made.State != "pending" || !strings.HasPrefix(made.ValidationURL, "http://yard/validate/"+made.ID+"/") || made.Why == "" {
			t.Fatalf("made is %+v", made)
		}
		if got := y.show("billing", ""); got.ValidationURL != made.ValidationURL || got.Stats != nil && got.Stats.Delivered != 0 {
			t.Errorf("shown is %+v", got)
		}
		y.want(200, "GET", billingPath+"/attempts", nil)
		y.publish("orders", "early")
		_, err := y.topics.Confirm(t.Context(), made.ID, made.ValidationURL[strings.LastIndexByte(made.ValidationURL, '/')+1:], 0)
		testkit.Must(t, err)
		if got := y.show("billing", ""); got.State != "active" || got.ValidationURL != "" {
			t.Errorf("then it is %+v", got)
		}
		y.settle()
		y.publish("orders", "late")
		if got := y.hook.deliveries(); len(got) != 1 || !strings.Contains(got[0].body, `"id":"late"`) {
			t.Errorf("it gets what is published from then on, not %+v", got)
		}
	})
}

// G11: one that refuses is not subscribed, and keeps what it had.
func TestAnEndpointThatRefuses(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		y.hook.set(false, 404)
		p := y.refused(422, "handshake-failed", "POST", "/api/v1/subscriptions", `{"name":"other","topic":"orders","endpoint":"https://example.com/other"}`)
		if !strings.Contains(p.Detail, "404") || !strings.Contains(p.Next, "skipValidation") {
			t.Errorf("it says %+v", p)
		}
		y.refused(404, "subscription-not-found", "GET", "/api/v1/subscriptions/other", nil)
		y.refused(422, "handshake-failed", "PATCH", billingPath, `{"endpoint":"https://example.com/other"}`)
		if got := y.show("billing", ""); got.Endpoint != "https://example.com/hook" || got.State != "active" {
			t.Errorf("it is now %+v", got)
		}
		y.want(200, "PATCH", billingPath, `{"endpoint":"https://example.com/other","skipValidation":true}`)
	})
}

// PATCH: nil leaves, empty takes away; what is in force is told back.
func TestSubscriptionsAreChangedInPart(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook","types":["a"],"filters":["data.n IsNotNull"],"ttl":"1h","attempts":3,
			"noRetry":[400],"retryFloors":{"503":"5s"},"headers":[{"name":"X-A","value":"a"}],"labels":["l"],"orderBy":"subject","deadLetter":"yard"`)
		before := y.show("billing", "")
		got := read[admin.Subscription](t, y.want(200, "PATCH", billingPath, `{}`))
		before.Stats, before.DeadLetters = nil, nil
		testkit.Diff(t, before, got) // nothing was asked for
		y.want(200, "PATCH", billingPath, `{"name":"BILLING","topic":"orders","attempts":4}`)
		got = admin.Subscription{}
		y.want(200, "PATCH", billingPath, `{"types":[],"filters":[],"noRetry":[],"retryFloors":{},"headers":[],"labels":[],"ttl":"","orderBy":"","deadLetter":""}`).json(t, &got)
		before.Filter, before.Headers, before.Labels, before.OrderBy, before.DeadLetter, before.Updated = nil, nil, nil, "", "", got.Updated
		before.Retry = admin.RetryPolicy{Attempts: 4, TTL: "24h", NoRetry: []int{}}
		testkit.Diff(t, before, got)
		y.want(200, "PATCH", billingPath, `{"paused":true}`).json(t, &got)
		testkit.Equal(t, got.State, "paused", "it")
	})
}

// Secrets are shown to those who ask for them, and stay when what is shown is written back.
func TestSecretsOfASubscription(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		const all = "QUERYSECRET HEADERSECRET OAUTHSECRET SASSECRET"
		made := y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook?code=QUERYSECRET","headers":[{"name":"X-Key","value":"HEADERSECRET","secret":true}],
			"oauth":{"tokenUrl":"https://login.example.com/","clientId":"me","secret":"OAUTHSECRET"},"deadLetter":"blob:https://account.example.com/dead?sig=SASSECRET","sign":"hmac","skipValidation":true`)
		key := made.Signing[0].Text
		if !strings.HasPrefix(key, "whsec_") {
			t.Errorf("the key that was made is %q", key)
		}
		absent := func(what string, got reply, secrets string) {
			for secret := range strings.FieldsSeq(secrets) {
				if strings.Contains(string(got.body), secret) {
					t.Errorf("%s shows %s", what, secret)
				}
			}
		}
		absent("the list", y.want(200, "GET", "/api/v1/subscriptions", nil), all+" "+key)
		absent("secrets=false", y.want(200, "GET", billingPath+"?secrets=false", nil), all+" "+key)
		absent("a change", y.want(200, "PATCH", billingPath, `{"attempts":3}`), all+" "+key)
		absent("rotation", y.want(200, "POST", billingPath+"/rotate-key", `{}`), all)
		whole := y.want(200, "GET", billingPath+"?secrets=true", nil)
		absent("secrets=true", whole, "OAUTHSECRET SASSECRET")
		for _, secret := range []string{"QUERYSECRET", "HEADERSECRET", key} {
			if !strings.Contains(string(whole.body), secret) {
				t.Errorf("secrets=true does not show %s", secret)
			}
		}
		shown := y.show("billing", "")
		y.want(200, "PATCH", billingPath, admin.SubscriptionRequest{
			Endpoint: &shown.Endpoint, Headers: shown.Headers, OAuth: shown.OAuth, DeadLetter: &shown.DeadLetter,
		})
		stored, err := y.topics.Find(topics.Source{}, "billing")
		testkit.Must(t, err)
		text, err := json.Marshal(stored)
		testkit.Must(t, err)
		for secret := range strings.FieldsSeq(all) {
			if !strings.Contains(string(text), secret) {
				t.Errorf("%s is lost", secret)
			}
		}
	})
}

// A key is made beside the present one, of its kind, and shown once.
func TestSigningKeysAreRotated(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		made := y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		if made.Signing != nil {
			t.Errorf("it signs with %+v", made.Signing)
		}
		rotated := func(body string) []admin.SigningKey {
			got := read[admin.Subscription](t, y.want(200, "POST", billingPath+"/rotate-key", body))
			return got.Signing
		}
		if keys := rotated(`{}`); len(keys) != 1 || keys[0].Algorithm != "hmac" || keys[0].Text == "" || keys[0].Expires != nil {
			t.Errorf("the first is %+v", keys)
		}
		keys := rotated(`{"algorithm":"ED25519","overlap":"7d"}`)
		if len(keys) != 2 || keys[1].Algorithm != "ed25519" || !strings.HasPrefix(keys[1].Text, "whpk_") || time.Until(*keys[0].Expires).Round(time.Hour) != 7*24*time.Hour {
			t.Errorf("then %+v", keys)
		}
		if keys := rotated(`{"overlap":"0s"}`); len(keys) != 1 || keys[0].Algorithm != "ed25519" {
			t.Errorf("of the kind of the newest, and alone: %+v", keys)
		}
		var got admin.Subscription
		if y.want(200, "PATCH", billingPath, `{"sign":"hmac"}`).json(t, &got); len(got.Signing) != 1 || !strings.HasPrefix(got.Signing[0].Text, "whsec_") {
			t.Errorf("a key made by a change is %+v", got.Signing)
		}
		y.publish("orders", "1")
		if d := y.hook.deliveries(); len(d) != 1 || d[0].header.Get("webhook-signature") == "" {
			t.Errorf("delivered was %+v", d)
		}
		for body, says := range map[string]string{`{"algorithm":"rsa"}`: "hmac or ed25519", `{"overlap":"long"}`: "overlap", `{"overlap":"-1h"}`: "overlap"} {
			got := y.do("POST", billingPath+"/rotate-key", body)
			if got.status != 400 || !strings.Contains(string(got.body), says) {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
	})
}

// The same name may be found under several sources; then it has to be said which is meant.
func TestNamesThatSeveralSourcesHave(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hub("shop/orders", 1)
		y.subscribe("orders", "billing", `"pull":{}`)
		if got := y.show("Billing", ""); got.Topic != "orders" {
			t.Errorf("shown is %+v", got)
		}
		y.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","sourceHub":"shop/orders","pull":{}}`)
		p := y.refused(409, "ambiguous-subscription", "GET", billingPath, nil)
		if !strings.Contains(p.Next, "topic=NAME or hub=NAME") {
			t.Errorf("it says %+v", p)
		}
		y.refused(409, "ambiguous-subscription", "DELETE", billingPath, nil)
		if got := y.show("billing", "?hub=shop%2Forders"); got.SourceHub != "shop/orders" || got.Topic != "" || got.Schema != "cloudevents" {
			t.Errorf("of the hub: %+v", got)
		}
		for query, want := range map[string]int{"": 2, "?topic=orders": 1, "?hub=shop%2Forders": 1, "?topic=yard-events": 0} {
			var list struct{ Subscriptions []admin.Subscription }
			if y.want(200, "GET", "/api/v1/subscriptions"+query, nil).json(t, &list); len(list.Subscriptions) != want || list.Subscriptions == nil {
				t.Errorf("%s lists %+v", query, list)
			}
		}
		y.refused(400, "bad-request", "GET", billingPath+"?hub=a&topic=b", nil)
		y.refused(404, "topic-not-found", "GET", billingPath+"?topic=nope", nil)
		y.refused(404, "not-found", "GET", billingPath+"?hub=nope", nil)
		y.want(204, "DELETE", billingPath+"?topic=orders", nil)
		if got := y.show("billing", ""); got.SourceHub != "shop/orders" {
			t.Errorf("left is %+v", got)
		}
	})
}

// Event Grid's own shape is taken as well.
func TestSubscriptionsInEventGridsShape(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		got := y.subscribe("orders", "billing", `"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://example.com/hook?x=1","maxEventsPerBatch":10}},
			"filter":{"includedEventTypes":["a"],"subjectBeginsWith":"/x","advancedFilters":[{"operatorType":"StringIn","key":"data.c","values":["r"]}]},
			"retryPolicy":{"maxDeliveryAttempts":4,"eventTimeToLiveInMinutes":60},"eventDeliverySchema":"CloudEventSchemaV1_0","labels":["l"]},"skipValidation":true`)
		if got.Endpoint != "https://example.com/hook?..." || got.MaxEvents != 10 || got.Retry.Attempts != 4 || got.Retry.TTL != "1h" || got.Schema != "cloudevents" || got.Labels[0] != "l" || !got.SkipValidation {
			t.Errorf("made is %+v", got)
		}
		y.want(200, "PATCH", billingPath, `{"properties":{"labels":["m"]}}`)
		if got := y.show("billing", ""); got.Labels[0] != "m" || got.MaxEvents != 10 {
			t.Errorf("changed is %+v", got)
		}
	})
}

// What cannot be made is refused, with what to write instead.
func TestSubscriptionsRefused(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.hub("shop", 1)
		y.subscribe("orders", "billing", `"pull":{}`)
		with := func(more string) string { return `{"name":"other","topic":"orders",` + more + `}` }
		for _, tt := range []struct {
			what         string
			status       int
			kind, method string
			body, says   string
		}{
			{"a name that is taken", 409, "subscription-exists", "POST", `{"name":"BILLING","topic":"orders","pull":{}}`, "choose another name"},
			{"a name that is none", 400, "invalid-definition", "POST", `{"name":"b","topic":"orders","pull":{}}`, "3 to 64"},
			{"no source", 400, "invalid-definition", "POST", `{"name":"other","pull":{}}`, "topic"},
			{"two sources", 400, "invalid-definition", "POST", `{"name":"other","topic":"orders","sourceHub":"shop","pull":{}}`, "topic"},
			{"a topic that is not there", 404, "topic-not-found", "POST", `{"name":"other","topic":"nope","pull":{}}`, "nope"},
			{"a hub that is not there", 404, "not-found", "POST", `{"name":"other","sourceHub":"nope","pull":{}}`, "nope"},
			{"no target", 400, "invalid-definition", "POST", `{"name":"other","topic":"orders"}`, "webhook, a hub, or pull"},
			{"two targets", 400, "invalid-definition", "POST", with(`"pull":{},"hub":"shop"`), "an endpoint, a hub, or pull"},
			{"a target hub that is not there", 400, "invalid-definition", "POST", with(`"hub":"nope"`), "nope"},
			{"events that would go round", 400, "invalid-definition", "POST", `{"name":"other","sourceHub":"shop","hub":"shop"}`, "round for ever"},
			{"an endpoint that is no URL", 400, "invalid-definition", "POST", with(`"endpoint":"example.com"`), "http:// or https://"},
			{"an endpoint on a private address", 400, "invalid-definition", "POST", with(`"endpoint":"http://10.1.2.3/"`), "grid.allow"},
			{"an endpoint on this machine", 400, "invalid-definition", "POST", with(`"endpoint":"http://localhost:1/"`), "grid.allow"},
			{"an endpoint that is a cloud's secrets", 400, "invalid-definition", "POST", with(`"endpoint":"http://169.254.169.254/"`), "grid.allow"},
			{"a misspelt operator", 400, "invalid-definition", "POST", with(`"pull":{},"filters":["data.n NumberGreaterThn 5"]`), "NumberGreaterThan"},
			{"a folder outside", 400, "invalid-definition", "POST", with(`"pull":{},"deadLetter":"folder:../x"`), "deadFolders"},
			{"the yard's own folder", 400, "invalid-definition", "POST", with(`"pull":{},"deadLetter":"folder:log"`), "folder:dead"},
			{"a place that is none", 400, "invalid-definition", "POST", with(`"pull":{},"deadLetter":"bin"`), "folder:DIR"},
			{"a hub for dead letters that is not there", 400, "invalid-definition", "POST", with(`"pull":{},"deadLetter":"hub:nope"`), "nope"},
			{"too many attempts", 400, "invalid-definition", "POST", with(`"endpoint":"https://x.example.com/","attempts":31`), "1 to 30"},
			{"too long a life", 400, "invalid-definition", "POST", with(`"endpoint":"https://x.example.com/","ttl":"25h"`), "24h"},
			{"too large a batch", 400, "invalid-definition", "POST", with(`"endpoint":"https://x.example.com/","maxEvents":5001`), "5000"},
			{"a header of the yard's", 400, "invalid-definition", "POST", with(`"endpoint":"https://x.example.com/","headers":[{"name":"aeg-x","value":"1"}]`), "choose another"},
			{"a misspelt field", 400, "bad-request", "POST", with(`"pull":{},"endpont":"x"`), "endpont"},
			{"a number for a text", 400, "bad-request", "POST", with(`"endpoint":5`), "endpoint"},
			{"another name", 400, "bad-request", "PATCH", `{"name":"other"}`, "create another"},
			{"another topic", 400, "bad-request", "PATCH", `{"topic":"other"}`, "create another"},
			{"a hub for a topic", 400, "bad-request", "PATCH", `{"sourceHub":"shop"}`, "create another"},
			{"a hidden query of nothing", 400, "invalid-definition", "PATCH", `{"endpoint":"https://x.example.com/?..."}`, "whole URL"},
		} {
			t.Log(tt.what)
			path := "/api/v1/subscriptions"
			if tt.method == "PATCH" {
				path = billingPath
			}
			p := y.refused(tt.status, tt.kind, tt.method, path, tt.body)
			if !strings.Contains(p.Detail+p.Next, tt.says) {
				t.Errorf("%s: it says %q, %q", tt.what, p.Detail, p.Next)
			}
		}
		for _, rest := range []string{"", "/attempts", "/dead", "/dead/1"} {
			y.refused(404, "subscription-not-found", "GET", "/api/v1/subscriptions/nope"+rest, nil)
		}
		for _, rest := range []string{"/resume", "/probe", "/rotate-key", "/redrive", "/purge"} {
			y.refused(404, "subscription-not-found", "POST", "/api/v1/subscriptions/nope"+rest, `{}`)
		}
	})
}

// What a row of the spec allows is what the yard allows.
func TestRangesOfSubscriptionsAreThoseOfTheSpec(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook"`)
		y.subscribe("orders", "puller", `"pull":{}`)
		for _, row := range spec.Subscription.Fields {
			if row.Max == 0 {
				continue
			}
			for n, status := range map[float64]int{row.Min: 200, row.Max: 200, row.Max + 1: 400, row.Min - 1: 400} {
				path, body := billingPath, fmt.Sprintf("{%q:%v}", row.Name, n)
				if name, of := strings.CutPrefix(row.Name, "pull."); of {
					path, body = "/api/v1/subscriptions/puller", fmt.Sprintf(`{"pull":{%q:%v}}`, name, n)
				}
				y.want(status, "PATCH", path, body)
			}
		}
	})
}
