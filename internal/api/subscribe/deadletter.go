package subscribe

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// applyDeadLetter takes a place that reads like the present one for it, signature, key and all.
func applyDeadLetter(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.DeadLetter != nil && *r.DeadLetter != s.DeadLetter.String() {
		if strings.HasSuffix(*r.DeadLetter, admin.HiddenQuery) {
			return invalid("deadLetter", "the signature is hidden, and that of another container is not known: write the whole URL, like blob:https://account.blob.core.windows.net/dead?SIGNATURE")
		}
		target, err := topics.ParseTarget(*r.DeadLetter)
		if err != nil {
			return err
		}
		s.DeadLetter = target
	}
	set(r.DeadLetterKey, &s.DeadLetter.Key)
	return nil
}

func showDeadLetter(s topics.Settings, _ bool, shown *admin.Subscription) {
	if s.DeadLetter.Kind != "" {
		shown.DeadLetter = s.DeadLetter.String()
	}
}
