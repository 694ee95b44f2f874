// Package gridwire is the JSON of the grid's management calls under /api/v1, spoken by the
// HTTP listener on one side and the command line on the other. It knows neither.
package gridwire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Topic is a topic as the yard shows it.
type Topic struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
	// Endpoint is where events are published; SecureEndpoint the same with TLS, where there is
	// such a listener besides.
	Endpoint       string          `json:"endpoint"`
	SecureEndpoint string          `json:"secureEndpoint,omitempty"`
	Keys           *Keys           `json:"keys,omitempty"`
	Resource       string          `json:"resource"`
	Mapping        json.RawMessage `json:"mapping,omitempty"`
	DisableKeys    bool            `json:"disableKeys,omitempty"`
	Created        time.Time       `json:"created"`
	Subscriptions  int             `json:"subscriptions"`
	// Events and Bytes are what the topic keeps at present.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
}

// Keys are a topic's; both are good at any time.
type Keys struct {
	Key1 string `json:"key1"`
	Key2 string `json:"key2"`
}

// TopicRequest creates a topic, or changes one. What is not given is left, or made.
type TopicRequest struct {
	Name        string          `json:"name,omitempty"`
	Schema      string          `json:"schema,omitempty"`
	Mapping     json.RawMessage `json:"mapping,omitempty"`
	Key1        string          `json:"key1,omitempty"`
	Key2        string          `json:"key2,omitempty"`
	DisableKeys *bool           `json:"disableKeys,omitempty"`
	// Properties is Event Grid's own management shape; what is given beside it goes before it.
	Properties json.RawMessage `json:"properties,omitempty"`
}

// SubscriptionRequest creates a subscription, or changes one: nil leaves, empty takes away. So
// lists that are empty have to travel, which omitempty would not let them.
type SubscriptionRequest struct {
	Name string `json:"name,omitempty"`
	// Topic or SourceHub is where the events come from.
	Topic     string `json:"topic,omitempty"`
	SourceHub string `json:"sourceHub,omitempty"`
	// Endpoint is a webhook's URL; Hub one of the yard's hubs; Pull lets clients receive.
	Endpoint *string `json:"endpoint,omitempty"`
	Hub      *string `json:"hub,omitempty"`
	Pull     *Pull   `json:"pull,omitempty"`

	Types                []string          `json:"types,omitzero"`
	SubjectBeginsWith    *string           `json:"subjectBeginsWith,omitempty"`
	SubjectEndsWith      *string           `json:"subjectEndsWith,omitempty"`
	SubjectCaseSensitive *bool             `json:"subjectCaseSensitive,omitempty"`
	Filters              []json.RawMessage `json:"filters,omitzero"` // texts or objects
	Arrays               *bool             `json:"arrays,omitempty"`

	Schema *string `json:"schema,omitempty"`
	Binary *bool   `json:"binary,omitempty"`

	Attempts      *int              `json:"attempts,omitempty"`
	TTL           *string           `json:"ttl,omitempty"`
	RetrySchedule *string           `json:"retrySchedule,omitempty"`
	RetryFloors   map[string]string `json:"retryFloors,omitzero"`
	NoRetry       []int             `json:"noRetry,omitzero"`
	MaxRetryAfter *string           `json:"maxRetryAfter,omitempty"`

	MaxEvents    *int `json:"maxEvents,omitempty"`
	PreferredKiB *int `json:"preferredKib,omitempty"`

	DeadLetter    *string  `json:"deadLetter,omitempty"`
	DeadLetterKey *string  `json:"deadLetterKey,omitempty"`
	Expires       *string  `json:"expires,omitempty"`
	Headers       []Header `json:"headers,omitzero"`

	// Sign makes a signing key: hmac or ed25519; empty takes all away. SigningKeys are ready ones.
	Sign        *string  `json:"sign,omitempty"`
	SigningKeys []string `json:"signingKeys,omitzero"`
	CA          *string  `json:"ca,omitempty"`
	SkipVerify  *bool    `json:"skipVerify,omitempty"`
	Cert        *string  `json:"cert,omitempty"`
	Key         *string  `json:"key,omitempty"`
	OAuth       *OAuth   `json:"oauth,omitempty"`
	MinTLS      *string  `json:"minTls,omitempty"`

	Timeout        *string  `json:"timeout,omitempty"`
	Concurrency    *int     `json:"concurrency,omitempty"`
	Rate           *float64 `json:"rate,omitempty"`
	OrderBy        *string  `json:"orderBy,omitempty"`
	FromStart      *bool    `json:"fromStart,omitempty"`
	SkipValidation *bool    `json:"skipValidation,omitempty"`
	DisableOnGone  *bool    `json:"disableOnGone,omitempty"`
	Paused         *bool    `json:"paused,omitempty"`
	Labels         []string `json:"labels,omitzero"`

	// Properties is Event Grid's own management shape; what is given beside it goes before it.
	Properties json.RawMessage `json:"properties,omitempty"`
}

// HiddenQuery stands for the query of a URL that is shown. What is written back with it means the
// query that is there.
const HiddenQuery = "?..."

// Pull is how clients receive.
type Pull struct {
	Lock          string `json:"lock,omitempty"`
	MaxDeliveries int    `json:"maxDeliveries,omitempty"`
}

// Header is a delivery property: a value, or a field of the event.
type Header struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Field  string `json:"field,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// ParseHeader reads NAME=VALUE, or NAME={path} for a field of the event.
func ParseHeader(pair string) (Header, error) {
	name, value, found := strings.Cut(pair, "=")
	if !found {
		return Header{}, fmt.Errorf("%q is no header: write it like X-Env=prod, or X-Region={data.region}", name)
	}
	if path, ok := strings.CutPrefix(value, "{"); ok && strings.HasSuffix(path, "}") {
		return Header{Name: name, Field: strings.TrimSuffix(path, "}")}, nil
	}
	return Header{Name: name, Value: value}, nil
}

// OAuth is the client-credentials grant.
type OAuth struct {
	TokenURL string `json:"tokenUrl"`
	ClientID string `json:"clientId"`
	Secret   string `json:"secret,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Audience string `json:"audience,omitempty"`
}

// Subscription is one as the yard shows it: no secrets, but what receivers need to check
// signatures where it was asked for.
type Subscription struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	Topic     string    `json:"topic,omitempty"`
	SourceHub string    `json:"sourceHub,omitempty"`
	State     string    `json:"state"`
	Why       string    `json:"why,omitempty"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	// ValidationURL is what has to be opened while the state is pending.
	ValidationURL string `json:"validationUrl,omitempty"`

	// Endpoint is the webhook's URL. Where it has a query, which is where people keep keys, that is
	// shown as HiddenQuery unless it was asked for.
	Endpoint string `json:"endpoint,omitempty"`
	Hub      string `json:"hub,omitempty"`
	Pull     *Pull  `json:"pull,omitempty"`

	Filter json.RawMessage `json:"filter,omitempty"`
	Schema string          `json:"schema"`
	Binary bool            `json:"binary,omitempty"`
	Retry  Retry           `json:"retry"`

	MaxEvents    int          `json:"maxEvents,omitempty"`
	PreferredKiB int          `json:"preferredKib,omitempty"`
	DeadLetter   string       `json:"deadLetter,omitempty"`
	Expires      *time.Time   `json:"expires,omitempty"`
	Headers      []Header     `json:"headers,omitempty"`
	Signing      []SigningKey `json:"signing,omitempty"`
	OAuth        *OAuth       `json:"oauth,omitempty"`
	MutualTLS    bool         `json:"mutualTls,omitempty"`
	CustomCA     bool         `json:"customCa,omitempty"`
	SkipVerify   bool         `json:"skipVerify,omitempty"`
	MinTLS       string       `json:"minTls,omitempty"`
	Timeout      string       `json:"timeout,omitempty"`
	Concurrency  int          `json:"concurrency,omitempty"`
	Rate         float64      `json:"rate,omitempty"`
	OrderBy      string       `json:"orderBy,omitempty"`
	Labels       []string     `json:"labels,omitempty"`

	SkipValidation bool `json:"skipValidation,omitempty"`
	DisableOnGone  bool `json:"disableOnGone,omitempty"`

	// Stats and DeadLetters are there when one subscription is asked for.
	Stats       *Stats      `json:"stats,omitempty"`
	DeadLetters *DeadCounts `json:"deadLetters,omitempty"`
}

// SigningKey is what a receiver needs: the secret itself for HMAC, the public key for ed25519.
// Text is there only where it was asked for.
type SigningKey struct {
	Algorithm string     `json:"algorithm"`
	Text      string     `json:"key,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// Retry is a retry policy. Schedule, Floors, NoRetry and MaxRetryAfter are there where they are
// the subscription's own; NoRetry may be so and empty.
type Retry struct {
	Attempts      int               `json:"attempts"`
	TTL           string            `json:"ttl"`
	Schedule      []string          `json:"schedule,omitempty"`
	Floors        map[string]string `json:"floors,omitempty"`
	NoRetry       []int             `json:"noRetry,omitzero"`
	MaxRetryAfter string            `json:"maxRetryAfter,omitempty"`
}

// Stats is how deliveries go, counted since the yard started.
type Stats struct {
	Matched      int64            `json:"matched"`
	Delivered    int64            `json:"delivered"`
	Requests     int64            `json:"requests"`
	Failed       map[string]int64 `json:"failed"`
	Dropped      map[string]int64 `json:"dropped"`
	DeadLettered map[string]int64 `json:"deadLettered"`
	InFlight     int              `json:"inFlight"`
	Queued       int              `json:"queued"`
	Behind       int64            `json:"behind"`
	Parked       int64            `json:"parked"`
	Waiting      []Waiting        `json:"waiting"`
	Oldest       *time.Time       `json:"oldest,omitempty"`
	Endpoint     Endpoint         `json:"endpoint"`
}

// Waiting is how many events wait that long for their next attempt.
type Waiting struct {
	Wait   string `json:"wait"`
	Events int64  `json:"events"`
}

// Endpoint is an endpoint's health: healthy, failing, probation or probing.
type Endpoint struct {
	State    string     `json:"state"`
	Failures int        `json:"failures"`
	Last     string     `json:"last,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
}

// DeadCounts is how many dead letters there are.
type DeadCounts struct {
	Kept      int64      `json:"kept"`
	Unwritten int64      `json:"unwritten"`
	Dropped   int64      `json:"dropped"`
	Problem   string     `json:"problem,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

// Attempt is one request that was made.
type Attempt struct {
	Time    time.Time  `json:"time"`
	Events  int        `json:"events"`
	EventID string     `json:"eventId"`
	Attempt int        `json:"attempt"`
	Outcome string     `json:"outcome"`
	Status  int        `json:"status,omitempty"`
	Took    string     `json:"took"`
	Answer  string     `json:"answer,omitempty"`
	Error   string     `json:"error,omitempty"`
	NextTry *time.Time `json:"nextTry,omitempty"`
}

// DeadLetter is one event that could not be delivered.
type DeadLetter struct {
	Number      int64      `json:"number"`
	EventID     string     `json:"eventId"`
	EventType   string     `json:"eventType"`
	Subject     string     `json:"subject,omitempty"`
	Reason      string     `json:"reason"`
	Attempts    int        `json:"attempts"`
	Outcome     string     `json:"lastOutcome,omitempty"`
	Status      int        `json:"lastStatus,omitempty"`
	Published   time.Time  `json:"published"`
	LastAttempt *time.Time `json:"lastAttempt,omitempty"`
	Died        time.Time  `json:"died"`
	Written     string     `json:"written,omitempty"`
	Redriven    *time.Time `json:"redriven,omitempty"`
	Redrives    int        `json:"redrives,omitempty"`
	// Event is the event as it would have been delivered, where one letter is asked for.
	Event json.RawMessage `json:"event,omitempty"`
}

// DeadPage is some dead letters; Next is where to go on, 0 at the end.
type DeadPage struct {
	Letters []DeadLetter `json:"letters"`
	Next    int64        `json:"next,omitempty"`
	Total   int64        `json:"total"`
}

// DeadChoice says which dead letters are meant; nothing means all.
type DeadChoice struct {
	Numbers   []int64 `json:"numbers,omitempty"`
	EventID   string  `json:"eventId,omitempty"`
	EventType string  `json:"eventType,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Outcome   string  `json:"outcome,omitempty"`
	Since     string  `json:"since,omitempty"`
	Until     string  `json:"until,omitempty"`
	// Redriven means those too that were redriven already.
	Redriven bool `json:"redriven,omitempty"`
}

// All tells whether it chooses all that were not redriven.
func (c DeadChoice) All() bool { return reflect.DeepEqual(c, DeadChoice{}) }

// RedriveRequest sends dead letters to their subscription again: some, and then the next.
type RedriveRequest struct {
	DeadChoice
	// From is the Next of an answer before; Max is how many letters are looked at at most.
	From   int64   `json:"from,omitempty"`
	Max    int     `json:"max,omitempty"`
	Rate   float64 `json:"rate,omitempty"`
	Force  bool    `json:"force,omitempty"`
	DryRun bool    `json:"dryRun,omitempty"`
}

// Redriven is what came of it. Skipped were redriven too often before. Next is where to go on,
// 0 at the end; who does asks for what died until the same time again.
type Redriven struct {
	Redriven int    `json:"redriven"`
	Skipped  int    `json:"skipped"`
	Next     int64  `json:"next,omitempty"`
	Until    string `json:"until,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
}
