package subscribe

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

func applyFilter(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.Types != nil {
		s.Filter.EventTypes = copyOf(r.Types)
	}
	set(r.SubjectBeginsWith, &s.Filter.SubjectBeginsWith)
	set(r.SubjectEndsWith, &s.Filter.SubjectEndsWith)
	set(r.SubjectCaseSensitive, &s.Filter.SubjectCaseSensitive)
	set(r.Arrays, &s.Filter.Arrays)
	if r.Filters == nil {
		return nil
	}
	s.Filter.Advanced = nil
	for _, text := range r.Filters {
		condition, err := readCondition(string(text))
		if err != nil {
			return invalid("filters", "%v", err)
		}
		s.Filter.Advanced = append(s.Filter.Advanced, condition)
	}
	return nil
}

// readCondition takes a filter as a person types it, or as Event Grid's management shape has it.
func readCondition(text string) (c filter.Condition, err error) {
	if !json.Valid([]byte(text)) {
		return filter.ParseCondition(text)
	}
	if json.Unmarshal([]byte(text), &c) != nil {
		return c, fmt.Errorf(`%.80s is no filter: write it like "data.total NumberGreaterThan 100", or like {"operatorType":"NumberGreaterThan","key":"data.total","value":100}`, text)
	}
	return c, nil
}

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
