package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// SubscriptionRequest creates a subscription, or changes one. Nil says nothing: the default holds,
// or what there is stays. Empty takes away: an empty list is sent as one.
type SubscriptionRequest struct {
	Name string `json:"name,omitempty"`
	// Topic or SourceHub is where the events come from.
	Topic     string `json:"topic,omitempty"`
	SourceHub string `json:"sourceHub,omitempty"`
	// DomainTopic is one of the topics of the domain Topic; empty: all.
	DomainTopic string `json:"domainTopic,omitempty"`
	// Endpoint is the URL of a webhook, Hub a hub of the yard; Pull lets clients receive. Give one
	// of them.
	Endpoint *string `json:"endpoint,omitempty"`
	Hub      *string `json:"hub,omitempty"`
	Pull     *Pull   `json:"pull,omitempty"`

	// Types and Subject… choose events, and so do Filters, all of which have to match.
	Types                []string `json:"types,omitzero"`
	SubjectBeginsWith    *string  `json:"subjectBeginsWith,omitempty"`
	SubjectEndsWith      *string  `json:"subjectEndsWith,omitempty"`
	SubjectCaseSensitive *bool    `json:"subjectCaseSensitive,omitempty"`
	Filters              []Filter `json:"filters,omitzero"`
	// Arrays lets Filters look into arrays.
	Arrays *bool `json:"arrays,omitempty"`

	// Schema of deliveries: eventgrid, cloudevents or custom. Binary is the binary mode of
	// CloudEvents.
	Schema *string `json:"schema,omitempty"`
	Binary *bool   `json:"binary,omitempty"`
	// MaxEvents of one request, and its preferred size.
	MaxEvents    *int `json:"maxEvents,omitempty"`
	PreferredKiB *int `json:"preferredKib,omitempty"`

	// Attempts for each event, within TTL (a duration).
	Attempts *int    `json:"attempts,omitempty"`
	TTL      *string `json:"ttl,omitempty"`
	// RetrySchedule is the waits between attempts, like 1s,2s,5s; RetryFloors the least waits by
	// status.
	RetrySchedule *string `json:"retrySchedule,omitempty"`
	RetryFloors   Floors  `json:"retryFloors,omitzero"`
	// NoRetry are the statuses that are given up at once. MaxRetryAfter is the longest wait that a
	// receiver may ask for.
	NoRetry       Statuses `json:"noRetry,omitzero"`
	MaxRetryAfter *string  `json:"maxRetryAfter,omitempty"`

	// DeadLetter is where undeliverable events go: yard, folder:DIR, blob:URL or hub:NAME.
	DeadLetter    *string `json:"deadLetter,omitempty"`
	DeadLetterKey *string `json:"deadLetterKey,omitempty"`

	Headers Headers `json:"headers,omitzero"`
	// Sign makes a signing key: hmac or ed25519; empty or none removes all. SigningKeys are ready
	// ones.
	Sign        *string  `json:"sign,omitempty"`
	SigningKeys []string `json:"signingKeys,omitzero"`
	// CA verifies the endpoint, Cert and Key are the client certificate that is shown to it: all
	// PEM.
	CA         *string `json:"ca,omitempty"`
	Cert       *string `json:"cert,omitempty"`
	Key        *string `json:"key,omitempty"`
	SkipVerify *bool   `json:"skipVerify,omitempty"`
	MinTLS     *string `json:"minTls,omitempty"`
	OAuth      *OAuth  `json:"oauth,omitempty"`

	// Timeout of a request (a duration), Concurrency of requests, Rate in requests a second.
	Timeout     *string  `json:"timeout,omitempty"`
	Concurrency *int     `json:"concurrency,omitempty"`
	Rate        *float64 `json:"rate,omitempty"`
	// OrderBy delivers events with the same value of this path one after another.
	OrderBy *string `json:"orderBy,omitempty"`
	Expires *string `json:"expires,omitempty"`
	// SkipValidation trusts the endpoint without a handshake; DisableOnGone stops for good when it
	// answers 410.
	SkipValidation *bool `json:"skipValidation,omitempty"`
	DisableOnGone  *bool `json:"disableOnGone,omitempty"`
	// Description is for people: what it is for, and whom to ask about it.
	Description *string  `json:"description,omitempty"`
	Labels      []string `json:"labels,omitzero"`
	// FromStart delivers also what the source holds when the subscription becomes active.
	FromStart *bool `json:"fromStart,omitempty"`
	Paused    *bool `json:"paused,omitempty"`

	// Properties is Event Grid's own management shape; the fields above override it.
	Properties json.RawMessage `json:"properties,omitempty"`
}

// Filter is an advanced filter: a text like "data.total NumberGreaterThan 100", or a JSON object
// with operatorType, key and value or values.
type Filter string

// MarshalJSON writes an object as one, and a text as one.
func (f Filter) MarshalJSON() ([]byte, error) {
	if strings.HasPrefix(string(f), "{") {
		return []byte(f), nil
	}
	return json.Marshal(string(f))
}

// UnmarshalJSON takes anything: what is neither an object nor a text is refused by the yard.
func (f *Filter) UnmarshalJSON(value []byte) error {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" {
		text = string(value)
	}
	*f = Filter(text)
	return nil
}

// Floors are least waits by status, like {"503": "5s"}; "other" stands for all other statuses.
type Floors map[string]string

// Statuses are HTTP statuses.
type Statuses []int

// Headers are sent with each delivery.
type Headers []Header

// HiddenQuery stands for the query of a URL that is shown. Written back, it means the query that is
// there.
const HiddenQuery = "?..."

// Pull is how clients receive.
type Pull struct {
	// Lock is how long received events belong to their receiver, a duration; empty: 60s.
	Lock string `json:"lock,omitempty"`
	// MaxDeliveries of an event, 1 to 10; nil: 10.
	MaxDeliveries *int `json:"maxDeliveries,omitempty"`
}

// Header of a delivery has a Value, or takes it from a Field of the event. A secret one is never
// shown again.
type Header struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Field  string `json:"field,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// OAuth is a client-credentials grant.
type OAuth struct {
	TokenURL string `json:"tokenUrl"`
	ClientID string `json:"clientId"`
	Secret   string `json:"secret,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Audience string `json:"audience,omitempty"`
}

// Subscription is a subscription as the yard shows it, without secrets that were not asked for.
type Subscription struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Topic     string `json:"topic,omitempty"`
	SourceHub string `json:"sourceHub,omitempty"`
	// DomainTopic is one of the topics of the domain Topic; empty: all, or it is no domain.
	DomainTopic string `json:"domainTopic,omitempty"`
	// State is pending, active, paused, failed, disabled or expired.
	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// ValidationURL is the link that somebody has to open while the state is pending, before ValidationEnds.
	ValidationURL  string     `json:"validationUrl,omitempty"`
	ValidationEnds *time.Time `json:"validationEnds,omitempty"`

	// Endpoint is the URL of the webhook. Its query, where people keep keys, is shown as
	// HiddenQuery.
	Endpoint string `json:"endpoint,omitempty"`
	Hub      string `json:"hub,omitempty"`
	Pull     *Pull  `json:"pull,omitempty"`

	Filter json.RawMessage `json:"filter,omitempty"`
	Schema string          `json:"schema"`
	Binary bool            `json:"binary,omitempty"`
	Retry  RetryPolicy     `json:"retry"`

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
	Description  string       `json:"description,omitempty"`
	Labels       []string     `json:"labels,omitempty"`

	SkipValidation bool `json:"skipValidation,omitempty"`
	DisableOnGone  bool `json:"disableOnGone,omitempty"`

	// Stats and DeadLetters are nil in lists.
	Stats       *DeliveryStats    `json:"stats,omitempty"`
	DeadLetters *DeadLetterCounts `json:"deadLetters,omitempty"`
}

// SigningKey is what a receiver verifies signatures with: the secret itself for HMAC, the public
// key for ed25519. Text is empty unless secrets were asked for.
type SigningKey struct {
	Algorithm string     `json:"algorithm"`
	Text      string     `json:"key,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// RetryPolicy is when deliveries are tried again. Fields behind TTL are zero where the defaults
// hold; NoRetry may be the subscription's own and empty.
type RetryPolicy struct {
	Attempts      int               `json:"attempts"`
	TTL           string            `json:"ttl"`
	Schedule      []string          `json:"schedule,omitempty"`
	Floors        map[string]string `json:"floors,omitempty"`
	NoRetry       []int             `json:"noRetry,omitzero"`
	MaxRetryAfter string            `json:"maxRetryAfter,omitempty"`
}

// DeliveryStats is how deliveries go, counted since the yard started.
type DeliveryStats struct {
	Matched      int64            `json:"matched"`
	Delivered    int64            `json:"delivered"`
	Requests     int64            `json:"requests"`
	Failed       map[string]int64 `json:"failed"`
	Dropped      map[string]int64 `json:"dropped"`
	DeadLettered map[string]int64 `json:"deadLettered"`
	InFlight     int              `json:"inFlight"`
	Queued       int              `json:"queued"`
	// Behind is how many events of the source were not looked at yet, Parked how many wait in their
	// log.
	Behind   int64          `json:"behind"`
	Parked   int64          `json:"parked"`
	Waiting  []Waiting      `json:"waiting"`
	Oldest   *time.Time     `json:"oldest,omitempty"`
	Endpoint EndpointHealth `json:"endpoint"`
	// Rate is how many events were delivered a second, a mean of the last ten; nil: not measured, or not in a list.
	Rate *float64 `json:"rate,omitempty"`
	// Recent is how many milliseconds each of the last requests took, at most 40, the oldest first; below zero: it failed.
	Recent []int `json:"recent,omitempty"`
	// Locked is how many events receivers hold, of a subscription that clients receive from. No lock ends before LockEnds.
	Locked   int        `json:"locked,omitempty"`
	LockEnds *time.Time `json:"lockEnds,omitempty"`
	// HeldKeys is how many keys wait for an event of theirs that failed, of a subscription that delivers in order; Held
	// are some of them, those first that are due first.
	HeldKeys int       `json:"heldKeys,omitempty"`
	Held     []HeldKey `json:"held,omitempty"`
}

// HeldKey is a key that waits: Attempts were made at its first event, which is tried again at Due, and Behind are those
// behind it that are known of.
type HeldKey struct {
	Key      string    `json:"key"`
	Attempts int       `json:"attempts"`
	Due      time.Time `json:"due"`
	Behind   int       `json:"behind"`
}

// Waiting is how many events wait that long for their next attempt.
type Waiting struct {
	Wait   string `json:"wait"`
	Events int64  `json:"events"`
}

// EndpointHealth is how an endpoint does: healthy, failing, probation or probing.
type EndpointHealth struct {
	State    string     `json:"state"`
	Failures int        `json:"failures"`
	Last     string     `json:"last,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
}

// Attempt is one request that was made to an endpoint.
type Attempt struct {
	Time    time.Time `json:"time"`
	Events  int       `json:"events"`
	EventID string    `json:"eventId"`
	// EventIDs are those of a batch, at most 100.
	EventIDs []string `json:"eventIds,omitempty"`
	Attempt  int      `json:"attempt"`
	// Probe: it was the one request that probation allows.
	Probe   bool       `json:"probe,omitempty"`
	Outcome string     `json:"outcome"`
	Status  int        `json:"status,omitempty"`
	Took    string     `json:"took"`
	Answer  string     `json:"answer,omitempty"`
	Error   string     `json:"error,omitempty"`
	NextTry *time.Time `json:"nextTry,omitempty"`
}

// SubscriptionRef names a subscription. Topic or Hub, its source, is needed only where several
// sources have a subscription of that name; DomainTopic is one of the topics of the domain Topic.
type SubscriptionRef struct{ Name, Topic, Hub, DomainTopic string }

func (s SubscriptionRef) query() url.Values {
	v := url.Values{}
	if s.Topic != "" {
		v.Set("topic", s.Topic)
	}
	if s.Hub != "" {
		v.Set("hub", s.Hub)
	}
	if s.DomainTopic != "" {
		v.Set("domainTopic", s.DomainTopic)
	}
	return v
}

func (s SubscriptionRef) request(method string, body any, rest ...string) request {
	return request{method: method, path: append([]string{"subscriptions", s.Name}, rest...), query: s.query(), body: body}
}

// handshakePatience is how long creating or changing a subscription may take: its endpoint is
// asked first, several times if it does not answer.
const handshakePatience = 3 * time.Minute

// patient is the same client for calls that may take long.
func (c *Client) patient(timeout time.Duration) *Client {
	other := *c
	other.cfg.Timeout = max(timeout, c.cfg.Timeout)
	return &other
}

// Subscriptions lists all subscriptions, or those of the source that of names.
func (c *Client) Subscriptions(ctx context.Context, of SubscriptionRef) ([]Subscription, error) {
	return list[Subscription](ctx, c, "subscriptions", request{method: http.MethodGet, path: []string{"subscriptions"}, query: of.query()})
}

// Subscription shows one subscription and how its deliveries go; with secrets also the whole URL of
// its endpoint and its signing keys.
func (c *Client) Subscription(ctx context.Context, s SubscriptionRef, secrets bool) (Subscription, error) {
	r := s.request(http.MethodGet, nil)
	if secrets {
		r.query.Set("secrets", "true")
	}
	return one[Subscription](ctx, c, r)
}

// CreateSubscription creates a subscription. It is pending if somebody has to open its
// ValidationURL.
func (c *Client) CreateSubscription(ctx context.Context, r SubscriptionRequest) (Subscription, error) {
	return one[Subscription](ctx, c.patient(handshakePatience), request{method: http.MethodPost, path: []string{"subscriptions"}, body: r})
}

// UpdateSubscription changes a subscription.
func (c *Client) UpdateSubscription(ctx context.Context, s SubscriptionRef, r SubscriptionRequest) (Subscription, error) {
	return one[Subscription](ctx, c.patient(handshakePatience), s.request(http.MethodPatch, r))
}

// DeleteSubscription deletes a subscription with what waits for it.
func (c *Client) DeleteSubscription(ctx context.Context, s SubscriptionRef) error {
	return c.ask(ctx, s.request(http.MethodDelete, nil), nil)
}

// ResumeSubscription lets deliveries go on after a pause.
func (c *Client) ResumeSubscription(ctx context.Context, s SubscriptionRef) error {
	return c.ask(ctx, s.request(http.MethodPost, nil, "resume"), nil)
}

// ProbeSubscription ends the probation of its endpoint: the next event decides whether it is
// healthy.
func (c *Client) ProbeSubscription(ctx context.Context, s SubscriptionRef) error {
	return c.ask(ctx, s.request(http.MethodPost, nil, "probe"), nil)
}

// KeyRotation makes a signing key. An empty Algorithm is that of the newest key, or hmac; an empty
// Overlap is 24h.
type KeyRotation struct {
	Algorithm string `json:"algorithm,omitempty"`
	Overlap   string `json:"overlap,omitempty"`
}

// RotateSigningKey makes a new signing key beside the present ones, which go on for the overlap (a
// duration).
func (c *Client) RotateSigningKey(ctx context.Context, s SubscriptionRef, algorithm, overlap string) (Subscription, error) {
	return one[Subscription](ctx, c, s.request(http.MethodPost, KeyRotation{algorithm, overlap}, "rotate-key"))
}

// Attempts gives the last requests to its endpoint, newest first.
func (c *Client) Attempts(ctx context.Context, s SubscriptionRef) ([]Attempt, error) {
	return list[Attempt](ctx, c, "attempts", s.request(http.MethodGet, nil, "attempts"))
}
