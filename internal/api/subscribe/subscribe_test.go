package subscribe

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// everything has each field of a request but those that are another kind of target, a key to be
// made, or Event Grid's shape.
const everything = `{"name":"billing","topic":"orders","sourceHub":"h","domainTopic":"dom","endpoint":"https://example.com/new",
	"types":["a","b"],"subjectBeginsWith":"/n","subjectEndsWith":".n","subjectCaseSensitive":false,
	"filters":["data.k NumberGreaterThan 5",{"operatorType":"StringIn","key":"data.c","values":["x","y"]}],"arrays":false,
	"schema":"EventGridSchema","binary":false,"attempts":3,"ttl":"1d","retrySchedule":"1s,2s,5s","retryFloors":{"503":"5s","other":"1s"},
	"noRetry":[400,413],"maxRetryAfter":"-1s","maxEvents":100,"preferredKib":64,"deadLetter":"hub:failures","deadLetterKey":"k",
	"expires":"2030-01-31T18:00:00Z","headers":[{"name":"X-Env","value":"prod"},{"name":"X-Region","field":"data.region"},{"name":"x-secret","secret":true}],
	"signingKeys":["` + hmacKey + `"],"ca":"NEWCA","skipVerify":false,"cert":"NEWCERT","key":"NEWKEY",
	"oauth":{"tokenUrl":"https://t","clientId":"c","secret":"s","scope":"sc","audience":"au"},"minTls":"1.2",
	"timeout":"500ms","concurrency":8,"rate":1.5,"orderBy":"data.id","fromStart":false,"skipValidation":false,"disableOnGone":false,"paused":false,
	"description":"what for","labels":["l"]}`

// G2, G6, G9, G10, G13: what was asked for is what is stored, whatever was there before.
func TestEveryFieldOfARequestIsRead(t *testing.T) {
	r := request(t, everything)
	for i, fields := 0, reflect.ValueOf(r); i < fields.NumField(); i++ {
		switch name := fields.Type().Field(i).Name; name {
		case "Hub", "Pull", "Sign", "Properties": // which have tests of their own
		default:
			if fields.Field(i).IsZero() {
				t.Errorf("this test knows nothing of %s", name)
			}
		}
	}
	want := topics.Settings{
		Webhook: &egress.Endpoint{
			URL: "https://example.com/new", CA: "NEWCA", Cert: "NEWCERT", Key: "NEWKEY", MinTLS: "1.2",
			OAuth: &egress.OAuth{TokenURL: "https://t", ClientID: "c", Secret: "s", Scope: "sc", Audience: "au"},
		},
		Filter: filter.Config{
			EventTypes: []string{"a", "b"}, SubjectBeginsWith: "/n", SubjectEndsWith: ".n", Advanced: []filter.Condition{
				{Operator: "NumberGreaterThan", Key: "data.k", Value: json.RawMessage(`5`)},
				{Operator: "StringIn", Key: "data.c", Values: json.RawMessage(`["x","y"]`)},
			},
		},
		Output: schema.EventGrid,
		Retry: retry.Policy{
			MaxAttempts: 3, TimeToLive: 24 * time.Hour, Schedule: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second},
			Floors: map[int]time.Duration{503: 5 * time.Second, 0: time.Second}, NoRetry: []int{400, 413}, MaxRetryAfter: -time.Second,
		},
		MaxEvents: 100, PreferredKiB: 64, DeadLetter: topics.Target{Kind: "hub", Where: "failures", Key: "k"},
		Expires: time.Date(2030, 1, 31, 18, 0, 0, 0, time.UTC),
		Headers: []topics.Header{{Name: "X-Env", Value: "prod"}, {Name: "X-Region", Field: "data.region"}, {Name: "x-secret", Value: "HEADERSECRET", Secret: true}},
		Keys:    []signature.Key{{Text: hmacKey}},
		Timeout: 500 * time.Millisecond, Concurrency: 8, Rate: 1.5, OrderBy: "data.id", Description: "what for", Labels: []string{"l"},
	}
	testkit.Diff(t, want, applied(t, everything, full()))
}

// A request that says nothing changes nothing, and null says nothing.
func TestWhatIsLeftOutStays(t *testing.T) {
	for _, text := range []string{`{}`, `{"name":"other","topic":"other"}`, `{"types":null,"filters":null,"ttl":null,"endpoint":null,"noRetry":null,"headers":null,"properties":{}}`} {
		if diff := cmp.Diff(full(), applied(t, text, full())); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// Empty takes away: then what the yard does by itself is in force again.
func TestEmptyTakesAway(t *testing.T) {
	emptied := applied(t, `{"types":[],"subjectBeginsWith":"","subjectEndsWith":"","subjectCaseSensitive":false,"filters":[],"arrays":false,"schema":"",
		"binary":false,"ttl":"","retrySchedule":"","retryFloors":{},"maxRetryAfter":"","deadLetter":"",
		"expires":"","headers":[],"signingKeys":[],"ca":"","skipVerify":false,"cert":"","key":"","oauth":{},"minTls":"","timeout":"",
		"rate":0,"orderBy":"","fromStart":false,"skipValidation":false,"disableOnGone":false,"paused":false,"description":"","labels":[]}`, full())
	got, err := json.Marshal(emptied)
	if want := `{"webhook":{"url":"https://example.com/hook?code=QUERYSECRET"},"retry":{"maxAttempts":7,"noRetry":[418]},"maxEvents":9,"preferredKib":10,"concurrency":3}`; err != nil || string(got) != want {
		t.Errorf("left is %s, %v", got, err)
	}
	// A number is not taken away: its default is written out.
	for _, text := range []string{`{"attempts":0}`, `{"maxEvents":0}`, `{"preferredKib":0}`, `{"concurrency":0}`, `{"pull":{"maxDeliveries":0}}`} {
		s := full()
		testkit.ErrorIs(t, Apply(request(t, text), &s), topics.ErrInvalid, "%s", text)
	}
	// Of statuses that are given up, none is something else than the usual ones.
	if s := applied(t, `{"noRetry":[]}`, full()); s.Retry.NoRetry == nil || len(s.Retry.NoRetry) != 0 {
		t.Errorf("given up are %#v", s.Retry.NoRetry)
	}
	for _, text := range []string{`{"deadLetter":"none"}`, `{"sign":"none"}`, `{"sign":""}`} {
		s := applied(t, text, full())
		if s.DeadLetter.Kind != "" && s.Keys != nil {
			t.Errorf("%s leaves %+v and %d keys", text, s.DeadLetter, len(s.Keys))
		}
	}
}

// A subscription has one target, and another takes its place, with what only the old one had.
func TestANewTargetReplacesTheOld(t *testing.T) {
	hub := applied(t, `{"hub":"archive","headers":[]}`, full())
	if hub.Hub != "archive" || hub.Webhook != nil || hub.Keys != nil {
		t.Errorf("got %+v", hub)
	}
	pull := applied(t, `{"pull":{"lock":"2m","maxDeliveries":4}}`, hub)
	testkit.Equal(t, pull.Hub, "", "got %+v", pull)
	testkit.Check(t, pull.Check(), "what is only for what is pushed is left")
	locked := applied(t, `{"pull":{"lock":"3m"}}`, pull)
	testkit.Equal(t, locked.Labels[0], "old", "the labels are still there")
	testkit.Equal(t, *pull.Pull, (topics.Pull{Lock: 2 * time.Minute, MaxDeliveries: 4}), "got %+v", pull)
	if again := applied(t, `{"endpoint":"https://x/"}`, pull); again.Pull != nil || again.Webhook.URL != "https://x/" {
		t.Errorf("got %+v", again)
	}
}

// The certificates and tokens of a webhook stay when its URL changes, at the same server.
func TestAnotherURLKeepsTheTrust(t *testing.T) {
	got := applied(t, `{"endpoint":"https://example.com/v2"}`, full())
	want := full()
	want.Webhook.URL = "https://example.com/v2"
	testkit.Diff(t, want, got)
}

func TestKeysAreMade(t *testing.T) {
	for algorithm, beginning := range map[string]string{"hmac": "whsec_", "Ed25519": "whsk_"} {
		s := applied(t, `{"sign":"`+algorithm+`"}`, full())
		if len(s.Keys) != 1 || !strings.HasPrefix(s.Keys[0].Text, beginning) || s.Keys[0].Text == hmacKey {
			t.Errorf("%s gave %+v", algorithm, s.Keys)
		}
	}
}

// Event Grid's shape is read over what is there, and what stands beside it counts as well.
func TestPropertiesInEventGridsShape(t *testing.T) {
	got := applied(t, `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://example.com/arm","maxEventsPerBatch":10,"preferredBatchSizeInKilobytes":5}},
		"filter":{"includedEventTypes":["t"]},"retryPolicy":{"maxDeliveryAttempts":4,"eventTimeToLiveInMinutes":5}},"orderBy":"data.id","attempts":5}`, full())
	if got.Webhook.URL != "https://example.com/arm" || got.MaxEvents != 10 || got.Filter.EventTypes[0] != "t" || got.Retry.TimeToLive != 5*time.Minute {
		t.Errorf("of the shape is left %+v", got)
	}
	if got.OrderBy != "data.id" || got.Retry.MaxAttempts != 5 || got.Webhook.Key != "KEYSECRET" {
		t.Errorf("beside it is left %+v", got)
	}
	var s topics.Settings
	if err := Apply(request(t, `{"properties":{"destination":{"endpointType":"Queue"}}}`), &s); !errors.Is(err, topics.ErrInvalid) {
		t.Errorf("a wrong shape: %v", err)
	}
}

// Who reads a subscription, changes something else and writes it back does not know its secrets.
func TestWhatIsShownCanBeWrittenBack(t *testing.T) {
	shown := Show(topics.Subscription{Settings: full()}, false)
	back, err := json.Marshal(admin.SubscriptionRequest{
		Endpoint: &shown.Endpoint, DeadLetter: &shown.DeadLetter, Headers: shown.Headers, OAuth: shown.OAuth,
	})
	testkit.Must(t, err)
	testkit.Diff(t, full(), applied(t, string(back), full()))
}

// A secret goes to where it was given for, and nowhere else.
func TestSecretsDoNotMove(t *testing.T) {
	for name, text := range map[string]string{
		"the query to another URL":             `{"endpoint":"https://elsewhere/hook?..."}`,
		"the signature to another container":   `{"deadLetter":"blob:https://elsewhere/dead?..."}`,
		"a query that nobody has ever given":   `{"endpoint":"https://example.com/other?..."}`,
		"the signature to a deeper container":  `{"deadLetter":"blob:https://account/dead/er?..."}`,
		"the place in another kind of writing": `{"deadLetter":"folder:x?..."}`,
		"the query to another token URL":       `{"oauth":{"tokenUrl":"https://elsewhere?...","clientId":"me"}}`,
	} {
		s := full()
		if err := Apply(request(t, text), &s); !errors.Is(err, topics.ErrInvalid) || !strings.Contains(err.Error(), "write the whole URL") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, oauth := range []string{`{"tokenUrl":"https://elsewhere","clientId":"me"}`, `{"tokenUrl":"https://login/token","clientId":"me"}`, `{"tokenUrl":"https://login/token?...","clientId":"you"}`} {
		testkit.Equal(t, applied(t, `{"oauth":`+oauth+`}`, full()).Webhook.OAuth.Secret, "",
			"%s gets the secret", oauth)
	}
	if s := applied(t, `{"deadLetter":"blob:https://account/other"}`, full()); s.DeadLetter.Key != "" {
		t.Error("another container gets the account's key")
	}
	testkit.Equal(t, applied(t, `{"headers":[{"name":"X-Secret"}]}`, full()).Headers[0].Value, "",
		"a header that is secret no more shows its value")
}

// R1, R5: the value of a secret header goes to the receiver it was given for, and to no other.
func TestSecretHeadersDoNotMove(t *testing.T) {
	bare := func() topics.Settings { // without OAuth, which does not move either
		s := full()
		hook := *s.Webhook
		hook.OAuth = nil
		s.Webhook = &hook
		return s
	}
	arm := func(url, value string) string {
		return `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"` + url + `",
			"deliveryAttributeMappings":[{"name":"X-Secret","type":"Static","properties":{"value":"` + value + `","isSecret":true}}]}}}}`
	}
	for name, text := range map[string]string{
		"another host":                      `{"endpoint":"https://elsewhere/hook"}`,
		"another scheme":                    `{"endpoint":"http://example.com/hook"}`,
		"another port":                      `{"endpoint":"https://example.com:444/hook"}`,
		"a hub":                             `{"hub":"orders"}`,
		"named without its value":           `{"endpoint":"https://elsewhere/hook","headers":[{"name":"X-SECRET","secret":true}]}`,
		"Event Grid's shape":                arm("https://elsewhere/hook", "Hidden"),
		"Event Grid's shape, without value": arm("https://elsewhere/hook", ""),
		"another host beside Event Grid's shape": `{"endpoint":"https://elsewhere/hook",` +
			arm("https://example.com/hook", "Hidden")[1:],
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			err := Apply(request(t, text), &s)
			if !errors.Is(err, topics.ErrInvalid) || !strings.Contains(err.Error(), "unless it is given again") {
				t.Errorf("%v, and the headers are %+v", err, s.Headers)
			}
		})
	}
	for name, text := range map[string]string{
		"another path":            `{"endpoint":"https://example.com/another"}`,
		"given again":             `{"endpoint":"https://elsewhere/hook","headers":[{"name":"X-Secret","value":"NEW","secret":true}]}`,
		"left out":                `{"endpoint":"https://elsewhere/hook","headers":[]}`,
		"given again for a hub":   `{"hub":"orders","headers":[{"name":"X-Secret","value":"NEW","secret":true}]}`,
		"given in the grid's way": arm("https://elsewhere/hook", "NEW"),
	} {
		t.Run(name, func(t *testing.T) { applied(t, text, bare()) })
	}
}

// R1: nobody is shown the secret that gets tokens, so that the tokens do not go where somebody else
// listens.
func TestTokensDoNotMove(t *testing.T) {
	for _, text := range []string{
		`{"endpoint":"https://elsewhere/hook"}`, `{"endpoint":"http://example.com/hook"}`, `{"endpoint":"https://example.com:444/hook"}`,
		`{"endpoint":"https://elsewhere/hook","oauth":{"tokenUrl":"https://login/token?...","clientId":"me"}}`,
		`{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://elsewhere/hook"}}}}`,
	} {
		s := full()
		testkit.ErrorIs(t, Apply(request(t, text), &s), topics.ErrInvalid, "%s", text)
	}
	for text, secret := range map[string]string{
		`{"endpoint":"https://example.com/hook?code=new"}`:                                                                         "OAUTHSECRET",
		`{"endpoint":"https://elsewhere/hook","oauth":{"tokenUrl":"https://t","clientId":"me","secret":"NEWSECRET"},"headers":[]}`: "NEWSECRET",
	} {
		testkit.Equal(t, applied(t, text, full()).Webhook.OAuth.Secret, secret, "%s", text)
	}
	if s := applied(t, `{"endpoint":"https://elsewhere/hook","oauth":{},"headers":[]}`, full()); s.Webhook.OAuth != nil {
		t.Errorf("it has %+v", s.Webhook.OAuth)
	}
}

// Each error says which field, and how it is written.
func TestErrorsNameTheFieldAndShowARightValue(t *testing.T) {
	for _, tt := range []struct{ what, body, field, right string }{
		{"two targets", `{"endpoint":"https://x","hub":"h"}`, "endpoint", "give an endpoint, a hub, or pull"},
		{"three targets", `{"endpoint":"https://x","hub":"h","pull":{}}`, "endpoint", "give an endpoint, a hub, or pull"},
		{"a lock that is none", `{"pull":{"lock":"long"}}`, "pull.lock", "30s"},
		{"a misspelt operator", `{"filters":["data.k NumberGreatrThan 5"]}`, "filters", "NumberGreaterThan"},
		{"a filter without an operator", `{"filters":["data.k"]}`, "filters", "NumberGreaterThan"},
		{"a filter that is a number", `{"filters":[5]}`, "filters", `"data.total NumberGreaterThan 100"`},
		{"a filter that is a list", `{"filters":[["data.k","IsNotNull"]]}`, "filters", `"data.total NumberGreaterThan 100"`},
		{"an unknown schema", `{"schema":"xml"}`, "schema", "eventgrid, cloudevents or custom"},
		{"a time to live that is none", `{"ttl":"soon"}`, "ttl", "24h or 2d"},
		{"half a day", `{"ttl":"0.5d"}`, "ttl", "24h or 2d"},
		{"a wait that is none", `{"maxRetryAfter":"x"}`, "maxRetryAfter", "30s"},
		{"a schedule that is none", `{"retrySchedule":"1s,now"}`, "retrySchedule", "10s"},
		{"a schedule with a zero", `{"retrySchedule":"0s"}`, "retrySchedule", "100ms"},
		{"a floor for no status", `{"retryFloors":{"5xx":"5s"}}`, "retryFloors", "100 to 599, or other"},
		{"a floor that is none", `{"retryFloors":{"503":"x"}}`, "retryFloors", "10s"},
		{"no way to sign", `{"sign":"rsa"}`, "sign", "hmac, ed25519 or none"},
		{"no place", `{"deadLetter":"trash"}`, "dead letters", "yard, folder:DIR, blob:URL"},
		{"a folder without a name", `{"deadLetter":"folder:"}`, "dead letters", "folder:DIR"},
		{"a container without a URL", `{"deadLetter":"blob:dead"}`, "dead letters", "blob:https://account.blob.core.windows.net/dead"},
		{"an end that is none", `{"expires":"tomorrow"}`, "expires", "2027-01-31T18:00:00Z"},
		{"a time-out that is none", `{"timeout":"5"}`, "timeout", "500ms"},
		{"an authority for a hub", `{"hub":"h","ca":"PEM"}`, "endpoint", "give an endpoint"},
		{"no shape at all", `{"properties":5}`, "subscription", "properties"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := full()
			err := Apply(request(t, tt.body), &s)
			if !errors.Is(err, topics.ErrInvalid) || !strings.Contains(err.Error(), tt.field+": ") && !strings.Contains(err.Error(), tt.field+" ") || !strings.Contains(err.Error(), tt.right) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is in force is shared with those who deliver: nothing of it may change in place.
func TestThePresentDefinitionIsNotChanged(t *testing.T) {
	present := full()
	for _, text := range []string{
		everything, `{"hub":"archive"}`, `{"pull":{}}`, `{"sign":"hmac"}`, `{"oauth":{}}`, `{"ca":""}`, `{"retryFloors":{"503":"x"}}`,
		`{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://example.com/arm","deliveryAttributeMappings":[{"name":"A","type":"Static","properties":{"value":"1"}}]}},
			"filter":{"advancedFilters":[{"operatorType":"IsNotNull","key":"data.x","value":null}]},"labels":["arm"]}}`,
	} {
		copied := present
		_ = Apply(request(t, text), &copied)
		if diff := cmp.Diff(full(), present); diff != "" {
			t.Fatalf("%s changed it:\n%s", text, diff)
		}
	}
}

// Strangers write requests: whatever they write is applied or refused with words of ours.
func FuzzApply(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(`{"properties":{"destination":null,"filter":[]}}`))
	f.Add([]byte(`{"filters":["data.k IsNull",{}],"ttl":"65535d","retryFloors":{"":""},"deadLetter":"blob:?..."}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r admin.SubscriptionRequest
		if json.Unmarshal(body, &r) != nil {
			t.Skip()
		}
		present := full()
		s := present
		if err := Apply(r, &s); err != nil && !errors.Is(err, topics.ErrInvalid) {
			t.Errorf("%v", err)
		}
		if !cmp.Equal(full(), present) {
			t.Error("the present definition has changed")
		}
	})
}
