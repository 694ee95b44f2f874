package subscribe

import (
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// applyPlain takes over what stands for itself.
func applyPlain(r admin.SubscriptionRequest, s *topics.Settings) (err error) {
	if r.Schema != nil {
		s.Output = ""
		if *r.Schema != "" {
			if s.Output, err = schema.ParseKind(*r.Schema); err != nil {
				return invalid("schema", "%v", err)
			}
		}
	}
	if r.Expires != nil {
		s.Expires = time.Time{}
		if *r.Expires != "" {
			if s.Expires, err = time.Parse(time.RFC3339, *r.Expires); err != nil {
				return invalid("expires", "%q is no time: write it like 2027-01-31T18:00:00Z", *r.Expires)
			}
		}
	}
	set(r.Binary, &s.Binary)
	set(r.MaxEvents, &s.MaxEvents)
	set(r.PreferredKiB, &s.PreferredKiB)
	set(r.Concurrency, &s.Concurrency)
	set(r.Rate, &s.Rate)
	set(r.OrderBy, &s.OrderBy)
	set(r.FromStart, &s.FromStart)
	set(r.SkipValidation, &s.SkipValidation)
	set(r.DisableOnGone, &s.DisableOnGone)
	set(r.Paused, &s.Paused)
	set(r.Description, &s.Description)
	if r.Labels != nil {
		s.Labels = copyOf(r.Labels)
	}
	return duration("timeout", r.Timeout, &s.Timeout)
}

func showPlain(s topics.Settings, _ bool, shown *admin.Subscription) {
	shown.Schema, shown.Binary = string(s.Output), s.Binary
	shown.MaxEvents, shown.PreferredKiB = s.MaxEvents, s.PreferredKiB
	shown.Timeout, shown.Concurrency, shown.Rate = durationIfAny(s.Timeout), s.Concurrency, s.Rate
	shown.OrderBy = s.OrderBy
	shown.Expires = spec.TimeIfAny(s.Expires)
	shown.SkipValidation, shown.DisableOnGone = s.SkipValidation, s.DisableOnGone
	shown.Description, shown.Labels = s.Description, s.Labels
}
