package notify

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// published is the event that tells of a change, in the stored form of Event Grid's schema.
type published struct {
	ID        string        `json:"id"`
	Subject   string        `json:"subject"`
	EventType string        `json:"eventType"`
	EventTime string        `json:"eventTime"`
	Data      publishedData `json:"data"`
}

// publishedData never has the link to resume, nor its token: whoever may read the topic could
// resume.
type publishedData struct {
	Function      string           `json:"function"`
	Hub           string           `json:"hub"`
	Group         string           `json:"group"`
	State         breaker.State    `json:"state"`
	PreviousState breaker.State    `json:"previousState,omitempty"` // where it is known
	Incident      string           `json:"incident,omitempty"`      // of a closed circuit the one that is over
	Term          int64            `json:"term"`
	Since         time.Time        `json:"since,omitzero"`
	By            string           `json:"by,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	Failures      int              `json:"failures"`
	Errors        []breaker.Sample `json:"errors"`        // never null
	Lag           *int64           `json:"lag,omitempty"` // where it is known
	Policy        publishedPolicy  `json:"policy"`
}

// publishedPolicy has its durations as people write them.
type publishedPolicy struct {
	Failures int    `json:"failures"`
	Within   string `json:"within"`
	Probe    string `json:"probe,omitempty"`
	ProbeMax string `json:"probeMax,omitempty"`
	Attempts bool   `json:"attempts,omitempty"`
}

// eventTypes by state.
var eventTypes = map[breaker.State]string{
	breaker.Open: "Eventyard.CircuitOpened", breaker.HalfOpen: "Eventyard.CircuitHalfOpened",
	breaker.Closed: "Eventyard.CircuitClosed", breaker.Held: "Eventyard.CircuitHeld",
}

// eventType of a state; a later version may write others.
func eventType(s breaker.State) string {
	if name := eventTypes[s]; name != "" {
		return name
	}
	return "Eventyard.CircuitChanged"
}

// eventOf is the event of a change.
func eventOf(l *ledger, c change, lag int64) published {
	r := c.Record
	at := r.Since
	if at.IsZero() {
		at = time.Now()
	}
	p := r.Policy.WithDefaults()
	policy := publishedPolicy{Failures: p.Failures, Within: p.Within.String(), Attempts: p.Attempts}
	if p.Probe > 0 {
		policy.Probe, policy.ProbeMax = p.Probe.String(), p.ProbeMax.String()
	}
	return published{
		ID: eventID(l.Group, l.Function, r), Subject: "hubs/" + l.Group.Hub + "/groups/" + l.Group.Group + "/functions/" + l.Function,
		EventType: eventType(r.State), EventTime: at.UTC().Format(time.RFC3339Nano),
		Data: publishedData{
			Function: l.Function, Hub: l.Group.Hub, Group: l.Group.Group, State: r.State, PreviousState: c.Previous, Incident: c.Incident, Term: r.Term,
			Since: r.Since.UTC(), By: r.By, Reason: r.Reason, Failures: r.Failures, Errors: samplesOf(r), Lag: known(lag), Policy: policy,
		},
	}
}

// eventID follows from the circuit's record, so that a repeat has the same. The time is for
// circuits that were made anew: they count their terms from the beginning.
func eventID(g processor.Group, function string, r breaker.Record) string {
	return guid(keyOf(g, function), r.Incident, r.Term, r.Since.UnixNano())
}

// guid is made of what names a thing.
func guid(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", parts)) // texts in quotes, so that no two lists look alike
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func samplesOf(r breaker.Record) []breaker.Sample {
	if r.Samples == nil {
		return []breaker.Sample{}
	}
	return r.Samples
}

// known is nil for a lag that is not.
func known(lag int64) *int64 {
	if lag < 0 {
		return nil
	}
	return &lag
}
