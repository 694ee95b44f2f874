package invoke

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/transport/egress"
)

// idleConnections are kept for one program: a call may be under way for each partition, and each
// lane of it.
const idleConnections = 256

// check says what is wrong, and gives the URL.
func (c *Config) check() (*url.URL, error) {
	if c.Format != CloudEvents && c.Format != EventHubs {
		return nil, fmt.Errorf("format %.40q of a function: use %s or %s", c.Format, CloudEvents, EventHubs)
	}
	for name, values := range c.Header {
		if isOurs(name) {
			return nil, fmt.Errorf("header %.100q of a function: it is the yard's own: choose another name", name)
		}
		for _, v := range values {
			if !egress.Sendable(name, v) {
				return nil, fmt.Errorf("header %.100q of a function cannot be sent: give a name of letters, digits and '-', and a value without line breaks", name)
			}
		}
	}
	return parseURL(c.URL)
}

// parseURL takes what can be called. Its errors do not show the URL, where secrets are kept.
func parseURL(text string) (*url.URL, error) {
	const help = "give one like http://localhost:5000/"
	u, err := url.Parse(text)
	if !strings.Contains(text, "://") && text != "" { // host:port is no URL to the parser, or one of the scheme host
		return nil, errors.New("endpoint of a function does not begin with http:// or https://: " + help)
	}
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("endpoint of a function: %w: %s", err, help)
	}
	switch {
	case text == "":
		return nil, errors.New("endpoint of a function is missing: " + help)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("endpoint of a function has the scheme %.20q: %s", u.Scheme, help)
	case u.Hostname() == "":
		return nil, errors.New("endpoint of a function names no host: " + help)
	}
	u.Fragment, u.RawFragment = "", "" // it is never sent
	return u, nil
}

// isOurs tells whether a header is one that each request has from us.
func isOurs(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return strings.HasPrefix(name, "Eventyard-") || slices.Contains([]string{"Content-Type", "Content-Encoding", "Accept-Encoding", "Idempotency-Key"}, name)
}

// clientOf is the client that sends: one that does not follow redirects, since whoever is called is
// named by the definition and by nobody else.
func clientOf(given *http.Client) *http.Client {
	var client http.Client
	if given != nil {
		client = *given
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idleConnections, idleConnections
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

func (c *Config) commonHeader() http.Header {
	h := c.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	if c.Format == CloudEvents {
		h.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
	}
	h.Set("Accept-Encoding", "identity") // a small answer may be a large one in disguise
	if h.Get("Accept") == "" {
		h.Set("Accept", "application/json")
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "eventyard")
	}
	return h
}
