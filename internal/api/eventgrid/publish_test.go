package eventgrid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// event is one in Event Grid's schema.
func event(id string) string {
	return fmt.Sprintf(`{"id":%q,"subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","data":{"n":1},"dataVersion":"1.0"}`, id)
}

// cloud is one in CloudEvents'.
func cloud(id string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"t","mine":"kept","data":{"n":1}}`, id)
}

// ids are those of stored events.
func ids(t testing.TB, form schema.Form, events []string) string {
	t.Helper()
	var all []string
	for _, e := range events {
		var envelope schema.Envelope
		testkit.Must(t, envelope.Scan(form, []byte(e)))
		all = append(all, string(envelope.ID))
	}
	return strings.Join(all, " ")
}

// G9: publishing takes every schema, in every form of it, at every path; and a success is 200
// with nothing in it, or {} for a namespace.
func TestPublications(t *testing.T) {
	const batch, single = "application/cloudevents-batch+json; charset=utf-8", "application/cloudevents+json"
	binary := func(r *http.Request) {
		for name, value := range map[string]string{"ce-id": "a", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0", "Content-Type": "text/plain"} {
			r.Header.Set(name, value)
		}
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, test := range []struct {
		what, path, body string
		change           func(*http.Request)
		topic, ids, says string
	}{
		{"an array", "/topics/orders/api/events?api-version=2018-01-01", "[" + event("a") + "," + event("b") + "]", contentType("application/json"), "orders", "a b", ""},
		{"one object", "/topics/orders/api/events", event("a"), contentType("application/json; charset=utf-8"), "orders", "a", ""},
		{"the edge's path", "/topics/orders/events?api-version=2019-01-01-preview", "[" + event("a") + "]", contentType("application/json"), "orders", "a", ""},
		{"a topic in another case", "/topics/ORDERS/api/events", "[" + event("a") + "]", contentType("application/json"), "orders", "a", ""},
		{"a topic by its host", "/api/events?api-version=2018-01-01", "[" + event("a") + "]", host("orders.localhost"), "orders", "a", ""},
		{"a topic by nothing but its host", "/?api-version=2018-01-01", "[" + event("a") + "]", host("orders.localhost:443"), "orders", "a", ""},
		{"nothing in an array", "/topics/orders/api/events", "[]", contentType("application/json"), "orders", "", ""},
		{"a batch of CloudEvents", "/topics/clouds/api/events", "[" + cloud("a") + "," + cloud("b") + "]", contentType(batch), "clouds", "a b", ""},
		{"one CloudEvent", "/topics/clouds/api/events", cloud("a"), contentType(single), "clouds", "a", ""},
		{"a CloudEvent in headers", "/topics/clouds/api/events", "hello", binary, "clouds", "a", ""},
		{"things of one's own", "/topics/mapped/api/events", `[{"path":"x","z":1},{"path":"y"}]`, contentType("application/json"), "mapped", "", ""},
		{"a namespace's batch", "/topics/clouds:publish?api-version=2024-06-01", "[" + cloud("a") + "]", contentType(batch), "clouds", "a", "{}"},
		{"a namespace's single one", "/topics/clouds:publish", cloud("a"), contentType(single), "clouds", "a", "{}"},
		{"a namespace's in headers", "/topics/clouds:publish", "hello", binary, "clouds", "a", "{}"},
	} {
		t.Run(test.what, func(t *testing.T) {
			y := newYard(t)
			got := y.ask("POST", test.path, test.body, withKey, test.change).want(200)
			if got.text != test.says || got.Header.Get("x-ms-request-id") == "" {
				t.Errorf("answered %q %v", got.text, got.Header)
			}
			if test.says != "" && got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the answer's type is %q", got.Header.Get("Content-Type"))
			}
			events := y.topics.stored(test.topic)
			if test.topic == "mapped" {
				if len(events) != 2 || !strings.HasSuffix(events[0], `"data":{"path":"x","z":1}}`) {
					t.Errorf("stored %q", events)
				}
			} else if got := ids(t, y.topics.topics[test.topic].Schema.Form(), events); got != test.ids {
				t.Errorf("stored %q: %q", got, events)
			}
			if n := y.counted(y.handler.metrics.published, test.topic, stored); n != float64(len(events)) {
				t.Errorf("%v events are counted", n)
			}
		})
	}
}

// What cannot be published is refused whole, in Event Grid's words, and nothing is stored.
func TestPublicationsThatAreRefused(t *testing.T) { // G12
	y := newYard(t)
	for _, test := range []struct {
		what, topic, body string
		change            func(*http.Request)
		status            int
		code              string
	}{
		{"no JSON", "orders", "{", contentType("application/json"), 400, "InputJsonInvalid"},
		{"nothing", "orders", "", contentType("application/json"), 400, "InputJsonInvalid"},
		{"an event that lacks something", "orders", "[" + event("a") + `,{"id":"b"}]`, contentType("application/json"), 400, "InputJsonInvalid"},
		{"a CloudEvent to a topic of the other schema", "orders", "[" + cloud("a") + "]", contentType("application/json"), 400, "InputJsonInvalid"},
		{"a content type that CloudEvents have not", "clouds", cloud("a"), contentType("text/xml"), 415, "InvalidContentType"},
		{"a body that is packed", "orders", "[]", header("Content-Encoding", "gzip"), 415, "InvalidContentEncoding"},
		{"too many events", "orders", "[" + strings.Repeat(event("a")+",", maxEvents) + event("a") + "]", contentType("application/json"), 413, "PayloadTooLarge"},
		{"an event that is too large", "orders", "[" + strings.Replace(event("a"), `{"n":1}`, `"`+strings.Repeat("x", maxEventBytes)+`"`, 1) + "]", contentType("application/json"), 413, "PayloadTooLarge"},
		{"too much", "orders", `["` + strings.Repeat("x", 1_536_000) + `"]`, contentType("application/json"), 413, "PayloadTooLarge"},
		{"too much of unknown length", "orders", `["` + strings.Repeat("x", 1_536_000) + `"]`, func(r *http.Request) {
			r.ContentLength = -1
			r.Body = io.NopCloser(io.MultiReader(r.Body, strings.NewReader(" ")))
		}, 413, "PayloadTooLarge"},
	} {
		t.Run(test.what, func(t *testing.T) {
			before := y.counted(y.handler.metrics.published, test.topic, test.code)
			y.in(t).ask("POST", "/topics/"+test.topic+"/api/events", test.body, withKey, test.change).refused(test.status, test.code)
			if events := y.topics.stored(test.topic); len(events) != 0 {
				t.Errorf("stored %q", events)
			}
			if n := y.counted(y.handler.metrics.published, test.topic, test.code); n != before+1 {
				t.Errorf("%v refusals are counted", n-before)
			}
		})
	}
	y.ask("POST", "/topics/orders:publish", cloud("a"), withKey, contentType("application/cloudevents+json")).refused(400, "InvalidRequest")
	y.ask("POST", "/topics/clouds:publish", cloud("a"), withKey, contentType("application/json")).refused(415, "InvalidContentType")
}

// As much as is allowed is taken, in one event or in many.
func TestTheMostThatIsTaken(t *testing.T) {
	y := newYard(t)
	large := strings.Replace(event("a"), `{"n":1}`, `"`+strings.Repeat("x", maxEventBytes-200)+`"`, 1)
	rest := strings.Replace(event("a"), `{"n":1}`, `"`+strings.Repeat("x", 1_536_000-3-len(large)-len(event("a"))+len(`{"n":1}`)-2)+`"`, 1)
	most := "[" + large + "," + rest + "]"
	testkit.Equal(t, len(most), 1_536_000, "bytes")
	y.ask("POST", "/topics/orders/api/events", most, withKey, contentType("application/json")).want(200)
	stores := newRealYard(t)
	stores.topic("orders", schema.EventGrid)
	stores.ask("POST", "/topics/orders/api/events", most, asRoot, contentType("application/json")).want(200)
	many := "[" + strings.Repeat(`{"id":"a","subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z"},`, maxEvents-1) + event("a") + "]"
	y.ask("POST", "/topics/orders/api/events", many, withKey, contentType("application/json")).want(200)
	testkit.Equal(t, len(y.topics.stored("orders")), maxEvents+2, "stored")
	for _, length := range []int64{-1, 2 << 20} { // unknown until it has come, or told
		text := y.ask("POST", "/topics/orders/api/events", "["+strings.Repeat(" ", 2<<20-2)+"]", withKey, func(r *http.Request) { r.ContentLength = length }).refused(413, "PayloadTooLarge")
		if !strings.HasPrefix(text, "The maximum size (1536000) has been exceeded: ") || !strings.Contains(text, "split") || strings.Contains(text, "http:") {
			t.Errorf("told %s", text)
		}
	}
}

// G12: as many bytes in as many events as are allowed fit into storage, whatever the schema and
// however many hops are behind them.
func TestTheMostIsStored(t *testing.T) {
	y := newRealYard(t)
	for kind, one := range map[schema.Kind]string{
		schema.EventGrid:   `{"id":"a","subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","data":"%s"}`,
		schema.CloudEvents: `{"specversion":"1.0","id":"a","source":"/s","type":"t","data":"%s"}`,
		schema.Custom:      `{"data":"%s"}`,
	} {
		t.Run(string(kind), func(t *testing.T) {
			name := "of-" + string(kind)
			y.topic(name, kind)
			const largest = 1_536_000
			share := (largest-2)/maxEvents - 1
			full := fmt.Sprintf(one, strings.Repeat("x", share-len(one)+len("%s")))
			events := slices.Repeat([]string{full}, maxEvents)
			rest := largest - 2 - (maxEvents*(len(full)+1) - 1)
			events[0] = strings.Replace(full, "xx", strings.Repeat("x", rest+2), 1)
			body, form := "["+strings.Join(events, ",")+"]", "application/json"
			testkit.MustEqual(t, len(body), largest)
			if kind == schema.CloudEvents {
				form = "application/cloudevents-batch+json"
			}
			y.ask("POST", "/topics/"+name+"/api/events", body, asRoot, contentType(form), header(hops.Name, "5")).want(200)
		})
	}
}

// G1: nothing is acknowledged that is not stored, and the answer says what became of it.
func TestPublishAnswersErrorsOfStorage(t *testing.T) {
	for _, test := range []struct {
		what       string
		err        error
		status     int
		code       string
		retryAfter string
		logged     int // what an operator has to mend
	}{
		{"full", eventlog.ErrNoSpace, 503, "Busy", "10", 0},
		{"in doubt", eventlog.ErrUncertain, 503, "OutcomeUnknown", "", 0},
		{"in doubt for want of space", fmt.Errorf("%w: %w", eventlog.ErrUncertain, eventlog.ErrNoSpace), 503, "OutcomeUnknown", "", 0},
		{"given up", context.DeadlineExceeded, 503, "OutcomeUnknown", "", 0},
		{"fenced", eventlog.ErrFenced, 503, "Busy", "1", 0},
		{"out of reach", eventlog.ErrUnavailable, 503, "Busy", "5", 0}, // C5
		{"stopping", eventlog.ErrClosed, 503, "Stopping", "5", 0},
		{"too large for storage", eventlog.ErrTooLarge, 413, "PayloadTooLarge", "", 0},
		{"deleted meanwhile", topics.ErrTopicNotFound, 404, "ResourceNotFound", "", 0},
		{"broken", errors.New("the disk caught fire"), 500, "InternalError", "", 1},
	} {
		t.Run(test.what, func(t *testing.T) {
			y := newYard(t)
			y.topics.fails = fmt.Errorf("publish to orders: %w", test.err)
			y.errors.Want(test.logged)
			got := y.ask("POST", "/topics/orders/api/events", "["+event("a")+","+event("b")+"]", withKey, contentType("application/json"))
			if message := got.refused(test.status, test.code); strings.Contains(message, "fire") {
				t.Errorf("the client is told what only the log should have: %s", message)
			}
			testkit.Equal(t, got.Header.Get("Retry-After"), test.retryAfter, "Retry-After")
			testkit.Equal(t, y.counted(y.handler.metrics.published, "orders", test.code), 2,
				"events are counted as refused")
		})
	}
}

// OPTIONS tells how to publish to everybody (reference §1), and what a topic takes to who may.
func TestPublishOptions(t *testing.T) {
	y := newYard(t)
	for topic, takes := range map[string]string{"orders": "EventGridEvent", "clouds": "CloudEventV10", "mapped": "CustomInputEvent"} {
		got := y.ask("OPTIONS", "/topics/"+topic+"/api/events", "", withKey).want(200)
		for name, want := range map[string]string{"Allow": "POST, OPTIONS", "api-supported-versions": "2018-01-01", "aeg-input-event-schema": takes} {
			testkit.Equal(t, got.Header.Get(name), want, "%s: %s", topic, name)
		}
	}
	for _, topic := range []string{"orders", "nowhere"} {
		got := y.ask("OPTIONS", "/topics/"+topic+"/api/events", "").want(200)
		testkit.Equal(t, got.Header.Get("Allow"), "POST, OPTIONS", "%s", topic)
		testkit.Equal(t, got.Header.Get("aeg-input-event-schema"), "", "the schema of %s, told to everybody", topic)
	}
}

// A client that leaves is not answered, but one that a stopping yard gave up on is.
func TestAnswersToWhoHasLeft(t *testing.T) {
	y := newYard(t)
	y.topics.fails = context.Canceled
	ended, end := context.WithCancel(t.Context())
	end()
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ended, "POST", "https://localhost/topics/orders/api/events", strings.NewReader("["+event("a")+"]"))
		withKey(r)
		y.frame.ServeHTTP(w, r)
		return w
	}
	if w := ask(); w.Code != frame.StatusClientGone || w.Body.Len() != 0 {
		t.Errorf("a client that left was answered %d %s", w.Code, w.Body)
	}
	y.stopping()
	if w := ask(); w.Code != 503 || !strings.Contains(w.Body.String(), "OutcomeUnknown") {
		t.Errorf("a client of a stopping yard was answered %d %s", w.Code, w.Body)
	}
}

// A body that stops coming is refused: as the client's mistake, or as one to be tried again.
func TestABodyThatStops(t *testing.T) {
	for end, status := range map[error]int{io.ErrUnexpectedEOF: 400, os.ErrDeadlineExceeded: 408} {
		y := newYard(t)
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "https://localhost/topics/orders/api/events", io.MultiReader(strings.NewReader("["+event("a")+"]"), iotest.ErrReader(end)))
		withKey(r)
		y.frame.ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), "RequestBodyIncomplete") || len(y.topics.stored("orders")) != 0 {
			t.Errorf("%v is answered %d %s", end, w.Code, w.Body)
		}
	}
}
