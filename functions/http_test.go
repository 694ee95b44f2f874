package functions

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/invoke"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: a program is called over HTTP, and its answers are verdicts.
func TestAProgramIsCalledOverHTTP(t *testing.T) {
	var got *http.Request
	var events []map[string]any
	answer := func(w http.ResponseWriter) {}
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		events = nil
		testkit.Check(t, json.NewDecoder(r.Body).Decode(&events))
		answer(w)
	}))
	defer program.Close()
	handle := HTTP(program.URL, HTTPConfig{Header: http.Header{"X-Key": {"secret"}}})
	defer func() { httpOf(handle).caller.Close() }()
	b := &Batch{Events: []event.Event{event.Text("a"), event.Text("b")}, Attempt: 3,
		Function: "bill", Hub: "orders", Group: "g", Partition: "7", Epoch: 9}
	b.Events[1].Sequence = 1
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   triage.Verdict
	}{
		{"200 is done", func(w http.ResponseWriter) {}, triage.Done},
		{"500 has failed", func(w http.ResponseWriter) { w.WriteHeader(500) }, triage.Failed},
		{"503 is unavailable", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(503)
		}, triage.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer = c.answer
			err := handle(t.Context(), b)
			if j := judge(err, b.Events); j.whole.Verdict != c.want {
				t.Errorf("%+v of %v", j, err)
			}
		})
	}
	if len(events) != 2 || events[1]["id"] != "bill/orders/7/1" || got.Header.Get("X-Key") != "secret" {
		t.Errorf("sent %v with %v", events, got.Header)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBad)
	testkit.ErrorIs(t, handle(ctx, b), errBad, "with a context that has ended")
}

func TestAnswersForSingleEventsBecomeResults(t *testing.T) {
	err := verdictOf(invoke.Answer{Each: map[int]invoke.Result{
		0: {Verdict: invoke.Failed, Error: "no"}, 1: {Verdict: invoke.Later, Wait: time.Minute}, 2: {Verdict: invoke.Poison, Error: "rotten"},
		3: {Verdict: invoke.Skip, Error: "old"}, 4: {Verdict: invoke.Untouched}, 5: {Verdict: invoke.Done},
	}})
	events := make([]event.Event, 7)
	for i := range events {
		events[i].Sequence = int64(i)
	}
	j := judge(err, events)
	want := map[int64]triage.Result{
		0: {Verdict: triage.Failed, Reason: "no"}, 1: {Verdict: triage.Later, Wait: time.Minute, Reason: "again after 1m0s"},
		2: {Verdict: triage.Poison, Reason: "rotten"}, 3: {Verdict: triage.Skip, Reason: "old"}, 4: {Verdict: triage.Untouched},
	}
	testkit.That(t, len(j.each) == len(want) && j.whole.Verdict == triage.Done, "judged %+v", j)
	for n, r := range want {
		testkit.Equal(t, j.each[n], r, "event %d is judged", n)
	}
	if err := verdictOf(invoke.Answer{Each: map[int]invoke.Result{}}); err != nil {
		t.Errorf("all done is %v", err)
	}
}

func TestAHandlerOfHTTPIsKnownAndNoOtherIsCalled(t *testing.T) {
	called := false
	own := func(context.Context, *Batch) error { called = true; return nil }
	testkit.That(t, httpOf(own) == nil && !called, "a function of the user's was taken for one of HTTP's")
	if f := httpOf(HTTP("http://localhost:1", HTTPConfig{})); f == nil || f.caller == nil || f.err != nil {
		t.Errorf("it is %+v", f)
	}
	bad := HTTP("nowhere", HTTPConfig{})
	if f := httpOf(bad); f == nil || f.err == nil {
		t.Errorf("it is %+v", f)
	}
	err := Chain(bad, func(next Handler) Handler { return next })(t.Context(), &Batch{})
	if err == nil || !strings.Contains(err.Error(), "give one like http://") {
		t.Errorf("called all the same it says %v", err)
	}
}
