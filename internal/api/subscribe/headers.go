package subscribe

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// applyHeaders replaces the delivery properties. A secret one without a value keeps the value it
// has: whoever reads a subscription, changes something else and writes it back does not know it.
func applyHeaders(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.Headers == nil {
		return nil
	}
	known := map[string]string{}
	for _, h := range s.Headers {
		known[strings.ToLower(h.Name)] = h.Value
	}
	s.Headers = nil
	for _, h := range r.Headers {
		if h.Secret && h.Value == "" && h.Field == "" {
			h.Value = known[strings.ToLower(h.Name)]
		}
		s.Headers = append(s.Headers, topics.Header(h))
	}
	return nil
}

// checkHeaders refuses a new target for secret headers whose values the request does not give again.
func checkHeaders(r admin.SubscriptionRequest, present, changed topics.Settings) error {
	given := map[string]bool{}
	for _, h := range r.Headers {
		given[strings.ToLower(h.Name)] = h.Value != ""
	}
	for _, h := range changed.Headers {
		if h.Secret && h.Value != "" && !given[strings.ToLower(h.Name)] {
			if err := topics.CheckHeaderMove(present, changed, h.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func showHeaders(s topics.Settings, secrets bool, shown *admin.Subscription) {
	for _, h := range s.Headers {
		if h.Secret && !secrets {
			h.Value = ""
		}
		shown.Headers = append(shown.Headers, admin.Header(h))
	}
}
