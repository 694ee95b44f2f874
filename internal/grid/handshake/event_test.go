package handshake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// validated reads what came, and checks the parts that are never the same.
func validated(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var events []map[string]any
	if err := json.Unmarshal(body, &events); err != nil || len(events) != 1 {
		t.Fatalf("body is %s: %v", body, err)
	}
	e := events[0]
	testkit.Check(t, testkit.Err(time.Parse(time.RFC3339Nano, fmt.Sprint(e["eventTime"]))))
	testkit.Equal(t, len(fmt.Sprint(e["id"])), 36, "id is %v", e["id"])
	delete(e, "eventTime")
	delete(e, "id")
	return e
}

// G11: the event as Event Grid sends it, also where the delivery schema is a custom one.
func TestTheValidationEvent(t *testing.T) {
	for _, output := range []schema.Kind{schema.EventGrid, schema.Custom, ""} {
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"validationResponse": %q}`, code) })
		s := subscription(e.url+"/hook?code=secret", output)
		s.Headers = []topics.Header{{Name: "X-Static", Value: "yes", Secret: true}, {Name: "Authorization", Value: "Basic x"}, {Name: "X-Dynamic", Field: "data.x"}, {Name: "X-Bad", Value: "a\nb"}}
		got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link)
		if !got.Agreed || got.Awaiting || got.Why != "" {
			t.Fatalf("%+v", got)
		}
		r, body := e.only(t)
		testkit.Diff(t, map[string]any{
			"topic": topic, "subject": "", "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "metadataVersion": "1", "dataVersion": "1",
			"data": map[string]any{"validationCode": code, "validationUrl": link},
		}, validated(t, body))
		testkit.Equal(t, r.Method, "POST")
		testkit.Equal(t, r.RequestURI, "/hook?code=secret")
		for name, want := range map[string]string{
			"aeg-event-type": "SubscriptionValidation", "aeg-subscription-name": "BILLING", "aeg-delivery-count": "0", "aeg-metadata-version": "1", "aeg-data-version": "1",
			"content-type": "application/json; charset=utf-8", "accept": "*/*", "x-static": "yes", "authorization": "Basic x", "x-dynamic": "", "x-bad": "", "webhook-signature": "",
		} {
			testkit.Equal(t, r.Header.Get(name), want, "%s", name)
		}
	}
}

func TestAnswersToTheValidationEvent(t *testing.T) {
	echoed := fmt.Sprintf(`{"validationResponse":%q}`, code)
	for name, x := range map[string]struct {
		status int
		body   string
		want   string // agreed, awaiting or what the refusal says
	}{
		"the code":                         {200, echoed, "agreed"},
		"the code among other members":     {200, fmt.Sprintf(` {"a":1, "validationResponse":%q, "b":[]} `, code), "agreed"},
		"the member with a capital letter": {200, fmt.Sprintf(`{"ValidationResponse":%q}`, code), "agreed"},
		"the code, but accepted for later": {202, echoed, "answered 202 Accepted"},
		"the code, but created":            {201, echoed, "answered 201"},
		"no content":                       {204, "", "answered 204"},
		"another code":                     {200, `{"validationResponse":"other"}`, "awaiting"},
		"an empty code":                    {200, `{"validationResponse":""}`, "awaiting"},
		"a number for a code":              {200, `{"validationResponse":5}`, "awaiting"},
		"no JSON":                          {200, "ok", "awaiting"},
		"nothing":                          {200, "", "awaiting"},
		"an array":                         {200, "[" + echoed + "]", "awaiting"},
		"a redirect":                       {302, "", "answered 302"},
		"not found":                        {404, "nothing here", `("nothing here")`},
		"an error":                         {500, echoed, "answered 500"},
		"a signature that is not known":    {401, "bad signature", "eventyard subscription make-key"},
		"a lot":                            {200, `{"validationResponse":"` + code + `","x":"` + strings.Repeat("x", 60000) + `"}`, "agreed"},
		"more than anybody would read":     {200, `{"x":"` + strings.Repeat("x", 100000) + `","validationResponse":"` + code + `"}`, "awaiting"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(x.status)
				io.WriteString(w, x.body)
			})
			got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), subscription(e.url, schema.EventGrid), topic, code, link)
			testkit.Equal(t, got.Agreed, x.want == "agreed", "agreed")
			testkit.Equal(t, got.Awaiting, x.want == "awaiting", "awaiting")
			if !got.Agreed && !got.Awaiting && (!strings.Contains(got.Why, x.want) || !strings.Contains(got.Why, "has to answer 200")) {
				t.Errorf("why: %s", got.Why)
			}
			e.only(t)
		})
	}
}

// A receiver that checks signatures checks those of the handshake, too.
func TestTheValidationEventIsSigned(t *testing.T) {
	key, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"validationResponse": %q}`, code) })
	s := subscription(e.url, schema.EventGrid)
	s.Keys = []signature.Key{key}
	a := newAsker(t, egress.Config{Loopback: true})
	if got := a.Validate(t.Context(), s, topic, code, link); !got.Agreed {
		t.Fatalf("%+v", got)
	}
	r, body := e.only(t)
	testkit.Check(t, signature.Verify(r.Header, body, []string{key.Text}, time.Now(), 0))
	s.Keys = []signature.Key{{Text: "nonsense"}}
	if got := a.Validate(t.Context(), s, topic, code, link); got.Agreed || got.Awaiting || got.Why == "" {
		t.Errorf("with a key that is none: %+v", got)
	}
}

// The handshake is let in the way deliveries are.
func TestTheHandshakeHasATokenWhereDeliveriesHave(t *testing.T) {
	for _, output := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token":
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"access_token":"t1","token_type":"Bearer","expires_in":60}`)
			case r.Header.Get("Authorization") != "Bearer t1":
				w.WriteHeader(401)
			default:
				w.Header().Set("WebHook-Allowed-Origin", origin)
				fmt.Fprintf(w, `{"validationResponse": %q}`, code)
			}
		})
		s := subscription(e.url+"/hook", output)
		s.Webhook.OAuth = &egress.OAuth{TokenURL: e.url + "/token", ClientID: "me", Secret: "s"}
		if got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link); !got.Agreed {
			t.Errorf("%s: %+v", output, got)
		}
	}
}

func TestTheDeletionNotice(t *testing.T) {
	for _, status := range []int{200, 500} { // it makes no difference
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		s := subscription(e.url, schema.EventGrid)
		s.Headers = []topics.Header{{Name: "X-Static", Value: "yes"}}
		newAsker(t, egress.Config{Loopback: true}).Deleted(t.Context(), s, topic)
		r, body := e.only(t)
		testkit.Diff(t, map[string]any{
			"topic": topic, "subject": "", "eventType": "Microsoft.EventGrid.SubscriptionDeletedEvent", "metadataVersion": "1", "dataVersion": "1",
			"data": map[string]any{"eventSubscriptionId": topic + "/providers/Microsoft.EventGrid/eventSubscriptions/billing"},
		}, validated(t, body))
		if r.Method != "POST" || r.Header.Get("aeg-event-type") != "SubscriptionDeletion" || r.Header.Get("X-Static") != "yes" {
			t.Errorf("%s %v", r.Method, r.Header)
		}
	}
}

func TestEndpointsThatGetNoDeletionNotice(t *testing.T) {
	e := newEndpoint(t, func(http.ResponseWriter, *http.Request) {})
	a := newAsker(t, egress.Config{Loopback: true})
	pending, failed := subscription(e.url, schema.EventGrid), subscription(e.url, schema.EventGrid)
	pending.State, failed.State = topics.Pending, topics.Failed
	for _, s := range []topics.Subscription{pending, failed, subscription(e.url, schema.CloudEvents), {Settings: topics.Settings{Hub: "orders"}}} {
		a.Deleted(t.Context(), s, topic)
	}
	testkit.Equal(t, len(e.got), 0, "notices came")
}
