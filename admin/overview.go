package admin

import (
	"context"
	"net/http"
)

// Overview is how a yard is: what it does now, and what somebody should do about it.
type Overview struct {
	Namespace string `json:"namespace"`
	At        Time   `json:"at"`
	// Whole: it is of the whole yard, which needs Manage to the namespace. Else it is of the hubs that the
	// token reaches, and of nothing else.
	Whole  bool           `json:"whole"`
	Totals OverviewTotals `json:"totals"`
	Rates  OverviewRates  `json:"rates"`
	// WorstLag is that of the group whose oldest event has waited for longest; nil: none waits.
	WorstLag *GroupLag `json:"worstLag,omitempty"`
	// Needs are what somebody should look at, the worst first.
	Needs []Need `json:"needs"`
	// Missing are the nodes that did not answer: what they have counted is not in it.
	Missing []string `json:"missing,omitempty"`
}

// OverviewTotals is how many there are.
type OverviewTotals struct {
	Hubs          int `json:"hubs"`
	Partitions    int `json:"partitions"`
	Topics        int `json:"topics"`
	Subscriptions int `json:"subscriptions"`
	Functions     int `json:"functions"`
	Nodes         int `json:"nodes"`
}

// OverviewRates are means of the last ten seconds; nil where nothing was measured, or the token does not
// reach it.
type OverviewRates struct {
	// Events and bytes a second.
	Published *float64 `json:"published,omitempty"`
	Bytes     *float64 `json:"bytes,omitempty"`
	Read      *float64 `json:"read,omitempty"`
	Delivered *float64 `json:"delivered,omitempty"`
	Failed    *float64 `json:"failed,omitempty"`
	Calls     *float64 `json:"calls,omitempty"`
	// Waiting is how many events wait to be delivered, or for another try.
	Waiting *float64 `json:"waiting,omitempty"`
}

// GroupLag is how far a consumer group is behind.
type GroupLag struct {
	Hub    string `json:"hub"`
	Group  string `json:"group"`
	Events int64  `json:"events"`
	// Seconds is how long the oldest of them has been waiting.
	Seconds float64 `json:"seconds"`
	// Instances are those alive.
	Instances int `json:"instances"`
}

// Severities of needs.
const (
	SeverityBroken  = "broken"
	SeverityWarning = "warning"
)

// Need is something that somebody should look at.
type Need struct {
	// Kind is one of circuit-open, circuit-held, circuit-half-open, probation, validation-pending,
	// validation-failed, subscription-disabled, subscription-paused, dead-letters, group-idle, group-behind,
	// disk-full, disk-low, write-failed, damage, scrub-findings, streams-lost, streams-leaderless, certificate,
	// node-lost, node-quiet and node-silent.
	Kind     string     `json:"kind"`
	Severity string     `json:"severity"`
	Object   NeedObject `json:"object"`
	// Sentence says it in words.
	Sentence string `json:"sentence"`
	// Since is absent where it is not known.
	Since *Time `json:"since,omitempty"`
	// Action is a word for what helps, such as resume or probe, and Command what does it.
	Action  string `json:"action"`
	Command string `json:"command"`
}

// NeedObject is what a need is about.
type NeedObject struct {
	// Kind is function, subscription, group or node.
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Hub   string `json:"hub,omitempty"`
	Group string `json:"group,omitempty"`
	// Topic and DomainTopic are those of a subscription.
	Topic       string `json:"topic,omitempty"`
	DomainTopic string `json:"domainTopic,omitempty"`
}

// Overview shows how the yard is, as far as the token reaches.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return one[Overview](ctx, c, request{method: http.MethodGet, path: []string{"overview"}})
}
