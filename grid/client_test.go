package grid

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/testkit"
)

// request is what a server saw.
type request struct {
	path, query string
	header      http.Header
	body        string
}

// topic serves answers in turn, the last again and again, and keeps what it was asked.
func topic(t *testing.T, answers ...func(http.ResponseWriter)) (url string, seen *[]request) {
	t.Helper()
	seen = new([]request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testkit.Check(t, err)
		*seen = append(*seen, request{r.Method + " " + r.URL.Path, r.URL.RawQuery, r.Header, string(body)})
		if len(answers) > 0 {
			answers[min(len(*seen), len(answers))-1](w)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, seen
}

// says is an answer.
func says(status int, body string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c := testkit.Value(NewClient(cfg))(t)
	return c
}

// G12: what a topic is sent, in each schema and with each credential.
func TestPublish(t *testing.T) {
	token := func(context.Context) (string, time.Time, error) { return "jwt", time.Time{}, nil }
	for _, tt := range []struct {
		what, path string
		cfg        Config
		event      Event
		wantPath   string
		wantQuery  string
		wantHeader [2]string
		wantType   string
		wantInBody string
	}{
		{"Event Grid with a key", "/topics/orders/api/events", Config{Key: "k"}, Event{ID: "1", Type: "x"},
			"POST /topics/orders/api/events", "api-version=2018-01-01", [2]string{"aeg-sas-key", "k"}, "application/json; charset=utf-8", `"eventType":"x"`},
		{"CloudEvents with a signature", "/topics/orders/api/events", Config{Signature: "r=&e=&s=", Schema: CloudEvents, Source: "/shop"}, Event{ID: "1", Type: "x"},
			"POST /topics/orders/api/events", "api-version=2018-01-01", [2]string{"aeg-sas-token", "r=&e=&s="}, "application/cloudevents-batch+json; charset=utf-8", `"source":"/shop"`},
		{"custom with a token", "/topics/orders/api/events", Config{Token: token, Schema: Custom}, Event{Data: []byte(`{"a":1}`)},
			"POST /topics/orders/api/events", "api-version=2018-01-01", [2]string{"Authorization", "Bearer jwt"}, "application/json; charset=utf-8", `[{"a":1}]`},
		{"a host alone, as on Azure", "", Config{}, Event{Type: "x"},
			"POST /api/events", "api-version=2018-01-01", [2]string{"aeg-sas-key", ""}, "application/json; charset=utf-8", `"eventType":"x"`},
		{"a version and a secret in the URL", "/api/events?api-version=2020&code=s", Config{}, Event{Type: "x"},
			"POST /api/events", "api-version=2020&code=s", [2]string{"aeg-sas-key", ""}, "application/json; charset=utf-8", `"eventType":"x"`},
		{"a topic of a namespace", "/topics/orders:publish", Config{Key: "k", Source: "/shop"}, Event{Type: "x"},
			"POST /topics/orders:publish", "api-version=2024-06-01", [2]string{"Authorization", "SharedAccessKey k"}, "application/cloudevents-batch+json; charset=utf-8", `"specversion":"1.0"`},
		{"a topic of a namespace, with a signature", "/topics/orders:publish", Config{Signature: "r=", Source: "/shop"}, Event{Type: "x"},
			"POST /topics/orders:publish", "api-version=2024-06-01", [2]string{"Authorization", "SharedAccessSignature r="}, "application/cloudevents-batch+json; charset=utf-8", `"specversion":"1.0"`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			url, seen := topic(t)
			tt.cfg.Endpoint = url + tt.path
			testkit.Must(t, client(t, tt.cfg).Publish(t.Context(), tt.event))
			got := (*seen)[0]
			if got.path != tt.wantPath || got.query != tt.wantQuery || got.header.Get("Content-Type") != tt.wantType {
				t.Errorf("got %s?%s with %s", got.path, got.query, got.header.Get("Content-Type"))
			}
			if got.header.Get(tt.wantHeader[0]) != tt.wantHeader[1] || !strings.Contains(got.body, tt.wantInBody) {
				t.Errorf("got %v, %s", got.header, got.body)
			}
		})
	}
}

// Ids and times are filled in, in what is sent and not in what was given.
func TestPublishCompletesEvents(t *testing.T) {
	url, seen := topic(t)
	given := []Event{{Type: "x"}, {Type: "x", ID: "mine", Time: noon}}
	testkit.Must(t, client(t, Config{Endpoint: url}).Publish(t.Context(), given...))
	got := testkit.Value(decodeBody([]byte((*seen)[0].body), false))(t)
	testkit.MustEqual(t, len(got), 2, "sent")
	if len(got[0].ID) != 36 || time.Since(got[0].Time) > time.Minute || got[1].ID != "mine" || !got[1].Time.Equal(noon) {
		t.Errorf("sent %+v", got)
	}
	if given[0].ID != "" || !given[0].Time.IsZero() {
		t.Errorf("the caller's events became %+v", given)
	}
}

// A program that publishes the same thing twice can give it the same id.
func TestIDsOfOnesOwn(t *testing.T) {
	url, seen := topic(t)
	c := client(t, Config{Endpoint: url, NewID: ContentID, Schema: CloudEvents, Source: "/shop"})
	for range 2 {
		testkit.Must(t, c.Publish(t.Context(), Event{Type: "x", Subject: "orders/42"}))
	}
	first, err1 := decodeBody([]byte((*seen)[0].body), false)
	second, err2 := decodeBody([]byte((*seen)[1].body), false)
	if err1 != nil || err2 != nil || first[0].ID != second[0].ID || len(first[0].ID) != 43 {
		t.Errorf("sent %+v and %+v", first, second)
	}
}

func TestPublishNothing(t *testing.T) {
	url, seen := topic(t)
	if err := client(t, Config{Endpoint: url}).Publish(t.Context()); err != nil || len(*seen) != 0 {
		t.Errorf("%d requests, %v", len(*seen), err)
	}
	if err := client(t, Config{Endpoint: url}).Publish(t.Context(), Event{}); err == nil || len(*seen) != 0 {
		t.Errorf("%d requests, %v", len(*seen), err)
	}
}

// What went wrong, in the grid's words, and what to do.
func TestPublishErrors(t *testing.T) {
	fault := func(code, message string) string {
		return `{"error":{"code":"` + code + `","message":"` + message + `","details":[{"code":"Fine","message":"m"}]}}`
	}
	for _, tt := range []struct {
		what   string
		answer func(http.ResponseWriter)
		is     error
		want   CallError
		advice string
	}{
		{"400", says(400, fault("BadRequest", "no subject.")), ErrInvalid, CallError{Status: 400, Code: "BadRequest", Message: "no subject."}, "no subject: check that Schema is the topic's"},
		{"401", says(401, fault("Unauthorized", "wrong key")), ErrUnauthorized, CallError{Status: 401, Code: "Unauthorized", Message: "wrong key"}, "check that the key"},
		{"401 of a yard, which says itself what to do", says(401, `{"error":{"code":"Unauthorized","message":"wrong key.","details":[{"code":"Fine","message":"wrong key: use key1."}]}}`),
			ErrUnauthorized, CallError{Status: 401, Code: "Unauthorized", Message: "wrong key: use key1.", advised: true}, "status 401 Unauthorized: wrong key: use key1"},
		{"403", says(403, ""), ErrUnauthorized, CallError{Status: 403}, "check that the key"},
		{"404", says(404, "<html>\n"), ErrNotFound, CallError{Status: 404, Message: "<html>"}, "check the endpoint's URL"},
		{"413", says(413, fault("PayloadTooLarge", "")), ErrTooLarge, CallError{Status: 413, Code: "PayloadTooLarge"}, "publish fewer"},
		{"415", says(415, "", "x-ms-error-code", "InvalidContentType"), ErrInvalid, CallError{Status: 415, Code: "InvalidContentType"}, "Schema"},
		{"307", says(307, "", "Location", "/elsewhere"), nil, CallError{Status: 307}, "redirects are not followed"},
		{"501", says(501, strings.Repeat("é", 300)), nil, CallError{Status: 501, Message: strings.Repeat("é", 100) + "…"}, "status 501"},
		{"503 for long", says(503, "", "Retry-After", "3600"), ErrBusy, CallError{Status: 503, RetryAfter: time.Hour}, "try again later"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			url, seen := topic(t, tt.answer)
			err := client(t, Config{Endpoint: url + "/topics/orders?code=secret", Key: "hidden"}).Publish(t.Context(), Event{Type: "x"})
			got := (*CallError)(nil)
			if !errors.As(err, &got) || *got != tt.want {
				t.Fatalf("got %+v, %v", got, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || len(*seen) != 1 {
				t.Errorf("after %d requests: %v", len(*seen), err)
			}
			text := err.Error()
			if !strings.Contains(text, tt.advice) || !strings.Contains(text, "/topics/orders: status") {
				t.Errorf("it says %s", text)
			}
			if tt.want.advised && !strings.HasSuffix(text, tt.advice) {
				t.Errorf("it goes on: %s", text)
			}
			if strings.Contains(text, "secret") || strings.Contains(text, "hidden") {
				t.Errorf("it tells secrets: %s", text)
			}
		})
	}
}

func TestNewClientRefuses(t *testing.T) {
	const good = "http://localhost:8080/topics/orders/api/events"
	token := func(context.Context) (string, time.Time, error) { return "", time.Time{}, nil }
	for _, tt := range []struct {
		what  string
		cfg   Config
		wrong string
	}{
		{"no endpoint", Config{}, "no endpoint"},
		{"no URL", Config{Endpoint: "http://a b/"}, "no URL"},
		{"another scheme", Config{Endpoint: "sb://space/"}, "http or https"},
		{"no scheme", Config{Endpoint: "localhost:8080"}, "http or https"},
		{"no scheme, and a key in the query", Config{Endpoint: "grid.example/api/events?aeg-sas-key=hidden"}, "http or https"},
		{"no host", Config{Endpoint: "http:///x"}, "a host"},
		{"a user", Config{Endpoint: "http://u:hidden@h/"}, "without a user"},
		{"two credentials", Config{Endpoint: good, Key: "hidden", Token: token}, "give one of them"},
		{"a line break in a key", Config{Endpoint: good, Key: "hidden\n"}, "line break"},
		{"a schema that is none", Config{Endpoint: good, Schema: 7}, "schema 7"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, err := NewClient(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v, want %q", err, tt.wrong)
			}
		})
	}
}

// G12: a signature of ours is good for the topic it was made for.
func TestSign(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	for _, endpoint := range []string{"https://orders.test", "https://orders.test/api/events", "https://orders.test/api/events?code=x"} {
		text := testkit.Value(Sign(endpoint, "MDEyMw==", expires))(t)
		token, err := topickey.Check(text, time.Now(), "MDEyMw==")
		publish, pull := topickey.Target{Topic: "orders", Hosts: []string{"orders.test"}}, topickey.Target{Topic: "orders", Subscription: "s", Hosts: []string{"orders.test"}}
		if err != nil || !token.Covers(publish) || token.Covers(pull) {
			t.Errorf("%s: %+v, %v", endpoint, token, err)
		}
	}
	if _, err := Sign("orders", "k", expires); err == nil {
		t.Error("signed for no URL")
	}
}
