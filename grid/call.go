package grid

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/tracing"
)

// Retry is how a call that failed for a passing reason is tried again, with doubled and
// jittered delays, within the call's context.
type Retry struct {
	// Attempts in all; 0 means 5, 1 means that nothing is tried again.
	Attempts int
	// First and Max bound the delay; 0 means 200 ms and 10 s.
	First, Max time.Duration
	// MaxAfter is how long a wait the grid may ask for by Retry-After; where it asks for more, the
	// call ends at once, and its *CallError says how long. 0 means 1 minute.
	MaxAfter time.Duration
	// Timeout of one attempt; 0 means 30 s.
	Timeout time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	positive := func(d, otherwise time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return otherwise
	}
	r.First, r.Max = positive(r.First, 200*time.Millisecond), positive(r.Max, 10*time.Second)
	r.MaxAfter, r.Timeout = positive(r.MaxAfter, time.Minute), positive(r.Timeout, 30*time.Second)
	return r
}

// caller makes calls, and makes them again.
type caller struct {
	http  *http.Client
	login login
	retry Retry
	log   *slog.Logger
}

func newCaller(client *http.Client, l login, retry Retry, log *slog.Logger) *caller {
	if client == nil {
		client = &http.Client{}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	log = cmp.Or(log, slog.Default())
	return &caller{http: &own, login: l, retry: retry.withDefaults(), log: log}
}

// call is one POST. waits is what the grid may take for its answer beyond Timeout, since it was
// asked to wait.
type call struct {
	url, contentType string
	body             []byte
	waits            time.Duration
}

// do makes a call until it succeeds, cannot succeed, or has been made often enough.
func (c *caller) do(ctx context.Context, what call) ([]byte, error) {
	delay := c.retry.First
	for attempt := 1; ; attempt++ {
		answer, err := c.attempt(ctx, what)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, err)
		}
		asked, again := c.judge(err)
		if !again || attempt >= c.retry.Attempts {
			return nil, err
		}
		wait := max(delay/2+rand.N(delay/2+1), asked)
		c.log.Debug("trying again", "attempt", attempt, "after", wait, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ended(ctx, err)
		}
		delay = min(2*delay, c.retry.Max)
	}
}

// errLocal is an error of ours, which another attempt does not mend.
type errLocal struct{ error }

func (e errLocal) Unwrap() error { return e.error }

// judge says whether to try again, and how long the grid asks to wait.
func (c *caller) judge(err error) (asked time.Duration, again bool) {
	if errors.As(err, &errLocal{}) {
		return 0, false
	}
	answer := (*CallError)(nil)
	if !errors.As(err, &answer) {
		return 0, true // nobody answered
	}
	return answer.RetryAfter, answer.passing() && answer.RetryAfter <= c.retry.MaxAfter
}

// The most that is read of an answer: a hundred events of a megabyte, with escapes; and errors.
const (
	maxAnswer = 256 << 20
	maxFault  = 64 << 10
)

// attempt makes the call once.
func (c *caller) attempt(ctx context.Context, what call) ([]byte, error) {
	bound, cancel := context.WithTimeoutCause(ctx, what.waits+c.retry.Timeout, fmt.Errorf("no answer within %v", what.waits+c.retry.Timeout))
	defer cancel()
	r, err := http.NewRequestWithContext(bound, http.MethodPost, what.url, bytes.NewReader(what.body))
	if err != nil {
		return nil, errLocal{withoutURL(err)}
	}
	if what.contentType != "" {
		r.Header.Set("Content-Type", what.contentType)
	}
	r.Header.Set("Accept", "application/json")
	tracing.Of(ctx).SetHeader(r.Header)
	if err := c.login.apply(bound, r.Header); err != nil {
		return nil, errLocal{err}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, unanswered(bound, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // what else is 2xx promises nothing, or is no grid's
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault))
		if resp.StatusCode == http.StatusUnauthorized && c.login.bearer != nil {
			c.login.bearer.forget(bound)
		}
		return nil, newCallError(resp.StatusCode, resp.Header, body)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, unanswered(bound, err)
	}
	if len(body) > maxAnswer {
		return nil, errLocal{fmt.Errorf("the answer has more than %d bytes: ask for fewer events at once", maxAnswer)}
	}
	return body, nil
}

// unanswered is the error of an attempt without an answer: that it had no time any more, where
// that is why.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return withoutURL(err)
}

// withoutURL takes the URL out of an error: its query may have a key.
func withoutURL(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// ended is the error of a call whose context has ended: the context's, and what went wrong
// before if something did.
func ended(ctx context.Context, last error) error {
	if errors.Is(last, ctx.Err()) || errors.Is(last, context.Cause(ctx)) {
		return ctx.Err()
	}
	return fmt.Errorf("%w, after: %v", ctx.Err(), last)
}

// parseRetryAfter reads a number of seconds or a date; what is neither is nothing.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
