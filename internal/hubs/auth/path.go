package auth

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// schemes are those that clients write resources and audiences with.
var schemes = []string{"sb", "amqp", "amqps", "http", "https", "ws", "wss"}

// Path is the part of a resource's URI that rights are judged by: without scheme, user, host, port
// and query, unescaped, without slashes at its ends, in lower case but for the names of groups and
// publishers. The scheme may be missing. A bare host name is the namespace: the empty path. Errors
// wrap ErrMalformed.
//
// A path without a host cannot be distinguished from a host: for those there is PathOf.
func Path(uri string) (string, error) {
	path, err := PathAsWritten(uri)
	return PathOf(path), err
}

// PathAsWritten is Path in the case in which it was written, to be shown.
func PathAsWritten(uri string) (string, error) {
	rest := uri
	if scheme, after, ok := strings.Cut(uri, "://"); ok {
		if !slices.Contains(schemes, Fold(scheme)) {
			return "", fmt.Errorf("%w: resource %.64q has an unknown scheme", ErrMalformed, uri)
		}
		rest = after
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	host, escaped, _ := strings.Cut(rest, "/")
	if host == "" {
		return "", fmt.Errorf("%w: resource %.64q names no host", ErrMalformed, uri)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return "", fmt.Errorf("%w: resource %.64q: %w", ErrMalformed, uri, err)
	}
	return strings.Trim(path, "/"), nil
}

// PathOf gives the path of something whose name is known, such as a hub's, or the address of a
// link: PathOf("Orders", "Partitions", "0") is orders/partitions/0. Slashes inside the parts stay.
func PathOf(parts ...string) string {
	return EntityOf(strings.Trim(strings.Join(parts, "/"), "/")).String()
}

// parts are the segments that stand between the name of a hub and what is in it.
var parts = []string{partGroups, partMessages, partPartitions, partPublishers}

// HubOf gives the name of the hub that a path, as Path makes it, lies in: what stands
// before the first segment that marks a part of a hub. No hub's name has such a segment,
// but for the first, so that this needs no look at the hubs there are.
func HubOf(path string) string {
	hub, _, _ := cutHub(path)
	return hub
}

// ReservedSegment gives the first segment of a name, in any case, that no hub's name may have: what
// is behind it would pass for a part of the hub before it. Empty if there is none.
func ReservedSegment(name string) string {
	_, segment, _ := cutHub(name)
	return Fold(segment)
}

// AmbiguousPart gives the part of a name that other programs may read as something else where it
// stands in a path or a host: steps upwards, an empty segment, or a dot at a segment's end. Empty
// if there is none. Nothing new gets such a name; what has one from before keeps it.
func AmbiguousPart(name string) string {
	for _, part := range []string{"..", "//", "./"} {
		if strings.Contains(name, part) {
			return part
		}
	}
	if strings.HasSuffix(name, ".") {
		return "."
	}
	return ""
}

// cutHub gives the hub of a path, the segment that ends it, in any case, and what is behind that;
// both are empty if none does. The first segment ends nothing: there would be no hub.
func cutHub(path string) (hub, segment, rest string) {
	at := 0
	for segment := range strings.SplitSeq(path, "/") {
		end := at + len(segment)
		if at > 0 && (strings.HasPrefix(segment, "$") || slices.Contains(parts, Fold(segment))) {
			return strings.TrimRight(path[:at], "/"), segment, strings.TrimPrefix(path[end:], "/")
		}
		at = end + 1
	}
	return path, "", ""
}

// Fold gives the form in which paths and names are compared: lower case. Only ASCII is
// folded, as in names of hubs: some other letters have an ASCII one as their lower case
// and would find something of another name.
func Fold(text string) string {
	folded := []byte(nil)
	for i := range len(text) {
		if c := text[i]; 'A' <= c && c <= 'Z' {
			if folded == nil {
				folded = []byte(text)
			}
			folded[i] = c + ('a' - 'A')
		}
	}
	if folded == nil {
		return text
	}
	return string(folded)
}
