package handshake

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// G11: the request that CloudEvents' webhooks expect.
func TestTheOptionsRequest(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("WebHook-Allowed-Origin", origin) })
	s := subscription(e.url+"/hook?code=secret", schema.CloudEvents)
	s.Rate = 1.99
	s.Headers = []topics.Header{{Name: "X-Static", Value: "yes"}}
	if got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link); !got.Agreed {
		t.Fatalf("%+v", got)
	}
	r, body := e.only(t)
	if r.Method != "OPTIONS" || r.RequestURI != "/hook?code=secret" || len(body) > 0 {
		t.Errorf("%s %s %q", r.Method, r.RequestURI, body)
	}
	for name, want := range map[string]string{
		"WebHook-Request-Origin": origin, "WebHook-Request-Callback": link, "WebHook-Request-Rate": "120", "X-Static": "yes", "aeg-event-type": "", "Origin": "",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, r.Header.Get(name), want, "%s", name)
		})
	}
}

func TestAnswersToOptions(t *testing.T) {
	for name, x := range map[string]struct {
		status        int
		allowed, rate string
		asked         float64 // requests a second
		want          string  // agreed, awaiting or what the refusal says
		wantRate      int
	}{
		"our origin":                           {200, origin, "", 0, "agreed", 0},
		"our origin in capitals":               {200, "YARD.example", "", 0, "agreed", 0},
		"every origin":                         {204, "*", "", 0, "agreed", 0},
		"a rate":                               {200, origin, "30", 0, "agreed", 30},
		"any rate":                             {200, origin, "*", 5, "agreed", 0},
		"less than was asked for":              {200, origin, "10", 5, "agreed", 10},
		"a rate was asked for, and none given": {200, origin, "", 5, "agreed", 300},
		"a rate that is none":                  {200, origin, "fast", 5, "agreed", 300},
		"a rate of nothing":                    {200, origin, "0", 0, "agreed", 0},
		"no header":                            {200, "", "", 0, "awaiting", 0},
		"a rate alone":                         {200, "", "10", 0, "awaiting", 0},
		"another origin":                       {200, "other.example", "", 0, `allows events from "other.example"`, 0},
		"it is not supported":                  {405, "", "", 0, "answered 405", 0},
		"it is refused all the same":           {403, "*", "", 0, "answered 403", 0},
		"a redirect":                           {307, "*", "", 0, "answered 307", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
				if x.allowed != "" {
					w.Header().Set("WebHook-Allowed-Origin", x.allowed)
				}
				if x.rate != "" {
					w.Header().Set("WebHook-Allowed-Rate", x.rate)
				}
				w.WriteHeader(x.status)
			})
			s := subscription(e.url, schema.CloudEvents)
			s.Rate = x.asked
			got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link)
			if got.Agreed != (x.want == "agreed") || got.Awaiting != (x.want == "awaiting") || got.Rate != x.wantRate {
				t.Errorf("%+v", got)
			}
			if !got.Agreed && !got.Awaiting && (!strings.Contains(got.Why, x.want) || !strings.Contains(got.Why, "WebHook-Allowed-Origin: "+origin)) {
				t.Errorf("why: %s", got.Why)
			}
			e.only(t)
		})
	}
}

// A hub's events are CloudEvents where nothing else is asked for.
func TestSubscriptionsToHubsAreAskedByOptions(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("WebHook-Allowed-Origin", "*") })
	s := subscription(e.url, "")
	s.Source = topics.Source{Hub: "orders"}
	if got := newAsker(t, egress.Config{Loopback: true}).Validate(t.Context(), s, topic, code, link); !got.Agreed {
		t.Errorf("%+v", got)
	}
	if r, _ := e.only(t); r.Method != "OPTIONS" {
		t.Errorf("it was asked by %s", r.Method)
	}
}
