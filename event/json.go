package event

import (
	"encoding/json"
	"fmt"
)

// JSON makes an event of a value, as encoding/json writes it, and says what it is about:
//
//	placed, err := event.JSON("order.placed", order)
func JSON(subject string, v any) (Event, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Event{}, fmt.Errorf("event %q: %w", subject, err)
	}
	return Event{Body: body, ContentType: "application/json", Subject: subject}, nil
}
