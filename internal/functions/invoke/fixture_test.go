package invoke

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

var enqueued = time.Date(2026, 11, 15, 12, 0, 0, 123_000_000, time.UTC)

// callOf is a call with events, the first of which has the sequence number 17.
func callOf(events ...event.Event) Call {
	for i := range events {
		events[i].Partition, events[i].Sequence, events[i].Offset, events[i].Enqueued = "3", int64(17+i), fmt.Sprint(17+i), enqueued
	}
	return Call{Function: "billing", Hub: "orders", Group: "bills", Partition: "3", Attempt: 2, Epoch: 5, Events: events}
}

// threeEvents is a call with three small ones.
func threeEvents() Call {
	return callOf(event.Text(`{"n":1}`), event.Text(`{"n":2}`), event.Text(`{"n":3}`))
}

// written is the body of a call.
func written(t testing.TB, f Format, call Call) string {
	t.Helper()
	l := borrow()
	defer l.letGo()
	testkit.Must(t, l.write(f, &call))
	testkit.MustThat(t, json.Valid(l.body), "wrote what is no JSON: %s", l.body)
	return string(l.body)
}

// serve starts a program.
func serve(t testing.TB, program http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(program)
	t.Cleanup(s.Close)
	return s
}

// caller is one that is let go with the test.
func caller(t testing.TB, cfg Config) *Caller {
	t.Helper()
	c, err := New(cfg)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// does calls and wants an answer, be it a bad one.
func does(t testing.TB, c *Caller, call Call) Answer {
	t.Helper()
	a, err := c.Do(t.Context(), call)
	testkit.Must(t, err)
	return a
}

// wantFailed wants the whole batch to have failed, with a text that has all parts.
func wantFailed(t testing.TB, a Answer, status int, parts ...string) {
	t.Helper()
	wantAs(t, Failed, a, status, parts...)
}

func wantAs(t testing.TB, want Verdict, a Answer, status int, parts ...string) {
	t.Helper()
	if a.Verdict != want || a.Each != nil || a.Status != status || a.Wait != 0 {
		t.Errorf("the answer is %+v, want verdict %d on all with status %d", a, want, status)
	}
	for _, part := range parts {
		testkit.That(t, strings.Contains(a.Error, part), "the text is %q, want %q in it", a.Error, part)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	testkit.Check(t, err)
	return string(all)
}
