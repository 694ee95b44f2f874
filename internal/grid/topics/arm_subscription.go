package topics

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/schema"
)

// armSubscription is the properties of a subscription, of a topic or (the last two) of a
// namespace's topic. Each is read only when it is given, so that what is left out stays.
type armSubscription struct {
	Destination                    json.RawMessage `json:"destination"`
	DeliveryWithResourceIdentity   json.RawMessage `json:"deliveryWithResourceIdentity"`
	Filter                         json.RawMessage `json:"filter"`
	Labels                         json.RawMessage `json:"labels"`
	ExpirationTimeUTC              json.RawMessage `json:"expirationTimeUtc"`
	EventDeliverySchema            json.RawMessage `json:"eventDeliverySchema"`
	RetryPolicy                    json.RawMessage `json:"retryPolicy"`
	DeadLetterDestination          json.RawMessage `json:"deadLetterDestination"`
	DeadLetterWithResourceIdentity json.RawMessage `json:"deadLetterWithResourceIdentity"`
	DeliveryConfiguration          json.RawMessage `json:"deliveryConfiguration"`
	FiltersConfiguration           json.RawMessage `json:"filtersConfiguration"`
}

// ParseSubscriptionARM reads a subscription as management calls of Event Grid write it, over
// present settings, which it does not change. What the body leaves out stays, which is what PATCH
// means; null takes it away. For PUT give it zero settings, or present ones whose secrets and
// extras (signing keys, certificates, limits) are to stay.
//
// Reads never show secrets, so that somebody who reads, changes and writes back sends none: an
// endpointUrl that is missing, a secret header that is "Hidden" and a container's URL without its
// signature stand for the present ones.
//
// Beyond Event Grid's own members it knows: an EventHub destination's eventHub (a hub of this
// yard by its name, where Azure has a resourceId); for dead letters endpointType Yard, Folder
// (path) and EventHub, and of StorageBlob a blobContainerUrl, or the account's URL in resourceId,
// and its accountKey. Errors wrap ErrInvalid.
func ParseSubscriptionARM(body []byte, present Settings) (Settings, error) {
	var doc struct {
		Properties armSubscription `json:"properties"`
	}
	if err := read("subscription", body, &doc); err != nil {
		return Settings{}, err
	}
	s, p := present, doc.Properties
	for _, part := range []struct {
		raw   json.RawMessage
		parse parser
	}{
		{p.DeliveryConfiguration, reads("deliveryConfiguration", parseDeliveryConfiguration)},
		{p.Destination, reads("destination", parseDestination)},
		{p.DeliveryWithResourceIdentity, reads("deliveryWithResourceIdentity", parseIdentityDestination)},
		{p.Filter, reads("filter", parseFilter)},
		{p.FiltersConfiguration, reads("filtersConfiguration", parseFiltersConfiguration)},
		{p.Labels, reads("labels", func(labels []string, s *Settings) error { s.Labels = labels; return nil })},
		{p.ExpirationTimeUTC, reads("expirationTimeUtc", parseExpiration)},
		{p.EventDeliverySchema, reads("eventDeliverySchema", parseDeliverySchema)},
		{p.RetryPolicy, reads("retryPolicy", parseRetryPolicy)},
		{p.DeadLetterDestination, reads("deadLetterDestination", parseDeadLetter)},
		{p.DeadLetterWithResourceIdentity, reads("deadLetterWithResourceIdentity", parseIdentityDeadLetter)},
	} {
		if len(part.raw) == 0 {
			continue
		}
		if err := part.parse(part.raw, &s); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}

func parseFilter(f filter.Config, s *Settings) error {
	s.Filter = f
	dropNulls(s.Filter.Advanced)
	return nil
}

// armFilters has no words for subjects, which stay.
type armFilters struct {
	IncludedEventTypes []string           `json:"includedEventTypes"`
	Filters            []filter.Condition `json:"filters"`
}

func parseFiltersConfiguration(f armFilters, s *Settings) error {
	s.Filter.EventTypes, s.Filter.Advanced = f.IncludedEventTypes, f.Filters
	dropNulls(s.Filter.Advanced)
	return nil
}

// dropNulls takes operands that are null for missing ones: some tools send both members.
func dropNulls(conditions []filter.Condition) {
	for i := range conditions {
		if isNull(conditions[i].Value) {
			conditions[i].Value = nil
		}
		if isNull(conditions[i].Values) {
			conditions[i].Values = nil
		}
	}
}

// timeForms are the spellings of times, all UTC where they do not say.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05", "2006-01-02"}

func parseExpiration(text string, s *Settings) error {
	s.Expires = time.Time{}
	if text == "" {
		return nil
	}
	for _, form := range timeForms {
		at, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		if at.Year() > 1 { // year 1 is how some write that there is none
			s.Expires = at.UTC()
		}
		return nil
	}
	return invalid("expirationTimeUtc %.40q: write it like 2027-01-31T18:00:00Z", text)
}

func parseDeliverySchema(name string, s *Settings) (err error) {
	if s.Output = ""; name != "" {
		s.Output, err = schema.ParseKind(name)
	}
	return invalidIf("eventDeliverySchema", err)
}

// armRetry is a retry policy. The Edge edition spelled the time to live eventExpiryInMinutes.
type armRetry struct {
	Attempts *int   `json:"maxDeliveryAttempts"`
	Minutes  *int64 `json:"eventTimeToLiveInMinutes"`
	Expiry   *int64 `json:"eventExpiryInMinutes"`
}

// parseRetryPolicy leaves alone what Event Grid has no words for: schedule, floors, statuses.
func parseRetryPolicy(policy armRetry, s *Settings) error {
	if err := s.parseAttempts("maxDeliveryAttempts", policy.Attempts); err != nil {
		return err
	}
	minutes := cmp.Or(policy.Minutes, policy.Expiry)
	if minutes == nil {
		s.Retry.TimeToLive = 0
		return nil
	}
	if *minutes < 1 || *minutes > maxMinutes {
		return invalid("eventTimeToLiveInMinutes of %d: give 1 to 1440", *minutes)
	}
	if *minutes != wholeMinutes(s.Retry.TimeToLive) { // else it is the present one, rounded
		s.Retry.TimeToLive = time.Duration(*minutes) * time.Minute
	}
	return nil
}

// maxMinutes is what no policy allows, and no duration overflows at.
const maxMinutes = 60 * 24 * 365

// wholeMinutes is how a time to live is shown.
func wholeMinutes(d time.Duration) int64 { return int64((d + time.Minute - 1) / time.Minute) }

func (s *Settings) parseAttempts(what string, n *int) error {
	s.Retry.MaxAttempts = 0
	if n == nil {
		return nil
	}
	if *n < 1 {
		return invalid("%s of %d: give 1 to 30", what, *n)
	}
	s.Retry.MaxAttempts = *n
	return nil
}
