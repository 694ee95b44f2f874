package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// letters gives a page of dead letters.
func (y *gridYard) letters(query string) (page admin.DeadLetterPage) {
	y.t.Helper()
	y.want(200, "GET", billingPath+"/dead"+query, nil).json(y.t, &page)
	return page
}

func ids(page admin.DeadLetterPage) (ids []string) {
	for _, l := range page.Letters {
		ids = append(ids, l.EventID)
	}
	return ids
}

// killed has dead letters: the endpoint has refused so many events.
func (y *gridYard) killed(more string, n int) {
	y.t.Helper()
	y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook","deadLetter":"yard","concurrency":1`+more)
	y.hook.set(true, 400)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	y.publish("orders", names...)
	y.hook.deliveries()
}

// G8: dead letters are listed in pages, looked at, and chosen.
func TestDeadLettersAreListed(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		began := time.Now().UTC().Truncate(time.Millisecond)
		y.subscribe("orders", "billing", `"endpoint":"https://example.com/hook","deadLetter":"yard"`)
		if page := y.letters(""); page.Letters == nil || page.Total != 0 || page.Next != 0 {
			t.Errorf("before the first: %+v", page)
		}
		y.want(204, "DELETE", billingPath, nil)
		y.killed("", 5)
		page := y.letters("?max=2")
		if !slices.Equal(ids(page), []string{"0", "1"}) || page.Total != 5 || page.Next == 0 {
			t.Fatalf("the first page is %+v", page)
		}
		if page = y.letters(fmt.Sprintf("?max=2&from=%d", page.Next)); !slices.Equal(ids(page), []string{"2", "3"}) {
			t.Errorf("the second is %+v", page)
		}
		if page = y.letters(fmt.Sprintf("?from=%d", page.Next)); !slices.Equal(ids(page), []string{"4"}) || page.Next != 0 {
			t.Errorf("the last is %+v", page)
		}
		l := page.Letters[0]
		want := admin.DeadLetter{
			Number: 4, EventID: "4", EventType: "order.placed", Subject: "/s", Reason: l.Reason, Attempts: 1, Outcome: "BadRequest", Status: 400,
			Published: l.Published, LastAttempt: l.LastAttempt, Died: l.Died,
		}
		if diff := cmp.Diff(want, l); diff != "" || l.Reason == "" || l.Published.Before(began) || l.LastAttempt.Before(l.Published) || l.Died.Before(*l.LastAttempt) {
			t.Errorf("%+v\n%s", l, diff)
		}
		for query, want := range map[string]int{
			"reason=" + l.Reason: 5, "reason=TimeToLiveExceeded": 0, "outcome=badrequest": 5, "outcome=Busy": 0, "eventId=3": 1, "eventType=Order.Placed": 5,
			"eventType=x": 0, "since=1h": 5, "until=1h": 0, "since=2100-01-01T00:00:00Z": 0, "until=7d": 0, "redriven=true": 5, "max=5000": 5,
		} {
			testkit.Equal(t, len(y.letters("?"+query).Letters), want, "%s", query)
		}
	})
}

// G8: one is shown with its event, as it would have been delivered.
func TestADeadLetterIsShownWithItsEvent(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed(`,"schema":"cloudevents","skipValidation":true`, 1)
		l := read[admin.DeadLetter](t, y.want(200, "GET", billingPath+"/dead/0", nil))
		var e struct{ ID, SpecVersion, Source, Type string }
		if testkit.Must(t, json.Unmarshal(l.Event, &e)); e.ID != "0" || e.SpecVersion != "1.0" || e.Type != "order.placed" || !strings.HasSuffix(e.Source, "/topics/orders") {
			t.Errorf("the event is %s", l.Event)
		}
	})
}

// V6: a dead letter says which trace its event belongs to, also where the schema of the event has no place for it.
func TestADeadLetterSaysItsTrace(t *testing.T) {
	for name, schema := range map[string]string{"Event Grid's schema": "eventgrid", "CloudEvents": "cloudevents"} {
		t.Run(name, func(t *testing.T) {
			withGrid(t, func(t *testing.T, y *gridYard) {
				y.killed(`,"schema":"`+schema+`","skipValidation":true`, 1)
				y.traced = tracing.Parse(traceParent, "")
				y.publish("orders", "traced")
				all := y.letters("").Letters
				testkit.MustEqual(t, len(all), 2, "letters")
				testkit.Equal(t, all[0].TraceID+all[0].TraceParent, "", "of an event without a trace")
				one := read[admin.DeadLetter](t, y.want(200, "GET", billingPath+"/dead/1", nil))
				for _, l := range []admin.DeadLetter{all[1], one} {
					testkit.Equal(t, l.TraceID, traceParent[3:35])
					testkit.Equal(t, l.TraceParent, traceParent)
				}
			})
		})
	}
}

// G8: redriven events go to this subscription and nobody else; redriven letters are left out then.
func TestDeadLettersAreRedriven(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 4)
		y.hook.set(true, 0)
		y.subscribe("orders", "other", `"endpoint":"https://example.com/other"`)
		redrive := func(body string) (done admin.Redriven) {
			y.want(200, "POST", billingPath+"/redrive", body).json(t, &done)
			y.settle()
			return done
		}
		if done := redrive(`{"dryRun":true}`); done.Redriven != 4 || !done.DryRun || len(y.hook.deliveries()) != 0 {
			t.Errorf("dry: %+v", done)
		}
		done := redrive(`{"max":1}`)
		if done.Redriven != 1 || done.Next == 0 {
			t.Errorf("one: %+v", done)
		}
		if done := redrive(fmt.Sprintf(`{"from":%d,"max":1}`, done.Next)); done.Redriven != 1 {
			t.Errorf("the next: %+v", done)
		}
		if done := redrive(`{"numbers":[3]}`); done.Redriven != 1 {
			t.Errorf("by its number: %+v", done)
		}
		got := y.hook.deliveries()
		if len(got) != 3 || slices.ContainsFunc(got, func(d delivered) bool {
			return d.header.Get("aeg-subscription-name") != "BILLING" || d.header.Get("aeg-delivery-count") != "0"
		}) {
			t.Errorf("delivered were %+v", got)
		}
		testkit.Slices(t, ids(y.letters("")), []string{"2"}, "not redriven")
		if page := y.letters("?redriven=true"); len(page.Letters) != 4 || page.Letters[3].Redriven == nil || page.Letters[2].Redriven != nil {
			t.Errorf("in all there are %+v", page)
		}
	})
}

// G8: what keeps coming back is left out until it is forced.
func TestWhatComesBackTooOftenIsSkipped(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 1)
		for range 3 {
			y.want(200, "POST", billingPath+"/redrive", `{}`)
			y.settle()
		}
		var done admin.Redriven
		if y.want(200, "POST", billingPath+"/redrive", `{}`).json(t, &done); done.Redriven != 0 || done.Skipped != 1 {
			t.Errorf("the fourth time: %+v", done)
		}
		if y.want(200, "POST", billingPath+"/redrive", `{"force":true}`).json(t, &done); done.Redriven != 1 || done.Skipped != 0 {
			t.Errorf("by force: %+v", done)
		}
	})
}

// A slow redrive is answered before a client gives up, and says where to go on. What dies again
// meanwhile, since the endpoint is still down, is not sent over and over.
func TestASlowRedriveIsAnsweredInParts(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 250)
		began := time.Now()
		var done, rest admin.Redriven
		y.want(200, "POST", billingPath+"/redrive", `{"rate":2}`).json(t, &done)
		if done.Redriven != 60 || done.Next == 0 || time.Since(began) > time.Minute {
			t.Errorf("after %v: %+v", time.Since(began), done)
		}
		y.settle() // by when they are dead again
		y.want(200, "POST", billingPath+"/redrive", fmt.Sprintf(`{"from":%d,"until":%q}`, done.Next, done.Until)).json(t, &rest)
		if rest.Redriven != 190 || rest.Next != 0 || rest.Until != done.Until {
			t.Errorf("the rest: %+v", rest)
		}
		y.settle()
		testkit.Equal(t, len(y.letters("?max=1000").Letters), 250, "dead again")
	})
}

// G8: dead letters are forgotten for good.
func TestDeadLettersArePurged(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 4)
		purge := func(body string) int {
			done := read[struct{ Purged int }](t, y.want(200, "POST", billingPath+"/purge", body))
			return done.Purged
		}
		testkit.Equal(t, purge(`{"numbers":[1]}`), 1, "by number")
		testkit.Equal(t, purge(`{"until":"7d"}`), 0, "old ones")
		if page := y.letters(""); !slices.Equal(ids(page), []string{"0", "2", "3"}) || page.Total != 3 {
			t.Errorf("left are %+v", page)
		}
		if n := purge(`{}`); n != 3 || len(y.letters("?redriven=true").Letters) != 0 {
			t.Errorf("all: %d", n)
		}
		y.refused(404, "dead-letter-not-found", "GET", billingPath+"/dead/0", nil)
	})
}

// A subscription that nothing is delivered to cannot be redriven to.
func TestRedrivingToWhatIsNotDelivered(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 1)
		y.dead.RedriveTo(func(context.Context, []pending.Delivery) error { return delivery.ErrNotFound })
		p := y.refused(409, "not-delivered", "POST", billingPath+"/redrive", `{}`)
		if !strings.Contains(p.Next, "state") {
			t.Errorf("it says %+v", p)
		}
		if page := y.letters(""); len(page.Letters) != 1 {
			t.Errorf("it counts as redriven: %+v", page)
		}
	})
}

func TestDeadLettersRefused(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.killed("", 1)
		for _, tt := range []struct{ what, method, path, body, says string }{
			{"a page of none", "GET", "/dead?max=0", "", "at least 1"},
			{"a page of many words", "GET", "/dead?max=all", "", "max"},
			{"a beginning before all", "GET", "/dead?from=-1", "", "from"},
			{"a beginning that is none", "GET", "/dead?from=x", "", "next of a page before"},
			{"a time that is none", "GET", "/dead?since=" + url.QueryEscape("last week"), "", "2026-01-31T18:00:00Z"},
			{"another", "GET", "/dead?until=x", "", "like 2h"},
			{"a number that is none", "GET", "/dead/first", "", "number"},
			{"a negative rate", "POST", "/redrive", `{"rate":-1}`, "rate"},
			{"a negative number of letters", "POST", "/redrive", `{"max":-1}`, "max"},
			{"a redrive from before all", "POST", "/redrive", `{"from":-1}`, "from"},
			{"a redrive since never", "POST", "/redrive", `{"since":"never"}`, "never"},
			{"a misspelt choice", "POST", "/redrive", `{"ressons":"x"}`, "ressons"},
			{"a purge until never", "POST", "/purge", `{"until":"never"}`, "never"},
			{"a misspelt purge", "POST", "/purge", `{"untill":"7d"}`, "untill"},
			{"a purge without a word", "POST", "/purge", "", "empty"},
		} {
			t.Log(tt.what)
			var body any
			if tt.method == "POST" {
				body = tt.body
			}
			p := y.refused(400, "bad-request", tt.method, billingPath+tt.path, body)
			if !strings.Contains(p.Detail+p.Next, tt.says) {
				t.Errorf("%s: it says %q, %q", tt.what, p.Detail, p.Next)
			}
		}
		if page := y.letters("?redriven=true"); len(page.Letters) != 1 || page.Letters[0].Redriven != nil {
			t.Errorf("there are %+v", page)
		}
	})
}
