package topics

import (
	"encoding/json"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// armQueue and armPush are the two ways in which a namespace's topic delivers (reference §18).
type armQueue struct {
	LockSeconds *int64          `json:"receiveLockDurationInSeconds"`
	MaxCount    *int            `json:"maxDeliveryCount"`
	TimeToLive  string          `json:"eventTimeToLive"`
	DeadLetter  json.RawMessage `json:"deadLetterDestinationWithResourceIdentity"`
}

type armPush struct {
	MaxCount    *int            `json:"maxDeliveryCount"`
	TimeToLive  string          `json:"eventTimeToLive"`
	Destination json.RawMessage `json:"destination"`
	Identity    json.RawMessage `json:"deliveryWithResourceIdentity"`
	DeadLetter  json.RawMessage `json:"deadLetterDestinationWithResourceIdentity"`
}

func parseDeliveryConfiguration(raw json.RawMessage, s *Settings) error {
	if isNull(raw) {
		return nil
	}
	var cfg struct {
		Mode  string    `json:"deliveryMode"`
		Queue *armQueue `json:"queue"`
		Push  *armPush  `json:"push"`
	}
	if err := read("deliveryConfiguration", raw, &cfg); err != nil {
		return err
	}
	switch {
	case sameWord(cfg.Mode, "Queue"), cfg.Mode == "" && cfg.Queue != nil:
		return cfg.Queue.parse(s)
	case sameWord(cfg.Mode, "Push"), cfg.Mode == "" && cfg.Push != nil:
		return cfg.Push.parse(s)
	}
	return invalid("deliveryMode %.32q: write Queue or Push", cfg.Mode)
}

// parse also empties what is only for events that are pushed.
func (q *armQueue) parse(s *Settings) error {
	if q == nil {
		q = &armQueue{}
	}
	pull := &Pull{}
	if q.LockSeconds != nil {
		if *q.LockSeconds < 1 || *q.LockSeconds > int64(maxLock/time.Second) {
			return invalid("receiveLockDurationInSeconds of %d: give 60 to 300", *q.LockSeconds)
		}
		pull.Lock = time.Duration(*q.LockSeconds) * time.Second
	}
	if q.MaxCount != nil {
		if *q.MaxCount < 1 {
			return invalid("maxDeliveryCount of %d: give 1 to %d", *q.MaxCount, maxDeliveries)
		}
		pull.MaxDeliveries = *q.MaxCount
	}
	if err := s.parseTimeToLive(q.TimeToLive); err != nil {
		return err
	}
	s.Pull, s.Webhook, s.Hub = pull, nil, ""
	s.Retry = retry.Policy{TimeToLive: s.Retry.TimeToLive}
	s.Output, s.Binary, s.MaxEvents, s.PreferredKiB = "", false, 0, 0
	s.Headers, s.Keys = nil, nil
	s.Timeout, s.Concurrency, s.Rate, s.OrderBy = 0, 0, 0, ""
	return parseDeadLetterIfAny(q.DeadLetter, s)
}

func (p *armPush) parse(s *Settings) error {
	if p == nil {
		return invalid("deliveryMode Push: give push, with deliveryWithResourceIdentity or a destination")
	}
	if err := s.parseAttempts("maxDeliveryCount", p.MaxCount); err != nil {
		return err
	}
	if err := s.parseTimeToLive(p.TimeToLive); err != nil {
		return err
	}
	for _, target := range []struct {
		raw   json.RawMessage
		parse func(json.RawMessage, *Settings) error
	}{{p.Destination, parseDestination}, {p.Identity, parseIdentityDestination}} {
		if given(target.raw) {
			if err := target.parse(target.raw, s); err != nil {
				return err
			}
		}
	}
	return parseDeadLetterIfAny(p.DeadLetter, s)
}

// parseDeadLetterIfAny lets what is left out stay.
func parseDeadLetterIfAny(raw json.RawMessage, s *Settings) error {
	if len(raw) == 0 {
		return nil
	}
	if isNull(raw) {
		s.DeadLetter = Target{}
		return nil
	}
	return parseIdentityDeadLetter(raw, s)
}

func (s *Settings) parseTimeToLive(text string) error {
	s.Retry.TimeToLive = 0
	if text == "" {
		return nil
	}
	d, ok := parseISODuration(text)
	if !ok || d <= 0 {
		return invalid("eventTimeToLive %.40q: write it as ISO 8601 does, like PT30M or P1D", text)
	}
	s.Retry.TimeToLive = d
	return nil
}
