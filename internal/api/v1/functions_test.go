package v1

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// serveFunctions lets the listener have functions that are defined and never run.
func (y *yard) serveFunctions(c *Config) {
	b := box.New(box.Config{Broker: y.broker, Meta: y.Meta, Log: y.log})
	registry, err := runner.Open(y.t.Context(), runner.Config{
		Meta: y.Meta, Broker: y.broker, Groups: y.groups, Box: b, Log: y.log,
		CheckEndpoint: func(string) error { return nil },
		CheckTarget:   func(string) error { return nil },
		CheckTopic:    func(string) error { return nil },
	})
	testkit.Must(y.t, err)
	c.Functions, c.Poison, c.Notices = registry, b, silent{}
}

// silent takes every notice but one.
type silent struct{}

func (silent) Test(_ context.Context, target string) error {
	if strings.Contains(target, "bad") {
		return errors.New("no such mailbox")
	}
	return nil
}

// putAway writes a poison event of a function.
func (y *yard) putAway(hub string, l poison.Record) {
	y.t.Helper()
	stored, err := message.Append(nil, l.Message())
	testkit.Must(y.t, err)
	_, err = y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: "0"}, []eventlog.Event{{Message: stored}})
	testkit.Must(y.t, err)
}

func functionYard(t *testing.T) *yard {
	y := openYard(t)
	y.openHandler(y.serveFunctions)
	y.hub("orders", 2)
	return y
}

// F5, F7: whoever may manage defines, pauses and resumes functions, and sees their circuits.
func TestFunctionsAreDefinedPausedAndResumed(t *testing.T) {
	y := functionYard(t)
	var f admin.Function
	made := y.want(http.StatusCreated, "POST", "/api/v1/functions", `{"name":"billing","hub":"orders","group":"g","endpoint":"http://x/","headers":{"Authorization":"secret"},"breaker":"5/10s"}`)
	made.json(t, &f)
	if f.State == "" || f.Poison == "" || f.Retries != 5 || f.Breaker != "5/10s" || f.Batch != 100 || len(f.Headers) != 1 || f.Headers[0] != "Authorization" {
		t.Errorf("made %+v", f)
	}
	y.want(http.StatusConflict, "POST", "/api/v1/functions", `{"name":"billing","hub":"orders","endpoint":"http://x/"}`)
	y.want(http.StatusNotFound, "POST", "/api/v1/functions", `{"name":"other","hub":"nowhere","endpoint":"http://x/"}`)
	y.want(http.StatusBadRequest, "POST", "/api/v1/functions", `{"name":"other","hub":"orders","endpoint":"http://x/","breaker":"5"}`)
	y.want(http.StatusBadRequest, "POST", "/api/v1/functions", `{"name":"a b","hub":"orders","endpoint":"http://x/"}`)
	y.want(http.StatusBadRequest, "PATCH", "/api/v1/functions/billing", `{"hub":"other"}`)

	y.want(http.StatusOK, "POST", "/api/v1/functions/billing/pause", `{"reason":"because"}`).json(t, &f)
	if f.State != "paused" || f.Circuit.State != "held" || f.Circuit.Reason != "because" || !strings.Contains(f.Circuit.By, "RootManage") {
		t.Errorf("paused %+v", f)
	}
	y.want(http.StatusOK, "POST", "/api/v1/functions/billing/resume", nil).json(t, &f)
	testkit.Equal(t, f.Circuit.State, "closed", "resumed %+v", f.Circuit)
	y.want(http.StatusOK, "PATCH", "/api/v1/functions/billing", `{"retries":-1}`).json(t, &f)
	testkit.Equal(t, f.Retries, -1, "changed %+v", f)
	testkit.Equal(t, len(f.Headers), 1, "changed %+v", f)
	c := read[admin.Circuit](t, y.want(http.StatusOK, "POST", "/api/v1/circuits/billing/open?hub=orders&group=g", `{"reason":"drill"}`))
	if c.State != "held" || !c.Yard {
		t.Errorf("opened %+v", c)
	}
	y.want(http.StatusNotFound, "GET", "/api/v1/circuits/nobody", nil)
	y.want(http.StatusNoContent, "DELETE", "/api/v1/functions/billing", nil)
	y.want(http.StatusNotFound, "GET", "/api/v1/functions/billing", nil)
}

// F4: poison events are listed without their bodies, shown with them, and redriven once.
func TestPoisonEventsAreListedAndRedriven(t *testing.T) {
	y := functionYard(t)
	y.hub("bad", 1)
	original := event.Text(`{"n":1}`)
	original.ContentType, original.Key = "application/json", "home-1"
	original.Partition, original.Sequence, original.Offset = "1", 7, "7"
	y.putAway("bad", poison.Record{
		ID: poison.ID("billing", "orders", "1", 7), Function: "billing", Hub: "orders", Group: "g", Partition: "1", Sequence: 7, Offset: "7",
		Reason: "boom", Stack: "goroutine 1", Attempts: 4, Event: original,
	})
	list := read[struct{ Poison []admin.PoisonEvent }](t, y.want(http.StatusOK, "GET", "/api/v1/hubs/bad/poison?function=billing&since=1h&max=5", nil))
	if len(list.Poison) != 1 || list.Poison[0].Event != nil || list.Poison[0].Reason != "boom" || list.Poison[0].Key != "home-1" || list.Poison[0].Redriven {
		t.Fatalf("listed %+v", list)
	}
	y.want(http.StatusOK, "GET", "/api/v1/hubs/bad/poison?id=billing/orders/1/7", nil).json(t, &list)
	if one := list.Poison[0]; !strings.Contains(string(one.Event), `"n":1`) || one.Stack == "" {
		t.Errorf("shown %+v %s", one, one.Event)
	}
	y.want(http.StatusNotFound, "GET", "/api/v1/hubs/bad/poison?id=billing/orders/1/8", nil)
	testkit.Equal(t, len(read[struct{ Poison []admin.PoisonEvent }](t, y.want(http.StatusOK, "GET", "/api/v1/hubs/bad/poison?until=1h", nil)).Poison), 0, "put away before")
	y.want(http.StatusBadRequest, "GET", "/api/v1/hubs/bad/poison?until=late", nil)
	would := read[admin.PoisonRedriven](t, y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{"dryRun":true}`))
	testkit.That(t, would.Redriven == 1 && would.DryRun && !would.More, "a dry run gives %+v", would)
	done := read[admin.PoisonRedriven](t, y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{}`))
	if done.Redriven != 1 || done.Failed != 0 || done.More {
		t.Errorf("redriven %+v", done)
	}
	y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{}`).json(t, &done)
	testkit.Equal(t, done.Redriven, 0, "redriven again %+v", done)
	y.want(http.StatusBadRequest, "POST", "/api/v1/hubs/bad/poison/redrive", `{"rate":-1}`)
	y.want(http.StatusNotFound, "GET", "/api/v1/hubs/nowhere/poison", nil)
}

// putAwayFrom writes a poison event of an event of partition 0 of a hub.
func (y *yard) putAwayFrom(hub string, n int64, change ...func(*poison.Record)) {
	y.t.Helper()
	l := poison.Record{
		ID: poison.ID("billing", hub, "0", n), Function: "billing", Hub: hub, Partition: "0", Sequence: n, Reason: "boom", Attempts: 4,
		Event: event.Text("x"),
	}
	for _, c := range change {
		c(&l)
	}
	y.putAway("bad", l)
}

// F4: an operator is told to which hub poison events went, and asked where they name several.
func TestPoisonEventsOfSeveralHubs(t *testing.T) {
	y := functionYard(t)
	y.hub("bad", 1)
	y.hub("payroll", 1)
	y.putAwayFrom("orders", 1)
	y.putAwayFrom("orders", 2)
	y.putAwayFrom("payroll", 3)
	refused := y.want(http.StatusConflict, "POST", "/api/v1/hubs/bad/poison/redrive", `{}`)
	for _, text := range []string{"several-source-hubs", `\"orders\", \"payroll\"`, "source"} {
		if !strings.Contains(string(refused.body), text) {
			t.Errorf("it says %s, without %s", refused.body, text)
		}
	}
	list := read[struct{ Poison []admin.PoisonEvent }](t, y.want(http.StatusOK, "GET", "/api/v1/hubs/bad/poison?source=Payroll", nil))
	testkit.MustEqual(t, len(list.Poison), 1, "listed %+v", list)
	testkit.Equal(t, list.Poison[0].Hub, "payroll", "listed %+v", list)
	done := read[admin.PoisonRedriven](t, y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{"source":"ORDERS"}`))
	testkit.Equal(t, done.Redriven, 2, "redriven %+v", done)
	testkit.Equal(t, done.Hub, "orders", "redriven %+v", done)
	done = admin.PoisonRedriven{}
	y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{}`).json(t, &done)
	testkit.Equal(t, done.Redriven, 1, "the rest: %+v", done)
	testkit.Equal(t, done.Hub, "payroll", "the rest: %+v", done)
	done = admin.PoisonRedriven{}
	y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{"source":"orders"}`).json(t, &done)
	testkit.Equal(t, done.Redriven, 0, "nothing is left: %+v", done)
	testkit.Equal(t, done.Hub, "", "nothing is left: %+v", done)
}

// F4: a request redrives so many, says whether there are more, and is not kept from them by those
// that it may not.
func TestPoisonEventsAreRedrivenInPortions(t *testing.T) {
	y := functionYard(t)
	y.hub("bad", 1)
	for n := range int64(5) {
		y.putAwayFrom("orders", n, func(l *poison.Record) {
			if n == 1 {
				l.Redriven = 7
			}
		})
	}
	for _, want := range []admin.PoisonRedriven{{Redriven: 2, Failed: 1, More: true}, {Redriven: 2, Failed: 1, More: true}, {Failed: 1}} {
		done := read[admin.PoisonRedriven](t, y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{"max":2}`))
		if done.Redriven != want.Redriven || done.Failed != want.Failed || done.More != want.More || len(done.Errors) != 1 {
			t.Errorf("got %+v, want %+v", done, want)
		}
	}
	cfg, err := redriveConfig(admin.PoisonRedriveRequest{Rate: math.MaxInt})
	if err != nil || cfg.Limit != setaside.MaxRound {
		t.Errorf("with a rate beyond measure at most %d are redriven, %v", cfg.Limit, err)
	}
	if cfg, err = redriveConfig(admin.PoisonRedriveRequest{Rate: 2}); err != nil || cfg.Limit != 60 {
		t.Errorf("with two a second at most %d are redriven, %v", cfg.Limit, err)
	}
}

// F4: a poison event without its event says so.
func TestAPoisonEventThatIsAReference(t *testing.T) {
	y := functionYard(t)
	y.hub("bad", 1)
	y.putAwayFrom("orders", 1, func(l *poison.Record) { l.Event = event.Bytes(make([]byte, 1<<20)) })
	list := read[struct{ Poison []admin.PoisonEvent }](t, y.want(http.StatusOK, "GET", "/api/v1/hubs/bad/poison", nil))
	if len(list.Poison) != 1 || !list.Poison[0].Reference || !strings.HasPrefix(list.Poison[0].Reason, "too large") {
		t.Errorf("listed %+v", list)
	}
	done := read[admin.PoisonRedriven](t, y.want(http.StatusOK, "POST", "/api/v1/hubs/bad/poison/redrive", `{}`))
	if done.Failed != 1 || !strings.Contains(done.Errors[0], "not kept any more") {
		t.Errorf("redriven %+v", done)
	}
}

func TestANoticeCanBeTried(t *testing.T) {
	y := functionYard(t)
	y.want(http.StatusNoContent, "POST", "/api/v1/notices/test", `{"target":"mailto:a@b"}`)
	y.want(http.StatusUnprocessableEntity, "POST", "/api/v1/notices/test", `{"target":"mailto:bad@b"}`)
}

func TestAYardWithoutFunctionsSaysSo(t *testing.T) {
	y := newYard(t)
	y.want(http.StatusNotImplemented, "GET", "/api/v1/functions", nil)
}
