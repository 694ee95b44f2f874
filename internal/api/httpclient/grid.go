package httpclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/api/gridwire"
)

// handshakePatience is how long creating or changing a subscription may take: its endpoint is
// asked first, several times if it does not answer.
const handshakePatience = 3 * time.Minute

// Topics lists all topics, without their keys.
func (c *Client) Topics(ctx context.Context) ([]gridwire.Topic, error) {
	var list struct {
		Topics []gridwire.Topic `json:"topics"`
	}
	err := c.call(ctx, http.MethodGet, []string{"topics"}, nil, &list)
	return list.Topics, err
}

// Topic shows one with its keys.
func (c *Client) Topic(ctx context.Context, name string) (gridwire.Topic, error) {
	var t gridwire.Topic
	err := c.call(ctx, http.MethodGet, []string{"topics", name}, nil, &t)
	return t, err
}

// CreateTopic makes one.
func (c *Client) CreateTopic(ctx context.Context, r gridwire.TopicRequest) (gridwire.Topic, error) {
	var t gridwire.Topic
	err := c.call(ctx, http.MethodPost, []string{"topics"}, r, &t)
	return t, err
}

// UpdateTopic changes one.
func (c *Client) UpdateTopic(ctx context.Context, name string, r gridwire.TopicRequest) (gridwire.Topic, error) {
	var t gridwire.Topic
	err := c.call(ctx, http.MethodPatch, []string{"topics", name}, r, &t)
	return t, err
}

// DeleteTopic deletes one with its events and subscriptions.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, []string{"topics", name}, nil, nil)
}

// RegenerateTopicKey makes key1 or key2 anew.
func (c *Client) RegenerateTopicKey(ctx context.Context, name, key string) (gridwire.Topic, error) {
	var t gridwire.Topic
	err := c.call(ctx, http.MethodPost, []string{"topics", name, "regenerate"}, map[string]string{"key": key}, &t)
	return t, err
}

// Which names a subscription; Topic or Hub are needed only where several sources have one of
// that name.
type Which struct{ Name, Topic, Hub string }

func (w Which) query() url.Values {
	v := url.Values{}
	if w.Topic != "" {
		v.Set("topic", w.Topic)
	}
	if w.Hub != "" {
		v.Set("hub", w.Hub)
	}
	return v
}

func (w Which) request(method string, body any, rest ...string) request {
	return request{method: method, path: append([]string{"subscriptions", w.Name}, rest...), query: w.query(), body: body}
}

// Subscriptions lists all, or those of one source.
func (c *Client) Subscriptions(ctx context.Context, of Which) ([]gridwire.Subscription, error) {
	var list struct {
		Subscriptions []gridwire.Subscription `json:"subscriptions"`
	}
	err := c.ask(ctx, request{method: http.MethodGet, path: []string{"subscriptions"}, query: of.query()}, &list)
	return list.Subscriptions, err
}

// Subscription shows one and how its deliveries go; with secrets also the whole URL of its
// endpoint and its signing keys.
func (c *Client) Subscription(ctx context.Context, w Which, secrets bool) (gridwire.Subscription, error) {
	r := w.request(http.MethodGet, nil)
	if secrets {
		r.query.Set("secrets", "true")
	}
	var s gridwire.Subscription
	err := c.ask(ctx, r, &s)
	return s, err
}

// CreateSubscription makes one. It is pending where somebody has to open its validation link.
func (c *Client) CreateSubscription(ctx context.Context, r gridwire.SubscriptionRequest) (gridwire.Subscription, error) {
	var s gridwire.Subscription
	err := c.patient(handshakePatience).call(ctx, http.MethodPost, []string{"subscriptions"}, r, &s)
	return s, err
}

// UpdateSubscription changes one.
func (c *Client) UpdateSubscription(ctx context.Context, w Which, r gridwire.SubscriptionRequest) (gridwire.Subscription, error) {
	var s gridwire.Subscription
	err := c.patient(handshakePatience).ask(ctx, w.request(http.MethodPatch, r), &s)
	return s, err
}

// patient is the same client for calls that may take long.
func (c *Client) patient(timeout time.Duration) *Client {
	other := *c
	other.cfg.Timeout = max(timeout, c.cfg.Timeout)
	return &other
}

// DeleteSubscription removes one with what waits for it.
func (c *Client) DeleteSubscription(ctx context.Context, w Which) error {
	return c.ask(ctx, w.request(http.MethodDelete, nil), nil)
}

// ResumeSubscription ends the probation of its endpoint.
func (c *Client) ResumeSubscription(ctx context.Context, w Which) error {
	return c.ask(ctx, w.request(http.MethodPost, nil, "resume"), nil)
}

// RotateSigningKey makes a new key beside the present ones, which go on for the overlap.
func (c *Client) RotateSigningKey(ctx context.Context, w Which, algorithm, overlap string) (gridwire.Subscription, error) {
	var s gridwire.Subscription
	err := c.ask(ctx, w.request(http.MethodPost, map[string]string{"algorithm": algorithm, "overlap": overlap}, "rotate-key"), &s)
	return s, err
}

// Attempts gives the last requests to its endpoint, newest first.
func (c *Client) Attempts(ctx context.Context, w Which) ([]gridwire.Attempt, error) {
	var list struct {
		Attempts []gridwire.Attempt `json:"attempts"`
	}
	err := c.ask(ctx, w.request(http.MethodGet, nil, "attempts"), &list)
	return list.Attempts, err
}

// DeadLetters gives a page of what could not be delivered, from a page's Next on.
func (c *Client) DeadLetters(ctx context.Context, w Which, choice gridwire.DeadChoice, from int64, most int) (gridwire.DeadPage, error) {
	r := w.request(http.MethodGet, nil, "dead")
	for name, value := range map[string]string{
		"eventId": choice.EventID, "eventType": choice.EventType, "reason": choice.Reason, "outcome": choice.Outcome,
		"since": choice.Since, "until": choice.Until,
	} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if choice.Redriven {
		r.query.Set("redriven", "true")
	}
	if from > 0 {
		r.query.Set("from", strconv.FormatInt(from, 10))
	}
	if most > 0 {
		r.query.Set("max", strconv.Itoa(most))
	}
	var page gridwire.DeadPage
	err := c.ask(ctx, r, &page)
	return page, err
}

// DeadLetter gives one with its event.
func (c *Client) DeadLetter(ctx context.Context, w Which, number int64) (gridwire.DeadLetter, error) {
	var l gridwire.DeadLetter
	err := c.ask(ctx, w.request(http.MethodGet, nil, "dead", strconv.FormatInt(number, 10)), &l)
	return l, err
}

// Redrive delivers some dead letters again; the answer's Next says where to go on.
func (c *Client) Redrive(ctx context.Context, w Which, r gridwire.RedriveRequest) (gridwire.Redriven, error) {
	var done gridwire.Redriven
	err := c.patient(handshakePatience).ask(ctx, w.request(http.MethodPost, r, "redrive"), &done)
	return done, err
}

// Purge forgets dead letters and tells how many.
func (c *Client) Purge(ctx context.Context, w Which, choice gridwire.DeadChoice) (int, error) {
	var done struct {
		Purged int `json:"purged"`
	}
	err := c.ask(ctx, w.request(http.MethodPost, choice, "purge"), &done)
	return done.Purged, err
}
