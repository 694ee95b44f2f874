// Package topics keeps the definitions of the grid: topics with their keys and logs, and
// subscriptions with all that they ask for. Definitions are entries in a meta store and one
// immutable snapshot in memory; changes go to the store by compare-and-set first. A topic's
// events are a log of its own in the engine; publishing is appending to it.
//
// A webhook is asked whether it wants the events before it gets any (handshake.go). Whoever is
// asked may answer by opening a link, and may do so before the request that brought it the link has
// come back; so the store knows the link before anybody else does, and each step of a handshake
// is a change of the definition like any other. What was begun and not finished lapses (lapse.go).
package topics

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// YardEvents is the topic that the yard itself publishes to. It is made on first start, with
// Event Grid's schema, and cannot be deleted.
const YardEvents = "yard-events"

// Topic is one.
type Topic struct {
	// Name is 3 to 50 letters, digits and '-', told apart without case.
	Name string `json:"name"`
	// ID is never used twice. It is part of the log's name.
	ID      string         `json:"id"`
	Schema  schema.Kind    `json:"schema"`
	Mapping schema.Mapping `json:"mapping,omitzero"`
	// Key1 and Key2 are both good at any time.
	Key1    string    `json:"key1"`
	Key2    string    `json:"key2"`
	Created time.Time `json:"created"`
	// DisableKeys refuses keys and signatures made with them (disableLocalAuth).
	DisableKeys bool `json:"disableKeys,omitempty"`
	// Quota bounds what is published.
	Quota quota.Limit `json:"quota,omitzero"`
	// Domain makes it a domain; nil: it is none. That is fixed when it is created.
	Domain *Domain `json:"domain,omitempty"`
	// Tags are the user's.
	Tags map[string]string `json:"tags,omitempty"`
	// Location and Group are what the resource manager was told, and mean nothing here: a region,
	// and /subscriptions/ID/resourceGroups/NAME. Empty: it was told nothing.
	Location string `json:"location,omitempty"`
	Group    string `json:"group,omitempty"`
	// Resource is the id that deliveries carry as topic:
	// /subscriptions/GUID/resourceGroups/NAMESPACE/providers/Microsoft.EventGrid/topics/NAME, of a
	// domain domains/NAME. It follows from the rest and is not stored.
	Resource string `json:"-"`
}

// Source is where a subscription's events come from: a topic or a hub.
type Source struct {
	Topic string `json:"topic,omitempty"`
	// DomainTopic is one of the topics of the domain Topic; empty: all of them.
	DomainTopic string `json:"domainTopic,omitempty"`
	// Domain says that Topic is a domain. Nobody has to say it: it follows from the topic.
	Domain bool   `json:"domain,omitempty"`
	Hub    string `json:"hub,omitempty"`
}

// State of a subscription.
type State string

const (
	// Pending: the endpoint has not yet agreed; somebody has to open the validation URL.
	Pending State = "pending"
	// Active: events are delivered.
	Active State = "active"
	// Failed: the endpoint did not agree in time. It gets nothing; create or update it again.
	Failed State = "failed"
	// Paused by an operator: events wait (their time to live runs on).
	Paused State = "paused"
	// Disabled: the endpoint itself asked for it (410 with DisableOnGone).
	Disabled State = "disabled"
	// Expired: it is past Expires, and gets only what was published before. Its endpoint has
	// agreed.
	Expired State = "expired"
)

// Subscription is one definition, secrets and all.
type Subscription struct {
	// Name is 3 to 64 letters, digits and '-', told apart without case among those of its source.
	Name   string `json:"name"`
	ID     string `json:"id"` // 13 of a-z and 2-7; never used twice
	Source Source `json:"source"`
	// SourceID tells sources of the same name apart: the topic's ID, or HubID of the hub.
	SourceID string    `json:"sourceId"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	State    State     `json:"state"`
	// Why says more about a state that is not Active.
	Why string `json:"why,omitempty"`
	// Starts is where delivery begins, by partition of the source: the end of its log when the
	// subscription became active for the first time (or its beginning, where asked for).
	Starts     []int64    `json:"starts,omitempty"`
	Validation Validation `json:"validation,omitzero"`
	// Resource is the source's id, which deliveries carry as topic. It follows from the rest and
	// is not stored.
	Resource string `json:"-"`

	Settings
}

// Matches is the filter that the subscription's events pass, its domain topic among the conditions.
func (s *Subscription) Matches() filter.Config {
	only := s.Filter
	only.DomainTopic = s.Source.DomainTopic
	return only
}

// Validation is a handshake under way.
type Validation struct {
	Code string `json:"code,omitempty"`
	// Token is what the validation URL carries.
	Token string    `json:"token,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Awaiting: the endpoint has answered, and somebody has to open the URL. Before that nobody
	// knows whether it was asked at all: the yard may have died over it.
	Awaiting bool `json:"awaiting,omitempty"`
	// Rate is what the endpoint allowed, requests a minute (CloudEvents); 0: any.
	Rate int `json:"rate,omitempty"`
}

// Settings is what a user asks for, and may change.
type Settings struct {
	// Webhook, Hub or Pull: exactly one.
	Webhook *egress.Endpoint `json:"webhook,omitempty"`
	Hub     string           `json:"hub,omitempty"`
	Pull    *Pull            `json:"pull,omitempty"`
	// HubResource is the hub's id as the resource manager was given it, to be shown.
	HubResource string `json:"hubResource,omitempty"`

	Filter filter.Config `json:"filter,omitzero"`
	// Output is the delivery schema; empty: schema.DefaultOutput. Binary is CloudEvents' binary
	// mode (never batched).
	Output schema.Kind  `json:"output,omitempty"`
	Binary bool         `json:"binary,omitempty"`
	Retry  retry.Policy `json:"retry,omitzero"`
	// MaxEvents per batch, 1 to 5,000; 1: batching is off; 0: it is unless PreferredKiB is set.
	// PreferredKiB 1 to 1,024; 0: 64.
	MaxEvents    int `json:"maxEvents,omitempty"`
	PreferredKiB int `json:"preferredKib,omitempty"`
	// DeadLetter is none if its kind is empty.
	DeadLetter Target    `json:"deadLetter,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	// Headers are delivery properties, at most 10.
	Headers []Header `json:"headers,omitempty"`
	// Keys sign what is delivered (Standard Webhooks); none: nothing is signed.
	Keys []signature.Key `json:"keys,omitempty"`
	// Timeout for an answer; zero: the yard's (30 s). Concurrency is how many requests are under
	// way at once; zero: 16. Rate is requests a second at most; zero: any.
	Timeout     time.Duration `json:"timeout,omitempty"`
	Concurrency int           `json:"concurrency,omitempty"`
	Rate        float64       `json:"rate,omitempty"`
	// OrderBy turns ordered delivery on: a path such as subject or data.id; events with the
	// same value are delivered one after another, in the order of publishing.
	OrderBy string `json:"orderBy,omitempty"`
	// FromStart delivers what the source still has, too. It counts when the subscription becomes
	// active for the first time.
	FromStart bool `json:"fromStart,omitempty"`
	// SkipValidation trusts the endpoint without a handshake. Who takes it back has it asked.
	SkipValidation bool `json:"skipValidation,omitempty"`
	// DisableOnGone stops for good when the endpoint answers 410, or asks for it by the header
	// webhook-delivery: disable.
	DisableOnGone bool `json:"disableOnGone,omitempty"`
	Paused        bool `json:"paused,omitempty"`
	// Description is for people, at most 256 characters.
	Description string   `json:"description,omitempty"`
	Labels      []string `json:"labels,omitempty"`
}

// Pull is a subscription that is not pushed: clients receive and acknowledge.
type Pull struct {
	// Lock is how long received events are the receiver's; zero: 60 s; 60 s to 300 s by the book,
	// 1 s and more are taken.
	Lock time.Duration `json:"lock,omitempty"`
	// MaxDeliveries, 1 to 10; zero: 10.
	MaxDeliveries int `json:"maxDeliveries,omitempty"`
}

// Header is a delivery property.
type Header struct {
	Name string `json:"name"`
	// Value is a static one's; Field is a dynamic one's path into the event.
	Value  string `json:"value,omitempty"`
	Field  string `json:"field,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// Target is where dead letters go.
type Target struct {
	// Kind is empty (none: they are dropped), "yard" (kept in the yard only), "folder", "blob" or
	// "hub".
	Kind string `json:"kind,omitempty"`
	// Where is the folder, the container's URL or ACCOUNT/CONTAINER, or the hub.
	Where string `json:"where,omitempty"`
	// Key is the storage account's key, where the URL has no signature of its own.
	Key string `json:"key,omitempty"`
	// Resource is the id of the hub or the storage account as the resource manager was given it, to
	// be shown.
	Resource string `json:"resource,omitempty"`
}
