package subscribe

import (
	"encoding/json"
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/filter"
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

func showFilter(s topics.Settings, _ bool, shown *admin.Subscription) {
	if filter, err := json.Marshal(s.Filter); err == nil && string(filter) != "{}" {
		shown.Filter = filter
	}
}
