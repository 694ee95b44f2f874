package admin

import (
	"context"
	"encoding/json"
	"net/http"
)

// Finding is what one condition of a subscription's filter says of an event.
type Finding struct {
	Key      string          `json:"key"`
	Operator string          `json:"operator"`
	Value    json.RawMessage `json:"value,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
	// Met is what the event has for the key; absent: nothing. A long value is cut to a text: Cut says so.
	Met json.RawMessage `json:"met,omitempty"`
	Cut bool            `json:"cut,omitempty"`
	// Passes says whether the condition is met.
	Passes bool `json:"passes"`
}

// Explanation is why an event matches a subscription, or why it does not.
type Explanation struct {
	Subscription string `json:"subscription"`
	Matches      bool   `json:"matches"`
	// Summary says it in a sentence.
	Summary    string    `json:"summary"`
	Conditions []Finding `json:"conditions"`
}

// Explain says which conditions of a subscription's filter an event would pass. The event is written
// as it would be published to the subscription's topic, or sent to its source hub. Nothing is
// published.
func (c *Client) Explain(ctx context.Context, s SubscriptionRef, event json.RawMessage) (Explanation, error) {
	return one[Explanation](ctx, c, s.request(http.MethodPost, event, "explain"))
}
