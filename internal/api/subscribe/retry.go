package subscribe

import (
	"cmp"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

func applyRetry(r admin.SubscriptionRequest, s *topics.Settings) error {
	set(r.Attempts, &s.Retry.MaxAttempts)
	if err := duration("ttl", r.TTL, &s.Retry.TimeToLive); err != nil {
		return err
	}
	if err := duration("maxRetryAfter", r.MaxRetryAfter, &s.Retry.MaxRetryAfter); err != nil {
		return err
	}
	if r.RetrySchedule != nil {
		s.Retry.Schedule = nil
		if *r.RetrySchedule != "" {
			steps, err := retry.ParseSchedule(*r.RetrySchedule)
			if err != nil {
				return invalid("retrySchedule", "%v", err)
			}
			s.Retry.Schedule = steps
		}
	}
	if r.NoRetry != nil {
		s.Retry.NoRetry = r.NoRetry
	}
	if r.RetryFloors == nil {
		return nil
	}
	s.Retry.Floors = nil
	for status, least := range r.RetryFloors {
		code, d, err := retry.ParseFloor(status + "=" + least)
		if err != nil {
			return invalid("retryFloors", "%v", err)
		}
		if s.Retry.Floors == nil {
			s.Retry.Floors = map[int]time.Duration{}
		}
		s.Retry.Floors[code] = d
	}
	return nil
}

func showRetry(s topics.Settings, _ bool, shown *admin.Subscription) {
	shown.Retry = showPolicy(s.Retry)
}

func showPolicy(p retry.Policy) admin.RetryPolicy {
	shown := admin.RetryPolicy{
		Attempts: cmp.Or(p.MaxAttempts, retry.DefaultAttempts), TTL: quantity.FormatHours(cmp.Or(p.TimeToLive, retry.DefaultTimeToLive)), NoRetry: p.NoRetry,
		MaxRetryAfter: durationIfAny(p.MaxRetryAfter),
	}
	for _, step := range p.Schedule {
		shown.Schedule = append(shown.Schedule, quantity.FormatHours(step))
	}
	for status, least := range p.Floors {
		if shown.Floors == nil {
			shown.Floors = map[string]string{}
		}
		name := strconv.Itoa(status)
		if status == 0 {
			name = "other"
		}
		shown.Floors[name] = quantity.FormatHours(least)
	}
	return shown
}
