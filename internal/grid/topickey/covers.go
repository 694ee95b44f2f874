package topickey

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Target is what a request is for, as its route says: publishing to a topic, or receiving from one
// of its subscriptions.
type Target struct {
	Topic string
	// Subscription is the one that is received from; empty: it publishes.
	Subscription string
	// Hosts are the names, with ports, that the yard is known by to the client; Prefix is the path
	// before that of the yard, where it is behind another server, and mostly empty.
	Hosts  []string
	Prefix string
}

// Covers reports whether a token is good for a target: whether its resource is the yard, the topic,
// or the operation. Scheme, case, default ports and a trailing slash do not matter.
//
// The resource is read, and what it names is compared with what the route names. No URL is made of
// the request to be compared: whoever sends it would have a say in what it means.
func (t Token) Covers(at Target) bool {
	r, ok := parseResource(t.Resource)
	if !ok || !slices.ContainsFunc(at.Hosts, func(host string) bool { return plainHost(host) == r.host }) {
		return false
	}
	prefix, ok := pathSegments(at.Prefix)
	if !ok {
		return false
	}
	rest := r.segments
	if len(rest) >= len(prefix) && slices.Equal(rest[:len(prefix)], prefix) {
		rest = rest[len(prefix):]
	} else if slices.Equal(rest, prefix[:min(len(rest), len(prefix))]) {
		rest = nil // what the yard is beneath
	}
	switch topic := strings.ToLower(at.Topic); {
	case len(rest) == 0 || len(rest) == 1 && rest[0] == "topics":
		return true
	case rest[0] == "topics":
		return rest[1] == topic && at.operation(rest[2:])
	default:
		return strings.ToLower(TopicOfHost(r.host)) == topic && at.operation(rest)
	}
}

// operation reports whether a path beneath a topic is that of what is to be done, or above it.
func (at Target) operation(path []string) bool {
	if at.Subscription != "" {
		whole := []string{"eventsubscriptions", strings.ToLower(at.Subscription)}
		return len(path) <= len(whole) && slices.Equal(path, whole[:len(path)])
	}
	switch strings.Join(path, "/") {
	case "", "api", "api/events", "events", ":publish":
		return true
	}
	return false
}

// TopicOfHost gives the first label of a host's name, if it may name a topic: ORDERS.localhost.
// The client library that keeps nothing but the host of a URL tells topics apart that way.
func TopicOfHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ""
	}
	label, rest, _ := strings.Cut(strings.TrimSuffix(host, "."), ".")
	if rest == "" || !isName(label) {
		return ""
	}
	return label
}

// isName tells whether a text could be a topic's name: a host, or a token for one, may be anything.
func isName(text string) bool {
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}
	return len(text) >= 3 && len(text) <= 50 && !strings.ContainsFunc(text, foreign)
}

// resource is a URL as far as it matters here, in lower case.
type resource struct {
	host     string
	segments []string
}

// parseResource refuses what could be read as another resource: names of users, and steps upwards.
func parseResource(text string) (resource, bool) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return resource{}, false
	}
	segments, ok := pathSegments(u.EscapedPath())
	return resource{host: plainHost(u.Host), segments: segments}, ok
}

// plainHost is a host to be compared. Both default ports are left out whatever the scheme, which
// matters to neither side: whoever serves the request may be behind a proxy that has taken TLS off.
func plainHost(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		if name, found := strings.CutSuffix(host, port); found && !strings.HasSuffix(name, ":") {
			return name
		}
	}
	return host
}

func pathSegments(path string) ([]string, bool) {
	var segments []string
	path = strings.Trim(path, "/")
	if path == "" {
		return nil, true
	}
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "." || plain == ".." {
			return nil, false
		}
		segments = append(segments, strings.ToLower(plain))
	}
	last := len(segments) - 1
	if name, verb, found := strings.Cut(segments[last], ":"); found {
		segments = append(segments[:last], name, ":"+verb)
	}
	return segments, true
}
