package handshake

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// event asks by a validation event (reference §10.1). Only 200 will do: 202 promises nothing.
func (a *Asker) event(ctx context.Context, s topics.Subscription, topic, code, url string) topics.Agreement {
	answer, err := a.ask(ctx, func() (egress.Request, error) {
		return post(s, notice{
			kind: "SubscriptionValidation", eventType: "Microsoft.EventGrid.SubscriptionValidationEvent", topic: topic,
			data: map[string]string{"validationCode": code, "validationUrl": url},
		})
	})
	// Members are found in any case: the real service is strict there, which helped nobody.
	var echo struct {
		ValidationResponse string `json:"validationResponse"`
	}
	switch {
	case err != nil:
		return silent(err)
	case answer.Status != http.StatusOK:
		return refusal(s.Webhook.URL, answer, "to the validation event: it has to answer 200 with a validationResponse, or 200 alone and somebody opens the validation URL")
	case json.Unmarshal(answer.Head, &echo) == nil && echo.ValidationResponse == code:
		return topics.Agreement{Agreed: true}
	}
	return topics.Agreement{Awaiting: true}
}

// Deleted notifies an Event Grid endpoint that its subscription was deleted: one try, best effort.
// CloudEvents have no such notice, and who never agreed to events gets none either.
func (a *Asker) Deleted(ctx context.Context, s topics.Subscription, topic string) {
	if s.Webhook == nil || cloudEvents(s) || s.State == topics.Pending || s.State == topics.Failed {
		return
	}
	r, err := post(s, notice{
		kind: "SubscriptionDeletion", eventType: "Microsoft.EventGrid.SubscriptionDeletedEvent", topic: topic,
		data: map[string]string{"eventSubscriptionId": topic + "/providers/Microsoft.EventGrid/eventSubscriptions/" + s.Name},
	})
	if err == nil {
		r.Timeout = a.cfg.Timeout
		err = a.cfg.Client.Do(ctx, r).Err
	}
	if err != nil {
		a.cfg.Log.Debug("endpoint was not told that its subscription is deleted", "subscription", s.Name, "error", err)
	}
}
