package frame

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// errHost: what the request says that it came for is no name of a host.
var errHost = errors.New("is no host")

// maxHostBytes is the longest that a name can be, with a port.
const maxHostBytes = 253 + len(":65535")

// MaxFields is how many fields the head of a request may have. Real ones have some twenty.
const MaxFields = 200

// errFields: the head of the request has more than that.
var errFields = fmt.Errorf("the head of the request has more than %d fields", MaxFields)

// checkFields bounds what everybody who looks through them has to do.
func checkFields(h http.Header) error {
	fields := 0
	for _, values := range h {
		fields += len(values)
	}
	if fields > MaxFields {
		return errFields
	}
	return nil
}

// checkHost refuses a Host (:authority in HTTP/2) that is more or less than a host and a port.
// Names of topics and accounts are read from it, scopes of tokens are compared with it, and URLs in
// answers begin with it: what could pass for a path, a query or a user there is kept out once, for
// all of them. For HTTP/1.1 Go looks at it, too, but not for HTTP/2. Clients of HTTP/1.0, such as
// probes, may leave it out.
func checkHost(host string) error {
	if host == "" || len(host) <= maxHostBytes && isHost(host) {
		return nil
	}
	return fmt.Errorf("%.64q %w", host, errHost)
}

func isHost(host string) bool {
	name, port := host, ""
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		name, port = host[:at], host[at+1:]
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '+' {
			return false
		}
	}
	if inner, bracketed := strings.CutPrefix(name, "["); bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		return bracketed && err == nil && ip.Is6() && ip.Zone() == "" // a zone may be any text
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

// notInLabel tells characters that no name has, of DNS or of containers, which may have '_'.
func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
