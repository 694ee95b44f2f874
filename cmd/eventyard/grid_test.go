package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G7: who watches a subscription sees each change, and waits for a yard that is away.
func TestWatchingASubscription(t *testing.T) {
	address, err := new(ports).free()
	testkit.Must(t, err)
	data := t.TempDir()
	yard, url := serving(t, data, address)
	do(t, "topic", "create", "orders", "--server", url)
	do(t, "subscription", "create", "worker", "--topic", "orders", "--pull", "--server", url)
	watch := launch(t, "subscription", "show", "worker", "--watch", "--server", url)
	for watch.line() != "state         active" {
	}
	do(t, "subscription", "pause", "worker", "--server", url)
	for watch.line() != "state         paused" {
	}
	yard.stopYard()
	yard, _ = serving(t, data, address)
	do(t, "subscription", "continue", "worker", "--server", url)
	for watch.line() != "state         active" {
	}
	do(t, "subscription", "delete", "worker", "--yes", "--server", url)
	if _, err := watch.rest(); !isProblem(err, "subscription-not-found") {
		t.Errorf("watching what is gone ended with %v", err)
	}
	watch = launch(t, "subscription", "show", "nope", "--watch", "--server", url)
	if _, err := watch.rest(); !isProblem(err, "subscription-not-found") {
		t.Errorf("watching what never was ended with %v", err)
	}
	yard.stopYard()
}

// What is shown anew stands where it stood, without flicker.
func TestShowingAgainOnAScreen(t *testing.T) {
	var out bytes.Buffer
	c := subscriptionCommands{&cli{stdout: &out}}
	testkit.Must(t, c.showAgain(true, asText, admin.Subscription{Name: "a", State: "active"}))
	if text := out.String(); !strings.HasPrefix(text, "\x1b[H") || !strings.HasSuffix(text, "\x1b[J") || strings.Count(text, "\x1b[K\n") != strings.Count(text, "\n") {
		t.Errorf("printed %q", text)
	}
}

// G5, G6, G7, G8: all that a subscription does is told in words.
func TestSubscriptionsInWords(t *testing.T) {
	soon := time.Now().Add(90 * time.Second)
	s := admin.Subscription{
		Name: "billing", SourceHub: "clicks", State: "disabled", Why: "the endpoint\nasked for it", Endpoint: "https://x/", Schema: "eventgrid",
		Retry:      admin.RetryPolicy{Attempts: 1, TTL: "1h"},
		DeadLetter: "folder:dead", DeadLetters: &admin.DeadLetterCounts{Kept: 1200, Unwritten: 3, Problem: "no space"},
		Stats: &admin.DeliveryStats{
			Matched: 12345, Delivered: 1, Requests: 1, Failed: map[string]int64{"Busy": 2, "NotFound": 1}, InFlight: 1, Queued: 2, Parked: 3000, Behind: 4,
			Waiting:  []admin.Waiting{{Wait: "10s", Events: 5}, {Wait: "1h", Events: 6}},
			Oldest:   new(time.Now().Add(-time.Minute)),
			Endpoint: admin.EndpointHealth{State: "probation", Failures: 12, Last: "Busy", Until: &soon},
		},
	}
	var out bytes.Buffer
	testkit.Must(t, (subscriptionCommands{&cli{}}).showSubscription(&out, asText, s))
	for _, want := range []string{
		"subscription  billing of hub clicks\n", `state         disabled: the endpoint\nasked for it` + "\n", "retry         1 attempt within 1h\n",
		"dead letters  folder:dead, 1,200 kept, 3 yet to be written; they cannot be written: no space\n", "matched       12,345\n",
		"delivered     1 in 1 request\n", "failed        2 Busy, 1 NotFound\n", "dropped       0\n", "in progress   1, 2 queued, 3,000 parked, 4 not yet looked at\n",
		"waiting       5 for 10s, 6 for 1h\n", "oldest        published 1m", "endpoint      probation, 12 failures in a row, the last Busy; nothing is sent for 1m",
		"(eventyard subscription probe ends that)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
}

func TestAttemptsInWords(t *testing.T) {
	next := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out bytes.Buffer
	err := printTable(&cli{stdout: &out}, []admin.Attempt{
		{EventID: "a", Events: 3, Attempt: 2, Status: 503, Outcome: "Busy", Took: "1ms", Answer: strings.Repeat("long ", 30), NextTry: &next},
		{EventID: "b", Events: 1, Attempt: 1, Outcome: "TimedOut", Took: "30s", Error: "no answer\x1b[31m"},
	}, "", nil, attemptRow)
	testkit.Must(t, err)
	for _, want := range []string{"a and 2 more", " 503 ", "2026-01-02T03:04:05.000Z", "…\n", " - ", `no answer\x1b[31m` + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
}

// G8: a redrive with a rate keeps to it from one request to the next.
func TestARedriveKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(admin.RedriveRequest{Rate: 0.5})
		if p.most != 1 {
			t.Errorf("%d are asked for", p.most)
		}
		began := time.Now()
		for range 3 {
			testkit.Must(t, p.rest(t.Context(), 1))
		}
		testkit.Equal(t, time.Since(began), 6*time.Second, "three took")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		testkit.ErrorIs(t, p.rest(ctx, 1), errInterrupted, "interrupted")
		for _, r := range []admin.RedriveRequest{{}, {Rate: 5, DryRun: true}} {
			if p := newPace(r); p.most != 0 || p.rest(ctx, 1000) != nil {
				t.Errorf("%+v is slowed down", r)
			}
		}
	})
}

// A redrive goes on from where the yard ended, for what had died by then.
func TestARedriveInParts(t *testing.T) {
	var asked []admin.RedriveRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // whether the subscription is pending
			http.NotFound(w, r)
			return
		}
		var q admin.RedriveRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		asked = append(asked, q)
		if len(asked) == 1 {
			_, _ = io.WriteString(w, `{"redriven":2,"skipped":1,"next":7,"until":"2026-01-02T03:04:05Z"}`)
			return
		}
		_, _ = io.WriteString(w, `{"redriven":1,"skipped":0,"until":"2026-01-02T03:04:05Z"}`)
	}))
	defer server.Close()
	command := launch(t, "dead", "redrive", "billing", "--server", server.URL)
	if said, err := command.rest(); err != nil || said != "redrove 3 events\n" || !strings.Contains(command.stderr.String(), "1 event came back too often") {
		t.Errorf("said %q, %q, %v", said, command.stderr, err)
	}
	if len(asked) != 2 || asked[1].From != 7 || asked[1].Until != "2026-01-02T03:04:05Z" {
		t.Errorf("asked was %+v", asked)
	}
}

// Dead letters come in pages, and it is told truly whether there are more.
func TestDeadLettersInPages(t *testing.T) {
	const there = 2500
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from, most int
		_, _ = fmt.Sscan(r.URL.Query().Get("from"), &from)
		_, _ = fmt.Sscan(r.URL.Query().Get("max"), &most)
		page := admin.DeadLetterPage{Letters: []admin.DeadLetter{}, Total: there}
		for n := from; n < there && len(page.Letters) < most; n++ {
			page.Letters = append(page.Letters, admin.DeadLetter{Number: int64(n)})
		}
		if len(page.Letters) == most {
			page.Next = int64(from + most)
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	for most, more := range map[int]bool{0: false, 1: true, 1000: true, 2499: true, there: false, 9999: false} {
		command := launch(t, "dead", "list", "billing", "--max", fmt.Sprint(most), "--server", server.URL)
		said, err := command.rest()
		want := min(most, there)
		if most == 0 {
			want = there
		}
		if err != nil || strings.Count(said, "\n") != want+1 || strings.Contains(command.stderr.String(), "there are more") != more {
			t.Errorf("--max %d: %d lines, %q, %v", most, strings.Count(said, "\n"), command.stderr, err)
		}
	}
}

// G2: filters are told as they were typed, and what cannot be is shown as it is.
func TestFiltersInWords(t *testing.T) {
	for text, want := range map[string]string{
		``: "",
		`{"includedEventTypes":["a","b"],"subjectBeginsWith":"/x"}`:                                          "type a or b; subject begins with /x",
		`{"advancedFilters":[{"operatorType":"NumberGreaterThan","key":"data.n","value":1.50}]}`:             "data.n NumberGreaterThan 1.50",
		`{"advancedFilters":[{"operatorType":"NumberIn","key":"data.n","values":[12345678901234567890,2]}]}`: "data.n NumberIn 12345678901234567890,2",
		`{"advancedFilters":[{"operatorType":"StringIn","key":"data.c","values":["a, b","c"]}]}`:             `data.c StringIn ["a, b","c"]`,
		`{"advancedFilters":[{"operatorType":"BoolEquals","key":"data.c","value":true}]}`:                    "data.c BoolEquals true",
		`[1]`: "[1]",
	} {
		testkit.Equal(t, strings.Join(showFilter(json.RawMessage(text)), "; "), want, "%s", text)
	}
}

// G7: who resumes is told whether there was anything to end.
func TestResumingInWords(t *testing.T) {
	for state, want := range map[string]string{
		"probation": "the endpoint of a gets events again: its probation is over",
		"probing":   "the endpoint of a gets events again: its probation is over",
		"failing":   "the endpoint of a was not on probation (it is failing): nothing had to be ended",
	} {
		s := admin.Subscription{Name: "a", Stats: &admin.DeliveryStats{Endpoint: admin.EndpointHealth{State: state}}}
		testkit.Equal(t, showProbed(s), want, "%s", state)
	}
	if got := showProbed(admin.Subscription{Name: "a", Pull: &admin.Pull{}}); !strings.Contains(got, "a has no endpoint") {
		t.Errorf("pulled from: %q", got)
	}
	if got := showProbed(admin.Subscription{Name: "a", State: "paused"}); !strings.Contains(got, "eventyard subscription resume a") {
		t.Errorf("paused: %q", got)
	}
}

// Who looks at headers sees what each request is, and long data does not fill the screen.
func TestListeningShowsWhatEachRequestIs(t *testing.T) {
	var out, said bytes.Buffer
	l := &listener{cli: &cli{stdout: &out, stderr: &said}, headers: true}
	for _, r := range []struct{ method, kind string }{{"OPTIONS", ""}, {"POST", "SubscriptionValidation"}, {"POST", "Notification"}, {"POST", "SubscriptionDeletion"}} {
		request := httptest.NewRequest(r.method, "/hook?x=1", nil)
		request.Header.Set("aeg-event-type", r.kind)
		l.showHeaders(request)
	}
	for _, want := range []string{"--- OPTIONS /hook?x=1  (OPTIONS: ", "--- POST /hook?x=1  (validation: ", "--- POST /hook?x=1\n", "(SubscriptionDeletion)\nAeg-Event-Type: SubscriptionDeletion\n---\n"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &said)
		}
	}
	long := `"` + strings.Repeat("é", 2000) + `"`
	l.show(grid.Delivery{Event: grid.Event{Type: "t", Data: []byte(long)}})
	if text := out.String(); !strings.HasSuffix(text, "é… (4002 bytes)\n") || len(text) > maxShown+200 {
		t.Errorf("printed %d bytes, which end %q", len(text), text[len(text)-30:])
	}
}
