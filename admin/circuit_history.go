package admin

import (
	"context"
	"net/http"
	"time"
)

// CircuitHistory is what is known of a circuit's past.
type CircuitHistory struct {
	Circuit
	// Heard is from when on the node that answers has heard of changes.
	Heard *time.Time `json:"heardSince,omitempty"`
	// Changes are the newest, the oldest first.
	Changes []CircuitChange `json:"changes"`
	// Seconds are the failures within the window by second, of a circuit that is not closed those up
	// to its opening; Opening is how many of them each instance had.
	Seconds []CircuitSecond `json:"seconds"`
	Opening map[string]int  `json:"opening,omitempty"`
}

// CircuitChange is a state that a circuit took.
type CircuitChange struct {
	At       time.Time `json:"at"`
	State    string    `json:"state"`
	Term     int64     `json:"term"`
	Incident string    `json:"incident,omitempty"`
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Failures int       `json:"failures,omitempty"`
}

// CircuitSecond is the failures of one second.
type CircuitSecond struct {
	At       time.Time `json:"at"`
	Failures int       `json:"failures"`
}

// CircuitHistory shows how a circuit has changed, and the failures around it.
func (c *Client) CircuitHistory(ctx context.Context, r CircuitRef) (CircuitHistory, error) {
	return one[CircuitHistory](ctx, c, r.request(http.MethodGet, nil, "history"))
}
