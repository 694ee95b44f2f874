package grid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
)

// The versions of the protocol: of topics, and of namespaces with pull delivery.
const (
	topicVersion     = "2018-01-01"
	namespaceVersion = "2024-06-01"
)

// Config says where a topic is and who we are. At most one of Key, Signature and Token is given.
type Config struct {
	// Endpoint is the URL that the topic is published to, such as
	// http://localhost:8080/topics/orders/api/events; required. One without a path gets
	// /api/events, as topics on Azure have it. A topic of a namespace ends with :publish, as in
	// http://localhost:8080/topics/orders:publish.
	Endpoint string
	// Key is one of the topic's two keys.
	Key string
	// Signature is a shared-access signature made with one, such as Sign makes.
	Signature string
	// Token gives a bearer token for Microsoft Entra ID or another OIDC issuer. It is asked again
	// when three quarters of a token's life are over; where expires is zero, after 15 minutes.
	// Calls do not overlap.
	Token func(ctx context.Context) (token string, expires time.Time, err error)
	// Schema is the topic's; zero: EventGrid, for topics of a namespace CloudEvents.
	Schema Schema
	// Source is the source of CloudEvents that have none.
	Source string
	// NewID makes the id of events that have none; nil: a random one. ContentID is another.
	NewID func(Event) string
	// HTTPClient makes the requests; nil: one with the system's certificates. Redirects are
	// never followed: they would take the key along.
	HTTPClient *http.Client
	// Retry says how often and how long calls that failed are tried again.
	Retry Retry
	// Log takes what the client carries on from; nil: slog.Default().
	Log *slog.Logger
}

// Client publishes to one topic. Its methods may be called by many goroutines at once. It has
// nothing to close.
type Client struct {
	url    string
	name   string // the URL without its query, which may have secrets
	schema Schema
	source string
	newID  func(Event) string
	caller *caller
}

// NewClient makes a client; it does not connect.
func NewClient(cfg Config) (*Client, error) {
	u, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("grid client: %w", err)
	}
	namespaced := strings.HasSuffix(u.Path, ":publish")
	login, err := newLogin(cfg.Key, cfg.Signature, cfg.Token, namespaced)
	if err != nil {
		return nil, fmt.Errorf("grid client: %w", err)
	}
	if cfg.Schema < EventGrid || cfg.Schema > Custom {
		return nil, fmt.Errorf("grid client: schema %d is unknown: give EventGrid, CloudEvents or Custom", cfg.Schema)
	}
	c := &Client{
		schema: cfg.Schema, source: cfg.Source, newID: cfg.NewID,
		caller: newCaller(cfg.HTTPClient, login, cfg.Retry, cfg.Log),
	}
	if namespaced {
		c.schema = CloudEvents
	}
	if c.newID == nil {
		c.newID = randomID
	}
	c.name, c.url = publishURL(u, namespaced)
	return c, nil
}

// Publish stores events in the topic: all of them, or none. nil means that they are durable and
// will reach every matching subscription. They are sent in one request; where they are too many
// or too large for one (ErrTooLarge; on Azure 1 MB), splitting them is the caller's. Answers
// that pass (408, 429, 5xx) and broken connections are tried again, with the same ids.
//
// After an error the events may have been stored nevertheless: an answer can be lost. A caller that
// publishes them again gives them the same ids (ID, or NewID), so that receivers know them.
func (c *Client) Publish(ctx context.Context, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	events = slices.Clone(events) // the caller's stay as they are
	now := time.Now()
	for i := range events {
		e := &events[i]
		if e.Source == "" && c.schema == CloudEvents {
			e.Source = c.source
		}
		if e.ID == "" {
			e.ID = c.newID(*e)
		}
		if e.Time.IsZero() {
			e.Time = now
		}
	}
	body, err := c.schema.encode(events)
	if err != nil {
		return fmt.Errorf("publish to %s: %w", c.name, err)
	}
	contentType := contentJSON
	if c.schema == CloudEvents {
		contentType = contentCloudBatch
	}
	if _, err = c.caller.do(ctx, call{url: c.url, contentType: contentType, body: body}); err != nil {
		return fmt.Errorf("publish to %s: %w", c.name, err)
	}
	return nil
}

// Sign makes a shared-access signature for Config.Signature: any program that has it can publish to
// the endpoint until it expires, without knowing the key.
func Sign(endpoint, key string, expires time.Time) (string, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return "", fmt.Errorf("sign for a topic: %w", err)
	}
	name, _ := publishURL(u, strings.HasSuffix(u.Path, ":publish"))
	return topickey.Sign(name, key, expires)
}

func parseEndpoint(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		return nil, errors.New("no endpoint: give the URL of the topic, such as http://localhost:8080/topics/orders/api/events")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, errors.New("the endpoint is no URL: give one such as http://localhost:8080/topics/orders/api/events")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		plain := *u
		plain.RawQuery, plain.Fragment = "", "" // a key may be in there
		return nil, fmt.Errorf("endpoint %.100q: give a URL with http or https and a host, without a user or fragment", plain.Redacted())
	}
	return u, nil
}

// publishURL gives the URL without and with its query.
func publishURL(u *url.URL, namespaced bool) (name, whole string) {
	full := *u
	if strings.Trim(full.Path, "/") == "" {
		full.Path = "/api/events"
	}
	query := full.Query()
	if !query.Has("api-version") {
		query.Set("api-version", topicVersion)
		if namespaced {
			query.Set("api-version", namespaceVersion)
		}
	}
	full.RawQuery = ""
	name = full.String()
	return name, name + "?" + query.Encode()
}
