package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

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
