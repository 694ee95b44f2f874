package eventgrid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

const jobs = "/topics/clouds/eventsubscriptions/jobs"

// storedEvent is what Read makes of a publication.
func storedEvent(t testing.TB, kind schema.Kind, mapping schema.Mapping, body string) []byte {
	t.Helper()
	h := http.Header{"Content-Type": {"application/json"}}
	if kind == schema.CloudEvents {
		h.Set("Content-Type", "application/cloudevents+json")
	}
	events, err := schema.Read(schema.Publication{
		Kind: kind, Mapping: mapping, Header: h, Body: []byte(body), Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), NewID: func() string { return "made" },
	})
	testkit.Must(t, err)
	return events[0]
}

func (y *yard) offer(events ...delivery.Received) {
	y.pull.mu.Lock()
	defer y.pull.mu.Unlock()
	y.pull.events = events
}

// G12: the answer to receive is what namespace clients read, to the letter.
func TestReceivedEvents(t *testing.T) {
	y := newYard(t)
	y.offer(
		delivery.Received{Token: `a"b`, Delivery: 1, Form: schema.CloudEventForm, Event: storedEvent(t, schema.CloudEvents, schema.Mapping{}, cloud("1"))},
		delivery.Received{Token: "t2", Delivery: 3, Form: schema.EventGridForm, Topic: "/subscriptions/0", Event: storedEvent(t, schema.EventGrid, schema.Mapping{}, event("2"))},
	)
	got := y.ask("POST", jobs+":receive?api-version=2024-06-01&maxEvents=10&maxWaitTime=10", "", withKey).want(200)
	var answer struct {
		Value []struct {
			BrokerProperties struct {
				LockToken     string
				DeliveryCount int
			}
			Event map[string]any
		}
	}
	got.json(&answer)
	testkit.MustEqual(t, len(answer.Value), 2, "received %s", got.text)
	testkit.MustEqual(t, got.Header.Get("Content-Type"), "application/json", "received %s", got.text)
	first, second := answer.Value[0], answer.Value[1]
	if first.BrokerProperties.LockToken != `a"b` || first.BrokerProperties.DeliveryCount != 1 || first.Event["id"] != "1" || first.Event["mine"] != "kept" {
		t.Errorf("the first is %+v", first)
	}
	// An event of Event Grid's schema is converted (reference §7).
	want := map[string]any{"specversion": "1.0", "id": "2", "source": "/subscriptions/0", "type": "t", "subject": "s", "time": "2026-01-02T03:04:05Z"}
	for name, value := range want {
		testkit.Equal(t, second.Event[name], value, "%s of the second", name)
	}
	testkit.Equal(t, second.BrokerProperties.DeliveryCount, 3, "the second is %+v", second)
	testkit.Equal(t, y.pull.seen(), "receive jobsjobsjobsj 10 10s", "asked")
}

func TestWhatReceiveMayAskFor(t *testing.T) {
	for _, test := range []struct{ query, asked string }{
		{"", "receive jobsjobsjobsj 1 1m0s"},
		{"?maxEvents=100&maxWaitTime=120", "receive jobsjobsjobsj 100 2m0s"},
		{"?MAXEVENTS=2&maxwaittime=1", "receive jobsjobsjobsj 2 1s"},
		{"?maxEvents=0", ""},
		{"?maxEvents=101", ""},
		{"?maxEvents=x", ""},
		{"?maxEvents=", ""},
		{"?maxWaitTime=0", ""},
		{"?maxWaitTime=121", ""},
		{"?maxWaitTime=1.5", ""},
		{"?maxWaitTime=99999999999999999999", ""},
	} {
		t.Run(test.query, func(t *testing.T) {
			y := newYard(t)
			y.offer(delivery.Received{Token: "t", Delivery: 1, Form: schema.CloudEventForm, Event: storedEvent(t, schema.CloudEvents, schema.Mapping{}, cloud("1"))})
			got := y.ask("POST", jobs+":receive"+test.query, "", withKey)
			if test.asked == "" {
				got.refused(400, "InvalidQueryParameterValue")
			} else {
				got.want(200)
			}
			testkit.Equal(t, y.pull.seen(), test.asked, "asked")
		})
	}
}

// poll asks for events within the present bubble, without a network.
func (y *yard) poll(ctx context.Context, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", "https://localhost"+jobs+":receive"+query, nil)
	withKey(r)
	y.frame.ServeHTTP(w, r)
	return w
}

// pollYard is a listener without a server, for bubbles.
func pollYard(t *testing.T) *yard {
	y := &yard{t: t, topics: newMemory(), pull: &puller{}}
	stopping, stop := context.WithCancel(context.Background())
	y.stopping = stop
	t.Cleanup(stop)
	y.serve(New(Config{Topics: y.topics, Pull: y.pull, Access: nobody{}, Stopping: stopping}))
	return y
}

// nobody is access that lets nobody in.
type nobody struct{ notInDevelopment }

func (nobody) MayLook(context.Context) bool { return false }

// A long poll ends with nothing after its time, and at once when the yard begins to stop.
func TestLongPollsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := pollYard(t)
		began := time.Now()
		w := y.poll(t.Context(), "?maxWaitTime=100")
		if w.Code != 200 || w.Body.String() != `{"value":[]}` || time.Since(began) != 100*time.Second {
			t.Errorf("after %v: %d %s", time.Since(began), w.Code, w.Body)
		}
		began = time.Now()
		time.AfterFunc(time.Second, y.stopping)
		w = y.poll(t.Context(), "?maxWaitTime=100")
		if w.Code != 200 || w.Body.String() != `{"value":[]}` || time.Since(began) != time.Second {
			t.Errorf("stopping, after %v: %d %s", time.Since(began), w.Code, w.Body)
		}
	})
}

// What was received for a client that has left meanwhile, or that is not let in any more, is given
// back at once rather than when its lock ends.
func TestWhatNobodyTakesIsGivenBack(t *testing.T) {
	given := "settle jobsjobsjobsj 1 0s t"
	synctest.Test(t, func(t *testing.T) {
		received := delivery.Received{Token: "t", Delivery: 1, Form: schema.CloudEventForm, Event: storedEvent(t, schema.CloudEvents, schema.Mapping{}, cloud("1"))}
		y := pollYard(t)
		y.offer(received)
		ctx, leave := context.WithCancel(t.Context())
		y.pull.waiting = leave
		if w := y.poll(ctx, ""); w.Code != frame.StatusClientGone || !strings.HasSuffix(y.pull.seen(), given) {
			t.Errorf("who left was answered %d %s; %s", w.Code, w.Body, y.pull.seen())
		}

		y = pollYard(t)
		y.offer(received)
		y.pull.waiting = func() {
			time.Sleep(10 * time.Second)
			renewed := newTopic("clouds", schema.CloudEvents)
			renewed.Key1, renewed.Key2 = "new", "new"
			y.topics.setTopic(renewed)
		}
		if w := y.poll(t.Context(), ""); w.Code != 401 || !strings.HasSuffix(y.pull.seen(), given) {
			t.Errorf("whose key was made anew was answered %d %s; %s", w.Code, w.Body, y.pull.seen())
		}
	})
}

// An event that cannot be written does not keep the others back.
func TestDamagedEventsAreLeftOut(t *testing.T) {
	y := newYard(t)
	y.errors.Want(2)
	good := storedEvent(t, schema.CloudEvents, schema.Mapping{}, cloud("1"))
	bad := delivery.Received{Token: "bad", Delivery: 1, Form: schema.CloudEventForm, Event: []byte("{")}
	y.offer(bad, delivery.Received{Token: "good", Delivery: 1, Form: schema.CloudEventForm, Event: good}, bad)
	got := y.ask("POST", jobs+":receive?maxEvents=9", "", withKey).want(200)
	var answer struct{ Value []any }
	got.json(&answer)
	if len(answer.Value) != 1 || !strings.Contains(got.text, `"lockToken":"good"`) {
		t.Errorf("received %s", got.text)
	}
}

// Settling answers 200 for some, for all and for none, in the order of the tokens.
func TestSettling(t *testing.T) {
	for _, test := range []struct{ verb, asked string }{
		{":acknowledge?api-version=2024-06-01", "settle jobsjobsjobsj 0 0s"},
		{":release", "settle jobsjobsjobsj 1 0s"},
		{":release?releaseDelayInSeconds=600", "settle jobsjobsjobsj 1 10m0s"},
		{":reject", "settle jobsjobsjobsj 2 0s"},
		{":renewLock", "settle jobsjobsjobsj 3 0s"},
	} {
		t.Run(test.verb, func(t *testing.T) {
			y := newYard(t)
			y.pull.lost, y.pull.alien = "lost", "alien"
			got := y.ask("POST", jobs+test.verb, `{"lockTokens":["a","lost","b","alien"]}`, withKey, contentType("application/json; charset=UTF-8")).want(200)
			want := `{"succeededLockTokens":["a","b"],"failedLockTokens":[` +
				`{"lockToken":"lost","error":{"code":"TokenLost","message":"Token has expired."}},` +
				`{"lockToken":"alien","error":{"code":"BadToken","message":"not a lock token of this subscription: use the lockToken that receive gave for this subscription."}}]}` + "\n"
			testkit.Equal(t, got.text, want, "answered")
			testkit.Equal(t, y.pull.seen(), test.asked+" a,lost,b,alien", "asked")
			all := y.ask("POST", jobs+test.verb, `{"lockTokens":["a"]}`, withKey).want(200)
			testkit.Equal(t, all.text, `{"succeededLockTokens":["a"],"failedLockTokens":[]}`+"\n", "answered")
			none := y.ask("POST", jobs+test.verb, `{"lockTokens":["lost"]}`, withKey).want(200)
			if !strings.HasPrefix(none.text, `{"succeededLockTokens":[],"failedLockTokens":[{`) {
				t.Errorf("answered %s", none.text)
			}
		})
	}
}

func TestSettlingThatIsRefused(t *testing.T) {
	y := newYard(t)
	many := `{"lockTokens":["` + strings.Repeat(`t","`, maxTokens) + `t"]}`
	for _, test := range []struct {
		what, path, body string
		status           int
		code             string
	}{
		{"no body", jobs + ":acknowledge", "", 400, "InputJsonInvalid"},
		{"no tokens", jobs + ":acknowledge", `{"lockTokens":[]}`, 400, "InputJsonInvalid"},
		{"no list of them", jobs + ":acknowledge", `{}`, 400, "InputJsonInvalid"},
		{"null", jobs + ":acknowledge", `null`, 400, "InputJsonInvalid"},
		{"tokens that are numbers", jobs + ":acknowledge", `{"lockTokens":[1]}`, 400, "InputJsonInvalid"},
		{"more behind it", jobs + ":acknowledge", `{"lockTokens":["a"]}x`, 400, "InputJsonInvalid"},
		{"too many", jobs + ":acknowledge", many, 400, "InputJsonInvalid"},
		{"too much", jobs + ":acknowledge", `{"lockTokens":["` + strings.Repeat("x", maxManageBytes) + `"]}`, 413, "PayloadTooLarge"},
		{"a delay that is too long", jobs + ":release?releaseDelayInSeconds=3601", `{"lockTokens":["a"]}`, 400, "InvalidQueryParameterValue"},
		{"a delay backwards", jobs + ":release?releaseDelayInSeconds=-1", `{"lockTokens":["a"]}`, 400, "InvalidQueryParameterValue"},
		{"a subscription that is not there", "/topics/clouds/eventsubscriptions/none:acknowledge", `{"lockTokens":["a"]}`, 404, "ResourceNotFound"},
		{"a topic that is not there", "/topics/none/eventsubscriptions/jobs:acknowledge", `{"lockTokens":["a"]}`, 401, "Unauthorized"},
		{"another topic's", "/topics/orders/eventsubscriptions/jobs:acknowledge", `{"lockTokens":["a"]}`, 404, "ResourceNotFound"},
	} {
		t.Run(test.what, func(t *testing.T) {
			y.in(t).ask("POST", test.path, test.body, withKey).refused(test.status, test.code)
		})
	}
	testkit.Equal(t, y.pull.seen(), "", "asked")
}

// What the delivery service says of the whole is told by status.
func TestPullErrors(t *testing.T) {
	for _, test := range []struct {
		what       string
		err        error
		status     int
		code       string
		retryAfter string
		logged     int
	}{
		{"one that is pushed", delivery.ErrNotPull, 400, "InvalidDeliveryMode", "", 0},
		{"one that is not there yet", delivery.ErrNotFound, 503, "Busy", "1", 0},
		{"trouble", errors.New("no idea"), 500, "InternalError", "", 2},
	} {
		t.Run(test.what, func(t *testing.T) {
			y := newYard(t)
			y.errors.Want(test.logged)
			y.pull.fails = fmt.Errorf("pull: %w", test.err)
			for _, verb := range []string{":receive", ":acknowledge"} {
				got := y.ask("POST", jobs+verb, `{"lockTokens":["a"]}`, withKey)
				got.refused(test.status, test.code)
				testkit.Equal(t, got.Header.Get("Retry-After"), test.retryAfter, "Retry-After")
			}
		})
	}
}

// A long poll outlives the time that the server gives other answers and bodies.
func TestLongPollsOutliveTheServersPatience(t *testing.T) {
	y := newYard(t)
	// As WriteTimeout and ReadTimeout do, but for the handshake, which takes as long as it takes.
	impatient := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ends, connection := time.Now().Add(2*time.Second), http.NewResponseController(w)
		testkit.Check(t, errors.Join(connection.SetReadDeadline(ends), connection.SetWriteDeadline(ends)))
		y.frame.ServeHTTP(w, r)
	}))
	defer impatient.Close()
	there := y.in(t)
	there.server = impatient
	// Well after that, so that neither a slow machine nor a deadline that is forgotten passes for the other.
	if got := there.ask("POST", jobs+":receive?maxWaitTime=5", "", withKey).want(200); got.text != `{"value":[]}` {
		t.Errorf("received %s", got.text)
	}
}
