package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Journeys is what became of the events that were asked for: several, where they have one id.
type Journeys struct {
	// Summary says it in a sentence.
	Summary string    `json:"summary"`
	Events  []Journey `json:"events"`
	Looked  Looked    `json:"looked"`
}

// Looked is where was looked for something.
type Looked struct {
	// Events were looked at, from number First to before Next, published from From to To.
	Events int        `json:"events"`
	First  int64      `json:"first"`
	Next   int64      `json:"next"`
	From   *time.Time `json:"from,omitempty"`
	To     *time.Time `json:"to,omitempty"`
	// Before is where to go on with older ones; absent: there are none.
	Before *int64 `json:"before,omitempty"`
}

// Journey is what became of one event.
type Journey struct {
	Summary   string    `json:"summary"`
	Topic     string    `json:"topic,omitempty"`
	Hub       string    `json:"hub,omitempty"`
	Partition string    `json:"partition,omitempty"`
	Sequence  int64     `json:"sequence"`
	ID        string    `json:"id,omitempty"`
	Type      string    `json:"type,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Published time.Time `json:"published"`
	// TraceID is the trace that the event belongs to, TraceURL where people look at it; both absent where it
	// belongs to none, the latter also where the yard is not told.
	TraceID  string `json:"traceId,omitempty"`
	TraceURL string `json:"traceUrl,omitempty"`
	// Cause is what the event came from; absent where its publisher does not say.
	Cause *JourneyCause `json:"cause,omitempty"`
	// Event is the event: of a topic as it is stored, of a hub as reading shows it.
	Event json.RawMessage `json:"event,omitempty"`
	// Subscriptions are those of the topic or hub, those that the event matches first; Omitted is how
	// many are left out, since there are very many.
	Subscriptions []JourneyTo `json:"subscriptions"`
	Omitted       int         `json:"omitted,omitempty"`
	// Groups, KafkaGroups and Functions are who else reads a hub.
	Groups      []JourneyGroup    `json:"groups,omitempty"`
	KafkaGroups []JourneyGroup    `json:"kafkaGroups,omitempty"`
	Functions   []JourneyFunction `json:"functions,omitempty"`
}

// JourneyTo is the way of an event to one subscription.
type JourneyTo struct {
	Subscription string `json:"subscription"`
	DomainTopic  string `json:"domainTopic,omitempty"`
	// State is delivered, dead-lettered, dropped, settled (delivered or dropped: nobody remembers),
	// waiting (for its next attempt), parked, queued, sending, locked (a client has it), behind (not
	// looked at yet), inactive, unmatched, early (published before the subscription began), late
	// (after it expired) or unknown.
	State   string `json:"state"`
	Summary string `json:"summary"`
	// Matches and Conditions are by the filter as it is now; FilterChanged: the subscription was
	// changed after the event was published.
	Matches       bool       `json:"matches"`
	Conditions    []Finding  `json:"conditions"`
	FilterChanged *time.Time `json:"filterChanged,omitempty"`
	// Attempts is how many were made; Tries those that are known, the oldest first.
	Attempts int          `json:"attempts"`
	Tries    []JourneyTry `json:"tries"`
	// Due is when the next attempt may be, Expires when the event is given up as too old.
	Due     *time.Time `json:"due,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// DeadLetter is its newest dead letter.
	DeadLetter *DeadLetter `json:"deadLetter,omitempty"`
	// Endpoint is how the endpoint does now. KnownSince is from when on single requests are
	// remembered.
	Endpoint   *EndpointHealth `json:"endpoint,omitempty"`
	KnownSince *time.Time      `json:"knownSince,omitempty"`
}

// JourneyTry is one attempt at an event.
type JourneyTry struct {
	Time    time.Time `json:"time"`
	Took    string    `json:"took"`
	Outcome string    `json:"outcome"`
	Status  int       `json:"status,omitempty"`
	Said    string    `json:"said,omitempty"`
	Probe   bool      `json:"probe,omitempty"`
	// Events is how many the request had; absent: not known.
	Events int `json:"events,omitempty"`
}

// JourneyGroup is how far a consumer group has come.
type JourneyGroup struct {
	Group string `json:"group"`
	// State is past (its checkpoint is at the event or behind it), before, or unknown: it has no
	// checkpoint in the yard.
	State string `json:"state"`
}

// JourneyFunction is what a function has done with an event.
type JourneyFunction struct {
	Function string `json:"function"`
	// State is handled, before (it has not come to it), poison, or unknown.
	State   string       `json:"state"`
	Summary string       `json:"summary"`
	Poison  *PoisonEvent `json:"poison,omitempty"`
	// Stopped is the state of a function that has not come to it and does not run: paused, open and so on.
	Stopped string `json:"stopped,omitempty"`
	// Calls are those with the event that are remembered, the oldest first: by nodes, in memory, from KnownSince
	// on. Missing are the nodes that did not answer.
	Calls      []JourneyCall `json:"calls"`
	KnownSince *time.Time    `json:"knownSince,omitempty"`
	Missing    []string      `json:"missing,omitempty"`
}

// JourneyCall is one call of a function with an event.
type JourneyCall struct {
	Time time.Time `json:"time"`
	Took string    `json:"took"`
	// Attempt is 1 the first time that the event was tried; Events is how many the call had.
	Attempt int `json:"attempt"`
	Events  int `json:"events"`
	// Outcome is done, failed, poison, skipped, untouched (not tried), unavailable (what the function needs is
	// down), cancelled (another instance took over meanwhile) or unknown; Error says why.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// JourneyCause is what an event came from, as its publisher says.
type JourneyCause struct {
	// By is where it says so: data.cause or correlation-id; Text is what it says.
	By   string `json:"by"`
	Text string `json:"text"`
	// Hub, Partition and Sequence are those of the event that Text names; Published is when that was, absent
	// where it is not kept any more. All are absent where Text names no event of a hub.
	Hub       string     `json:"hub,omitempty"`
	Partition string     `json:"partition,omitempty"`
	Sequence  *int64     `json:"sequence,omitempty"`
	Published *time.Time `json:"published,omitempty"`
}

// EventJourney follows the events of a topic that have an id. It looks at the newest 10,000 of the
// topic, or at those before a number (zero: the newest).
func (c *Client) EventJourney(ctx context.Context, topic, id string, before int64) (Journeys, error) {
	q := url.Values{}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	return one[Journeys](ctx, c, request{method: http.MethodGet, path: []string{"topics", topic, "events", id, "journey"}, query: q})
}

// HubEventJourney follows one event of a hub.
func (c *Client) HubEventJourney(ctx context.Context, hub, partition string, sequence int64) (Journeys, error) {
	return one[Journeys](ctx, c, request{
		method: http.MethodGet, path: []string{"hubs", hub, "partitions", partition, "events", strconv.FormatInt(sequence, 10), "journey"},
	})
}
