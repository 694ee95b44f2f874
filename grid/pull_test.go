package grid

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func puller(t *testing.T, cfg PullConfig) *PullClient {
	t.Helper()
	cfg.Topic, cfg.Subscription, cfg.Key = "or ders", "billing", "k"
	c := testkit.Value(NewPullClient(cfg))(t)
	return c
}

// What is asked of the grid, and what is made of its answer.
func TestReceive(t *testing.T) {
	url, seen := topic(t, says(200, `{"value":[{"brokerProperties":{"lockToken":"L1","deliveryCount":2},"event":`+cloudOne+`}]}`), says(200, `{"value":[]}`))
	c := puller(t, PullConfig{Endpoint: url + "/"})
	got, err := c.Receive(t.Context(), ReceiveConfig{MaxEvents: 50, MaxWait: 10*time.Second + 1})
	testkit.Must(t, err)
	testkit.Diff(t, []Received{{Event: fromCloud, Lock: "L1", Attempt: 2}}, got)
	if got, err = c.Receive(t.Context(), ReceiveConfig{}); err != nil || len(got) != 0 {
		t.Errorf("nothing there: %+v, %v", got, err)
	}
	for i, query := range []string{"api-version=2024-06-01&maxEvents=50&maxWaitTime=11", "api-version=2024-06-01"} {
		r := (*seen)[i]
		if r.path != "POST /topics/or ders/eventsubscriptions/billing:receive" || r.query != query || r.header.Get("Authorization") != "SharedAccessKey k" {
			t.Errorf("asked %s?%s with %v", r.path, r.query, r.header)
		}
		testkit.Slices(t, []any{r.body, r.header.Get("Content-Length")}, []any{"", "0"}, "with a body")
	}
}

func TestReceiveErrors(t *testing.T) {
	for _, tt := range []struct {
		what   string
		answer func(http.ResponseWriter)
		want   string
	}{
		{"no such subscription", says(404, `{"error":{"code":"NotFound","message":"no billing"}}`), "no billing"},
		{"no JSON", says(200, "x"), "read the answer"},
		{"no CloudEvent", says(200, `{"value":[{"brokerProperties":{"lockToken":"L"},"event":{}}]}`), "event 1"},
		{"no event", says(200, `{"value":[{}]}`), "event 1"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			url, _ := topic(t, tt.answer)
			got, err := puller(t, PullConfig{Endpoint: url}).Receive(t.Context(), ReceiveConfig{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A long poll may take as long as was asked for, beyond the time of an attempt.
func TestReceiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: func(int, *http.Request) (*http.Response, error) {
			time.Sleep(65 * time.Second)
			r := response(200)
			r.Body = http.NoBody
			return r, nil
		}}
		c := puller(t, PullConfig{Endpoint: "https://ns.test", HTTPClient: n.client(), Retry: Retry{Timeout: 10 * time.Second}})
		if _, err := c.Receive(t.Context(), ReceiveConfig{}); err == nil || !strings.Contains(err.Error(), "read the answer") || len(n.times) != 1 {
			t.Errorf("%d attempts, %v", len(n.times), err)
		}
	})
}

func TestSettle(t *testing.T) {
	url, seen := topic(t, says(200, `{"succeededLockTokens":["a","b"],"failedLockTokens":[]}`))
	c := puller(t, PullConfig{Endpoint: url})
	ctx := t.Context()
	calls := []struct {
		err         error
		verb, query string
	}{
		{c.Acknowledge(ctx, "a", "b"), "acknowledge", "api-version=2024-06-01"},
		{c.Release(ctx, 0, "a", "b"), "release", "api-version=2024-06-01&releaseDelayInSeconds=0"},
		{c.Release(ctx, 10*time.Minute, "a", "b"), "release", "api-version=2024-06-01&releaseDelayInSeconds=600"},
		{c.Reject(ctx, "a", "b"), "reject", "api-version=2024-06-01"},
		{c.RenewLocks(ctx, "a", "b"), "renewLock", "api-version=2024-06-01"},
	}
	for i, call := range calls {
		t.Run(call.verb+"?"+call.query, func(t *testing.T) {
			r := (*seen)[i]
			if call.err != nil || r.path != "POST /topics/or ders/eventsubscriptions/billing:"+call.verb || r.query != call.query || r.body != `{"lockTokens":["a","b"]}` {
				t.Errorf("%v, asked %s?%s %s", call.err, r.path, r.query, r.body)
			}
		})
	}
	if err := c.Acknowledge(ctx); err != nil || len(*seen) != len(calls) {
		t.Errorf("nothing to settle: %v", err)
	}
	if err := c.Release(ctx, time.Second, "a"); err == nil || !strings.Contains(err.Error(), "give 0, 10 s") || len(*seen) != len(calls) {
		t.Errorf("a delay that is none: %v", err)
	}
}

// Some of the events may fail; the error tells which.
func TestSettleErrors(t *testing.T) {
	url, _ := topic(t, says(200, `{"succeededLockTokens":["a"],"failedLockTokens":[{"lockToken":"b","error":{"code":"TokenLost","message":"over"}}]}`), says(200, ""))
	c := puller(t, PullConfig{Endpoint: url})
	err := c.Acknowledge(t.Context(), "a", "b")
	failed := (*SettleError)(nil)
	if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0] != (LockError{"b", "TokenLost", "over"}) || !strings.Contains(err.Error(), "TokenLost over") {
		t.Errorf("got %v", err)
	}
	if err = c.Acknowledge(t.Context(), "a"); err == nil || errors.As(err, &failed) {
		t.Errorf("an empty answer: %v", err)
	}
}

func TestNewPullClientRefuses(t *testing.T) {
	for what, cfg := range map[string]PullConfig{
		"no endpoint":     {Topic: "t", Subscription: "s"},
		"no topic":        {Endpoint: "http://h", Subscription: "s"},
		"no subscription": {Endpoint: "http://h", Topic: "t"},
		"two credentials": {Endpoint: "http://h", Topic: "t", Subscription: "s", Key: "a", Signature: "b"},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := NewPullClient(cfg); err == nil {
				t.Errorf("%s: made", what)
			}
		})
	}
}
