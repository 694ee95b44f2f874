package topickey

import (
	"net/url"
	"slices"
	"strings"
)

// Covers reports whether a token for a resource is good for a URL: the same, or beneath it by
// whole path segments; scheme, case, default ports and a trailing slash do not matter, nor does a
// query. A verb after a colon (topics/orders:publish) is beneath what stands before it.
func (t Token) Covers(url string) bool {
	resource, ok := parseResource(t.Resource)
	if !ok {
		return false
	}
	target, ok := parseResource(url)
	if !ok || target.host != resource.host || len(target.segments) < len(resource.segments) {
		return false
	}
	return slices.Equal(resource.segments, target.segments[:len(resource.segments)])
}

// resource is a URL as far as it matters here, in lower case.
type resource struct {
	host     string
	segments []string
}

// parseResource refuses what could be read as another resource by whoever routes the request: names
// of users, and steps upwards.
func parseResource(text string) (resource, bool) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return resource{}, false
	}
	// Both default ports are left out whatever the scheme, which matters to neither side: whoever
	// serves the request may be behind a proxy that has taken TLS off.
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "80" || port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	segments, ok := pathSegments(u.EscapedPath())
	return resource{host: host, segments: segments}, ok
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
