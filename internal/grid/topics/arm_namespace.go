package topics

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/spec"
)

// armQueue and armPush are the two ways in which a namespace's topic delivers (reference §18).
type armQueue struct {
	LockSeconds *int64          `json:"receiveLockDurationInSeconds"`
	MaxCount    *int            `json:"maxDeliveryCount"`
	TimeToLive  string          `json:"eventTimeToLive"`
	DeadLetter  json.RawMessage `json:"deadLetterDestinationWithResourceIdentity"`
}

type armPush struct {
	MaxCount    *int                   `json:"maxDeliveryCount"`
	TimeToLive  string                 `json:"eventTimeToLive"`
	Destination *armDestination        `json:"destination"`
	Identity    armIdentityDestination `json:"deliveryWithResourceIdentity"`
	DeadLetter  json.RawMessage        `json:"deadLetterDestinationWithResourceIdentity"`
}

type armDelivery struct {
	Mode  string    `json:"deliveryMode"`
	Queue *armQueue `json:"queue"`
	Push  *armPush  `json:"push"`
}

// parseDeliveryConfiguration takes null as nothing said.
func parseDeliveryConfiguration(d *armDelivery, s *Settings) error {
	switch {
	case d == nil:
		return nil
	case strings.EqualFold(d.Mode, "Queue"), d.Mode == "" && d.Queue != nil:
		return d.Queue.parse(s)
	case strings.EqualFold(d.Mode, "Push"), d.Mode == "" && d.Push != nil:
		return d.Push.parse(s)
	}
	return invalid("deliveryMode %.32q: write Queue or Push", d.Mode)
}

// defaultDeliveries is also the most.
const defaultDeliveries = 10

// parse also empties what is only for events that are pushed.
func (q *armQueue) parse(s *Settings) error {
	if q == nil {
		q = &armQueue{}
	}
	pull := &Pull{}
	if q.LockSeconds != nil {
		pull.Lock = time.Duration(min(*q.LockSeconds, math.MaxInt32)) * time.Second
		if *q.LockSeconds < 1 || spec.Subscription.CheckValue("pull.lock", pull.Lock) != nil {
			return invalid("receiveLockDurationInSeconds of %d: give 60 to 300", *q.LockSeconds)
		}
	}
	if q.MaxCount != nil {
		if *q.MaxCount < 1 {
			return invalid("maxDeliveryCount of %d: give 1 to %d", *q.MaxCount, defaultDeliveries)
		}
		pull.MaxDeliveries = *q.MaxCount
	}
	if err := s.parseTimeToLive(q.TimeToLive); err != nil {
		return err
	}
	s.SetPull(pull)
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
	if err := parseDestination(p.Destination, s); err != nil {
		return err
	}
	if err := parseIdentityDestination(p.Identity, s); err != nil {
		return err
	}
	return parseDeadLetterIfAny(p.DeadLetter, s)
}

// parseDeadLetterIfAny lets what is left out stay; null takes it away.
func parseDeadLetterIfAny(raw json.RawMessage, s *Settings) error {
	if len(raw) == 0 {
		return nil
	}
	if isNull(raw) {
		s.DeadLetter = Target{}
		return nil
	}
	return reads("deadLetterDestinationWithResourceIdentity", parseIdentityDeadLetter)(raw, s)
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
