// Package handshake asks an endpoint whether it wants events, before the first one goes out: by
// Event Grid's validation event, or by CloudEvents' OPTIONS request. And it notifies an endpoint,
// once and for courtesy, that its subscription is gone.
package handshake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Config is what an asker works with.
type Config struct {
	Client *egress.Client
	// Origin is how the yard names itself to CloudEvents endpoints (WebHook-Request-Origin).
	Origin string
	// Timeout of one try (zero: 30 s), Tries after time-outs (zero: 3), Pause between (zero: 5 s).
	Timeout time.Duration
	Tries   int
	Pause   time.Duration
	Log     *slog.Logger
}

// Asker implements topics.Validator. All methods may be called by many goroutines at once.
type Asker struct{ cfg Config }

func New(cfg Config) *Asker {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Tries = cmp.Or(cfg.Tries, 3)
	cfg.Pause = cmp.Or(cfg.Pause, 5*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Asker{cfg}
}

// Validate asks (reference §10): with an OPTIONS request where CloudEvents are delivered, with
// an event in Event Grid's schema for all others. Who is not asked has agreed.
func (a *Asker) Validate(ctx context.Context, s topics.Subscription, topic, code, url string) topics.Agreement {
	switch {
	case s.Webhook == nil || s.SkipValidation:
		return topics.Agreement{Agreed: true}
	case cloudEvents(s):
		return a.options(ctx, s, url)
	}
	return a.event(ctx, s, topic, code, url)
}

// cloudEvents reports whether they are what is delivered. A hub's events are CloudEvents where
// nothing is said.
func cloudEvents(s topics.Subscription) bool {
	return s.Output == schema.CloudEvents || s.Output == "" && s.Source.Hub != ""
}

// ask sends a request until it is answered, or fails other than by a time-out. Each try takes a
// request of its own: what was sent is not the asker's any more.
func (a *Asker) ask(ctx context.Context, request func() (egress.Request, error)) (egress.Answer, error) {
	for try := 1; ; try++ {
		r, err := request()
		if err != nil {
			return egress.Answer{}, err
		}
		r.Timeout, r.HeadBytes = a.cfg.Timeout, -1
		answer := a.cfg.Client.Do(ctx, r)
		if answer.Status != 0 {
			return answer, nil
		}
		a.cfg.Log.Debug("endpoint did not answer the handshake", "try", try, "outcome", answer.Outcome, "error", answer.Err)
		if answer.Outcome != retry.TimedOut || try == a.cfg.Tries {
			return answer, answer.Err
		}
		select {
		case <-time.After(a.cfg.Pause):
		case <-ctx.Done():
			return answer, fmt.Errorf("asking it was given up: %w", context.Cause(ctx))
		}
	}
}

// refused is an agreement that is none.
func refused(format string, args ...any) topics.Agreement {
	return topics.Agreement{Why: fmt.Sprintf(format, args...)}
}

// silent says that there was no answer.
func silent(err error) topics.Agreement {
	if errors.Is(err, egress.ErrForbidden) {
		return refused("the endpoint cannot be asked: %v", err)
	}
	return refused("the endpoint did not answer: %v: see that it is reachable from here, or set skipValidation (--skip-validation) if you trust it", err)
}

// said shows what an endpoint answered, its beginning at least.
func said(a egress.Answer) string {
	text := fmt.Sprintf("the endpoint answered %d %s", a.Status, http.StatusText(a.Status))
	if len(a.Head) > 0 {
		text += fmt.Sprintf(" (%.200q)", a.Head)
	}
	return text
}

// aboutKeys is for an endpoint that may have refused because it cannot check the signature: it has to
// know the key before it is asked.
func aboutKeys(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusPreconditionFailed:
		return ". If it checks signatures, give it a key first: eventyard subscription make-key prints one, which --signing-key (signingKeys) takes"
	}
	return ""
}
