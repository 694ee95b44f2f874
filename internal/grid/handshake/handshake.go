// Package handshake asks an endpoint whether it wants events, before the first one goes out: by
// Event Grid's validation event, or by CloudEvents' OPTIONS request. And it notifies an endpoint,
// once and for courtesy, that its subscription is gone.
package handshake

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/internal/transport/reason"
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
	return refused("the endpoint did not answer: %v: %s", err, adviceFor(err))
}

// adviceFor says what to do about an endpoint that did not answer. Whatever keeps a connection from being made keeps
// events from it, too: only where it may go by itself is it advice not to ask.
func adviceFor(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return "name the endpoint as its certificate does, or set skipVerify (--endpoint-skip-verify) if you trust the way to it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew its certificate, and see that the clocks of both machines are right; or set skipVerify (--endpoint-skip-verify) if you trust the way to it"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "give the certificate of its authority by ca (--endpoint-ca FILE), or set skipVerify (--endpoint-skip-verify) if you trust the way to it"
	case reason.WithoutTLS(err):
		return "write http:// if that is meant, or give the port that has TLS"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "give the port of its HTTPS"
	case strings.Contains(err.Error(), reason.NotHTTP):
		return "give the port of its HTTP"
	}
	return "see that it is reachable from here, or set skipValidation (--skip-validation) if you trust it"
}

// refusal says what to do about an endpoint that refused: what it should have answered, unless something is more
// likely to be wrong.
func refusal(url string, a egress.Answer, should string) topics.Agreement {
	if wantsTLS(url, a) {
		return refused("%s: that port has TLS: write https:// in place of http://", said(a))
	}
	return refused("%s %s; or set skipValidation (--skip-validation) if you trust it%s", said(a), should, aboutKeys(a.Status))
}

// wantsTLS tells whether that is what servers with TLS answer to who speaks plain HTTP. They say so in words alone.
func wantsTLS(url string, a egress.Answer) bool {
	if a.Status != http.StatusBadRequest || !strings.HasPrefix(strings.ToLower(url), "http:") {
		return false
	}
	text := strings.ToLower(string(a.Head))
	return strings.Contains(text, "http request to an https server") || // Go
		strings.Contains(text, "plain http request was sent to https port") || // nginx
		strings.Contains(text, "plain http to an ssl-enabled server port") || // Apache
		strings.Contains(text, "requires tls") // IIS, Tomcat
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
