package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Calls about the grid are what the API takes: names are single segments, what is empty travels.
func TestGridRequestsAreWhatTheAPITakes(t *testing.T) {
	billing := SubscriptionRef{Name: "billing", Hub: "shop/orders"}
	for what, tt := range map[string]struct {
		do           func(*Client, context.Context) error
		method, path string
		body         string
	}{
		"list topics":  {func(c *Client, ctx context.Context) error { _, err := c.Topics(ctx); return err }, "GET", "/api/v1/topics", ""},
		"show a topic": {func(c *Client, ctx context.Context) error { _, err := c.Topic(ctx, "a b"); return err }, "GET", "/api/v1/topics/a%20b", ""},
		"delete one":   {func(c *Client, ctx context.Context) error { return c.DeleteTopic(ctx, "a") }, "DELETE", "/api/v1/topics/a", ""},
		"make it anew": {func(c *Client, ctx context.Context) error {
			_, err := c.RegenerateTopicKey(ctx, "a", "key2")
			return err
		}, "POST", "/api/v1/topics/a/regenerate", `{"key":"key2"}`},
		"create one": {func(c *Client, ctx context.Context) error {
			_, err := c.CreateTopic(ctx, TopicRequest{Name: "a", Mapping: json.RawMessage(`{"id":{}}`)})
			return err
		}, "POST", "/api/v1/topics", `{"name":"a","mapping":{"id":{}}}`},
		"change one": {func(c *Client, ctx context.Context) error {
			_, err := c.UpdateTopic(ctx, "a", TopicRequest{DisableKeys: new(false)})
			return err
		}, "PATCH", "/api/v1/topics/a", `{"disableKeys":false}`},
		"list all": {func(c *Client, ctx context.Context) error {
			_, err := c.Subscriptions(ctx, SubscriptionRef{})
			return err
		}, "GET", "/api/v1/subscriptions", ""},
		"list a hub's": {func(c *Client, ctx context.Context) error {
			_, err := c.Subscriptions(ctx, SubscriptionRef{Hub: "shop/orders"})
			return err
		}, "GET", "/api/v1/subscriptions?hub=shop%2Forders", ""},
		"show one": {func(c *Client, ctx context.Context) error {
			_, err := c.Subscription(ctx, SubscriptionRef{Name: "x", Topic: "t", DomainTopic: "d"}, false)
			return err
		}, "GET", "/api/v1/subscriptions/x?domainTopic=d&topic=t", ""},
		"with secrets": {func(c *Client, ctx context.Context) error { _, err := c.Subscription(ctx, billing, true); return err }, "GET", "/api/v1/subscriptions/billing?hub=shop%2Forders&secrets=true", ""},
		"subscribe": {func(c *Client, ctx context.Context) error {
			_, err := c.CreateSubscription(ctx, SubscriptionRequest{Name: "x", Topic: "t", Types: []string{"a"}})
			return err
		}, "POST", "/api/v1/subscriptions", `{"name":"x","topic":"t","types":["a"]}`},
		"take away": {func(c *Client, ctx context.Context) error {
			_, err := c.UpdateSubscription(ctx, billing, SubscriptionRequest{Types: []string{}, TTL: new("")})
			return err
		}, "PATCH", "/api/v1/subscriptions/billing?hub=shop%2Forders", `{"types":[],"ttl":""}`},
		"unsubscribe": {func(c *Client, ctx context.Context) error { return c.DeleteSubscription(ctx, billing) }, "DELETE", "/api/v1/subscriptions/billing?hub=shop%2Forders", ""},
		"resume":      {func(c *Client, ctx context.Context) error { return c.ResumeSubscription(ctx, billing) }, "POST", "/api/v1/subscriptions/billing/resume?hub=shop%2Forders", ""},
		"probe":       {func(c *Client, ctx context.Context) error { return c.ProbeSubscription(ctx, billing) }, "POST", "/api/v1/subscriptions/billing/probe?hub=shop%2Forders", ""},
		"rotate": {func(c *Client, ctx context.Context) error {
			_, err := c.RotateSigningKey(ctx, billing, "hmac", "1h")
			return err
		}, "POST", "/api/v1/subscriptions/billing/rotate-key?hub=shop%2Forders", `{"algorithm":"hmac","overlap":"1h"}`},
		"attempts": {func(c *Client, ctx context.Context) error { _, err := c.Attempts(ctx, billing); return err }, "GET", "/api/v1/subscriptions/billing/attempts?hub=shop%2Forders", ""},
		"dead letters": {func(c *Client, ctx context.Context) error {
			_, err := c.DeadLetters(ctx, SubscriptionRef{Name: "x"}, DeadLetterChoice{}, 0, 0)
			return err
		}, "GET", "/api/v1/subscriptions/x/dead", ""},
		"chosen ones": {chosen, "GET", "/api/v1/subscriptions/x/dead?eventId=i&eventType=t&from=7&max=5&outcome=o&reason=r&redriven=true&since=2h&until=1h", ""},
		"a dead letter": {func(c *Client, ctx context.Context) error {
			_, err := c.DeadLetter(ctx, SubscriptionRef{Name: "x"}, 17)
			return err
		}, "GET", "/api/v1/subscriptions/x/dead/17", ""},
		"redrive": {func(c *Client, ctx context.Context) error {
			_, err := c.Redrive(ctx, SubscriptionRef{Name: "x"}, RedriveRequest{DeadLetterChoice: DeadLetterChoice{Since: "2h"}, From: 3, DryRun: true})
			return err
		}, "POST", "/api/v1/subscriptions/x/redrive", `{"since":"2h","from":3,"dryRun":true}`},
		"purge": {func(c *Client, ctx context.Context) error {
			_, err := c.Purge(ctx, SubscriptionRef{Name: "x"}, DeadLetterChoice{Numbers: []int64{1}})
			return err
		}, "POST", "/api/v1/subscriptions/x/purge", `{"numbers":[1]}`},
	} {
		t.Run(what, func(t *testing.T) {
			var method, path, body string
			client := dial(t, func(w http.ResponseWriter, r *http.Request) {
				all, _ := io.ReadAll(r.Body)
				method, path, body = r.Method, r.URL.RequestURI(), string(all)
				_, _ = io.WriteString(w, "{}")
			})
			testkit.Must(t, tt.do(client, t.Context()))
			if method != tt.method || path != tt.path || body != tt.body {
				t.Errorf("it was %s %s %s", method, path, body)
			}
		})
	}
}

func chosen(c *Client, ctx context.Context) error {
	choice := DeadLetterChoice{EventID: "i", EventType: "t", Reason: "r", Outcome: "o", Since: "2h", Until: "1h", Redriven: true}
	_, err := c.DeadLetters(ctx, SubscriptionRef{Name: "x"}, choice, 7, 5)
	return err
}

// G11: while the yard asks an endpoint a client waits, longer than for other answers.
func TestHandshakesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := New(Config{Server: "http://yard", Timeout: 10 * time.Second})
		testkit.Must(t, err)
		client.http.Transport = slow{time.Minute}
		for what, do := range map[string]func() error{
			"create": func() error {
				_, err := client.CreateSubscription(t.Context(), SubscriptionRequest{})
				return err
			},
			"change": func() error {
				_, err := client.UpdateSubscription(t.Context(), SubscriptionRef{Name: "x"}, SubscriptionRequest{})
				return err
			},
			"redrive": func() error {
				_, err := client.Redrive(t.Context(), SubscriptionRef{Name: "x"}, RedriveRequest{})
				return err
			},
		} {
			testkit.Check(t, do(), "%s", what)
		}
		if _, err := client.Topics(t.Context()); err == nil {
			t.Error("others are waited for as long")
		}
	})
}

// slow answers after a while.
type slow struct{ after time.Duration }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.after):
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
