package eventgrid

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// names are those that a path has in it, as the client wrote them, unescaped.
type names struct {
	topic, subscription, hub string // topic is also a domain's
	domainTopic              string
	// Of the resource manager's paths.
	account, group, namespace, location, topicType string
}

// pattern is a path of the table, taken apart. Its words are in lower case.
type pattern []segment

// segment is a word, or a name with a verb behind a colon (none: empty).
type segment struct {
	word string
	name string // topic, subscription, and so on, or one that nobody looks at; empty: it is a word
	verb string
}

func newPattern(path string) pattern {
	var p pattern
	for _, text := range strings.Split(strings.Trim(path, "/"), "/") {
		name, verb, isName := strings.Cut(text, "}")
		if !isName {
			p = append(p, segment{word: auth.Fold(text)})
			continue
		}
		p = append(p, segment{name: name[1:], verb: auth.Fold(strings.TrimPrefix(verb, ":"))})
	}
	return p
}

// maxPath bounds what is looked at; the longest path of the table with the longest names is
// far shorter.
const maxPath = 2048

// splitPath gives the segments of an escaped path, unescaped: a slash that was escaped is part
// of a name (of a hub), a colon that was escaped is a colon. One slash at the end is nothing.
func splitPath(escaped string) ([]string, error) {
	wrong := func(what string) error {
		return &frame.Refusal{Status: http.StatusBadRequest, Code: "InvalidUri", Detail: "the path " + what, Next: "escape it as URLs are"}
	}
	if len(escaped) > maxPath {
		return nil, wrong("is too long")
	}
	path := strings.Split(strings.TrimSuffix(strings.TrimPrefix(escaped, "/"), "/"), "/")
	for i, text := range path {
		plain, err := url.PathUnescape(text)
		if err != nil || !utf8.ValidString(plain) {
			return nil, wrong("is not well formed")
		}
		path[i] = plain
	}
	return path, nil
}

// match gives the names in a path, if it is one of the pattern.
func (p pattern) match(path []string) (names, bool) {
	if len(path) != len(p) {
		return names{}, false
	}
	var found names
	for i, s := range p {
		if s.name == "" {
			if auth.Fold(path[i]) != s.word {
				return names{}, false
			}
			continue
		}
		// A name without a verb in the pattern has no colon, so that a verb that nobody knows is
		// not taken for part of a name.
		name, verb := path[i], ""
		if at := strings.LastIndexByte(name, ':'); at >= 0 {
			name, verb = name[:at], name[at+1:]
		}
		if name == "" || auth.Fold(verb) != s.verb || s.verb == "" && len(name) < len(path[i]) {
			return names{}, false
		}
		switch s.name {
		case "topic":
			found.topic = name
		case "domainTopic":
			found.domainTopic = name
		case "subscription":
			found.subscription = name
		case "hub":
			found.hub = name
		case "account":
			found.account = name
		case "group":
			found.group = name
		case "namespace":
			found.namespace = name
		case "location":
			found.location = name
		case "topicType":
			found.topicType = name
		}
	}
	return found, true
}
