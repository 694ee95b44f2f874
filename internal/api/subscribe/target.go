package subscribe

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// applyTarget chooses where events go. Naming one kind of target takes the place of another, with
// what belongs to that alone.
func applyTarget(r admin.SubscriptionRequest, s *topics.Settings) error {
	given := 0
	for _, is := range []bool{r.Endpoint != nil, r.Hub != nil, r.Pull != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return invalid("endpoint", "a subscription has one target: give an endpoint, a hub, or pull")
	case r.Endpoint != nil:
		return applyWebhook(r, s)
	case r.Hub != nil:
		s.Hub, s.Webhook, s.Pull, s.Keys = *r.Hub, nil, nil, nil
	case r.Pull != nil:
		pull := &topics.Pull{}
		set(r.Pull.MaxDeliveries, &pull.MaxDeliveries)
		if err := duration("pull.lock", &r.Pull.Lock, &pull.Lock); err != nil {
			return err
		}
		if s.Pull != nil {
			s.Pull = pull
			return nil
		}
		s.SetPull(pull)
	}
	return nil
}

// applyWebhook changes a copy: the present definition is not ours.
func applyWebhook(r admin.SubscriptionRequest, s *topics.Settings) error {
	var hook egress.Endpoint
	url := *r.Endpoint
	if s.Webhook != nil {
		hook = *s.Webhook
	}
	if strings.HasSuffix(url, admin.HiddenQuery) {
		if url != hideQuery(hook.URL) {
			return invalid("endpoint", "the query is hidden, and that of another URL is not known: write the whole URL, like https://example.com/hook?code=KEY")
		}
		url = hook.URL
	}
	if r.OAuth == nil || r.OAuth.TokenURL != "" && r.OAuth.Secret == "" { // it stays, or its secret does
		if err := topics.CheckMove(hook, url); err != nil {
			return err
		}
	}
	hook.URL = url
	s.Webhook, s.Hub, s.Pull = &hook, "", nil
	return nil
}

func showTarget(s topics.Settings, secrets bool, shown *admin.Subscription) {
	shown.Hub = s.Hub
	if s.Pull != nil {
		shown.Pull = &admin.Pull{Lock: durationIfAny(s.Pull.Lock)}
		if n := s.Pull.MaxDeliveries; n != 0 {
			shown.Pull.MaxDeliveries = &n
		}
	}
	if s.Webhook == nil {
		return
	}
	shown.Endpoint = s.Webhook.URL
	if !secrets {
		shown.Endpoint = hideQuery(s.Webhook.URL)
	}
}

// hideQuery leaves out what may be a key.
func hideQuery(url string) string {
	base, query, _ := strings.Cut(url, "?")
	if query == "" {
		return url
	}
	return base + admin.HiddenQuery
}
