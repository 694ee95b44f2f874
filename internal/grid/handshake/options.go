package handshake

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// options asks as CloudEvents' webhooks do (reference §10.2): consent is a header of the answer.
// An endpoint that answers well and without it may have to ask somebody first: then a GET or
// POST of the callback agrees. It is signed as deliveries are, with nothing for a body.
func (a *Asker) options(ctx context.Context, s topics.Subscription, callback string) topics.Agreement {
	rate := int(min(math.Ceil(max(s.Rate, 0)*60), math.MaxInt32)) // requests a minute; 0: any
	answer, err := a.ask(ctx, func() (egress.Request, error) {
		signer, err := signature.NewSigner(s.Keys)
		if err != nil {
			return egress.Request{}, err
		}
		h := header(s)
		h.Set("WebHook-Request-Origin", a.cfg.Origin)
		h.Set("WebHook-Request-Callback", callback)
		if rate > 0 {
			h.Set("WebHook-Request-Rate", strconv.Itoa(rate))
		}
		signer.Sign(h, topics.NewUUID(), time.Now(), nil)
		return egress.Request{Endpoint: *s.Webhook, Method: http.MethodOptions, Header: h}, nil
	})
	if err != nil {
		return silent(err)
	}
	// A status alone never is consent: OPTIONS is answered by many who know nothing of events. But
	// one that refuses is a refusal.
	allowed := strings.TrimSpace(answer.Header.Get("WebHook-Allowed-Origin"))
	switch {
	case answer.Status < 200 || answer.Status > 299:
		return refusal(s.Webhook.URL, answer, "to OPTIONS: it has to agree by the header WebHook-Allowed-Origin: "+a.cfg.Origin)
	case allowed == "":
		return topics.Agreement{Awaiting: true}
	case allowed != "*" && !strings.EqualFold(allowed, a.cfg.Origin):
		return refused("the endpoint allows events from %.80q, and this is %s: it has to answer WebHook-Allowed-Origin: %s, or *", allowed, a.cfg.Origin, a.cfg.Origin)
	}
	return topics.Agreement{Agreed: true, Rate: granted(answer.Header.Get("WebHook-Allowed-Rate"), rate)}
}

// granted reads what an endpoint allows: a number, or * for any. Where it says nothing that can
// be read the rate that was asked for holds.
func granted(text string, asked int) int {
	text = strings.TrimSpace(text)
	if text == "*" {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return int(n)
	}
	return asked
}
