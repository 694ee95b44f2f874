package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// TopicRequest creates a topic, or changes one. What is not given is made, or stays as it is.
type TopicRequest struct {
	Name string `json:"name,omitempty"`
	// Schema is eventgrid, cloudevents or custom; empty: eventgrid. It cannot be changed.
	Schema string `json:"schema,omitempty"`
	// Domain makes a domain of it: each event names the topic of the domain that it is for. It
	// cannot be changed.
	Domain *bool `json:"domain,omitempty"`
	// Mapping says where events of a custom schema have what an envelope needs.
	Mapping json.RawMessage `json:"mapping,omitempty"`
	// Key1 and Key2 have 16 to 256 ASCII characters, without blanks and semicolons.
	Key1 string `json:"key1,omitempty"`
	Key2 string `json:"key2,omitempty"`
	// DisableKeys refuses both keys: only bearer tokens and policies of the yard remain good.
	DisableKeys *bool `json:"disableKeys,omitempty"`
	// Quota has the parts of the topic's quota that are to be set.
	Quota *QuotaRequest `json:"quota,omitempty"`
	// Properties is Event Grid's own management shape; the fields above override it.
	Properties json.RawMessage `json:"properties,omitempty"`
}

// Topic is a topic as the yard shows it.
type Topic struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
	// Endpoint is where events are published, SecureEndpoint the same with TLS, if the yard has
	// both.
	Endpoint       string `json:"endpoint"`
	SecureEndpoint string `json:"secureEndpoint,omitempty"`
	// Keys is nil in lists.
	Keys *TopicKeys `json:"keys,omitempty"`
	// Resource is the id that events of Event Grid's schema carry as topic.
	Resource string          `json:"resource"`
	Mapping  json.RawMessage `json:"mapping,omitempty"`
	// Domain: it is one. DomainTopics are its topics: those that have subscriptions, and those that
	// were made by themselves; nil in lists.
	Domain        bool      `json:"domain,omitempty"`
	DomainTopics  []string  `json:"domainTopics,omitempty"`
	DisableKeys   bool      `json:"disableKeys,omitempty"`
	Quota         Quota     `json:"quota,omitzero"`
	Created       time.Time `json:"created"`
	Subscriptions int       `json:"subscriptions"`
	// Events and Bytes are what the topic holds at present.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
	// Stats is nil unless a list was asked for it.
	Stats *TopicStats `json:"stats,omitempty"`
}

// TopicKeys are the access keys of a topic; both are valid at any time.
type TopicKeys struct {
	Key1 string `json:"key1"`
	Key2 string `json:"key2"`
}

// Topics lists all topics, without their keys.
func (c *Client) Topics(ctx context.Context) ([]Topic, error) {
	return list[Topic](ctx, c, "topics", request{method: http.MethodGet, path: []string{"topics"}})
}

// Topic shows one topic with its keys.
func (c *Client) Topic(ctx context.Context, name string) (Topic, error) {
	return one[Topic](ctx, c, request{method: http.MethodGet, path: []string{"topics", name}})
}

// CreateTopic creates a topic.
func (c *Client) CreateTopic(ctx context.Context, r TopicRequest) (Topic, error) {
	return one[Topic](ctx, c, request{method: http.MethodPost, path: []string{"topics"}, body: r})
}

// UpdateTopic changes a topic.
func (c *Client) UpdateTopic(ctx context.Context, name string, r TopicRequest) (Topic, error) {
	return one[Topic](ctx, c, request{method: http.MethodPatch, path: []string{"topics", name}, body: r})
}

// DeleteTopic deletes a topic with its events and subscriptions.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, []string{"topics", name}, nil, nil)
}

// RegenerateTopicKey replaces key1 or key2 by a new key.
func (c *Client) RegenerateTopicKey(ctx context.Context, name, key string) (Topic, error) {
	return one[Topic](ctx, c, request{method: http.MethodPost, path: []string{"topics", name, "regenerate"}, body: KeyChoice{key}})
}
