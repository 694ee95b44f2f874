package grid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// PullConfig says where a subscription for pull delivery is and who we are. At most one of Key,
// Signature and Token is given.
type PullConfig struct {
	// Endpoint is the URL of the namespace, such as http://localhost:8080, Topic and
	// Subscription the names in it; all are required.
	Endpoint, Topic, Subscription string
	// Key, Signature and Token are as in Config.
	Key       string
	Signature string
	Token     func(ctx context.Context) (token string, expires time.Time, err error)
	// HTTPClient, Retry and Log are as in Config.
	HTTPClient *http.Client
	Retry      Retry
	Log        *slog.Logger
}

// PullClient asks for the events of one subscription. Its methods may be called by many
// goroutines at once. It has nothing to close.
//
// An event that was received is locked: nobody else gets it, for as long as the subscription
// says (a minute if nothing else was said). Within that time it is to be acknowledged, released
// or rejected, or its lock renewed; else it comes again, to the next receiver.
type PullClient struct {
	base   string // up to the verb
	caller *caller
}

// NewPullClient makes a client; it does not connect.
func NewPullClient(cfg PullConfig) (*PullClient, error) {
	u, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("grid pull client: %w", err)
	}
	if cfg.Topic == "" || cfg.Subscription == "" {
		return nil, errors.New("grid pull client: no topic or no subscription: give the names of both")
	}
	login, err := newLogin(cfg.Key, cfg.Signature, cfg.Token, true)
	if err != nil {
		return nil, fmt.Errorf("grid pull client: %w", err)
	}
	u.RawQuery = ""
	return &PullClient{
		base: strings.TrimRight(u.String(), "/") + "/topics/" + url.PathEscape(cfg.Topic) +
			"/eventsubscriptions/" + url.PathEscape(cfg.Subscription),
		caller: newCaller(cfg.HTTPClient, login, cfg.Retry, cfg.Log),
	}, nil
}

// ReceiveConfig says how much to receive.
type ReceiveConfig struct {
	// MaxEvents is 1 to 100; 0 means 1.
	MaxEvents int
	// MaxWait is how long to wait where there is no event, to the second (Azure takes 10 s to 2
	// min); 0 means 1 minute.
	MaxWait time.Duration
}

// defaultWait is the grid's own.
const defaultWait = time.Minute

// Received is an event that is locked for us.
type Received struct {
	Event Event
	// Lock is what settles it.
	Lock string
	// Attempt counts how often it was handed out, this time included.
	Attempt int
}

// Receive gives events as soon as there are any, or none when MaxWait is over.
func (c *PullClient) Receive(ctx context.Context, cfg ReceiveConfig) ([]Received, error) {
	query := url.Values{}
	if cfg.MaxEvents > 0 {
		query.Set("maxEvents", strconv.Itoa(cfg.MaxEvents))
	}
	wait := defaultWait
	if cfg.MaxWait > 0 {
		wait = cfg.MaxWait
		query.Set("maxWaitTime", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	answer, err := c.caller.do(ctx, call{url: c.url("receive", query), waits: wait})
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", c.base, err)
	}
	received, err := decodeReceived(answer)
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", c.base, err)
	}
	return received, nil
}

func (c *PullClient) url(verb string, query url.Values) string {
	query.Set("api-version", namespaceVersion)
	return c.base + ":" + verb + "?" + query.Encode()
}

// decodeReceived reads an answer. One event that cannot be read spoils all of them: they come
// again, until the grid has handed that one out too often.
func decodeReceived(text []byte) ([]Received, error) {
	var answer struct {
		Value []struct {
			BrokerProperties struct {
				LockToken     string
				DeliveryCount int
			}
			Event json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	var received []Received
	for i, v := range answer.Value {
		m, err := decodeMembers(v.Event)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		e, err := decodeCloudEvent(m)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		received = append(received, Received{Event: e, Lock: v.BrokerProperties.LockToken, Attempt: v.BrokerProperties.DeliveryCount})
	}
	return received, nil
}

// Acknowledge says that events are done with: they do not come again. An error that is a
// *SettleError says which could not be; the others are.
func (c *PullClient) Acknowledge(ctx context.Context, locks ...string) error {
	return c.settle(ctx, "acknowledge", url.Values{}, locks)
}

// Release gives events back: they come again after the delay, which is 0, 10 s, 1 min, 10 min or
// 1 h. Errors are as with Acknowledge.
func (c *PullClient) Release(ctx context.Context, delay time.Duration, locks ...string) error {
	switch delay {
	case 0, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour:
	default:
		return fmt.Errorf("release after %v: give 0, 10 s, 1 min, 10 min or 1 h", delay)
	}
	query := url.Values{"releaseDelayInSeconds": {strconv.Itoa(int(delay / time.Second))}}
	return c.settle(ctx, "release", query, locks)
}

// Reject says that events can never be done: they are dead-lettered, or dropped where the
// subscription has no target for dead letters. Errors are as with Acknowledge.
func (c *PullClient) Reject(ctx context.Context, locks ...string) error {
	return c.settle(ctx, "reject", url.Values{}, locks)
}

// RenewLocks keeps events locked for as long again, from now. Errors are as with Acknowledge.
func (c *PullClient) RenewLocks(ctx context.Context, locks ...string) error {
	return c.settle(ctx, "renewLock", url.Values{}, locks)
}

// SettleError lists the events that could not be settled, mostly since their locks were over.
type SettleError struct{ Failed []LockError }

// LockError is why one event could not be settled, in the grid's words.
type LockError struct{ Lock, Code, Message string }

func (e *SettleError) Error() string {
	first := e.Failed[0]
	text := fmt.Sprintf("%d of the events could not be settled, the first: %s %s", len(e.Failed), first.Code, first.Message)
	return text + ": they come again; renew locks in time"
}

func (c *PullClient) settle(ctx context.Context, verb string, query url.Values, locks []string) error {
	if len(locks) == 0 {
		return nil
	}
	body, err := marshal(map[string]any{"lockTokens": locks})
	if err != nil {
		return fmt.Errorf("%s at %s: %w", verb, c.base, err)
	}
	text, err := c.caller.do(ctx, call{url: c.url(verb, query), contentType: "application/json", body: body})
	var answer struct {
		FailedLockTokens []struct {
			LockToken string
			Error     struct{ Code, Message string }
		}
	}
	if err == nil {
		if err = json.Unmarshal(text, &answer); err != nil {
			err = fmt.Errorf("read the answer: %w", err)
		}
	}
	if len(answer.FailedLockTokens) > 0 && err == nil {
		failed := &SettleError{}
		for _, f := range answer.FailedLockTokens {
			failed.Failed = append(failed.Failed, LockError{Lock: f.LockToken, Code: f.Error.Code, Message: f.Error.Message})
		}
		err = failed
	}
	if err != nil {
		return fmt.Errorf("%s at %s: %w", verb, c.base, err)
	}
	return nil
}
