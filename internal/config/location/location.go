// Package location shows where storage is without what lets in there. It is what every message says of the
// URL of an engine.
package location

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// shown are the settings of NATS servers that may be shown as they are: names, numbers and paths of files.
var shown = []string{"yard", "replicas", "streams", "streambytes", "creds", "nkey", "ca", "cert", "key", "systemcreds"}

// servers is what can only be names and addresses with ports.
var servers = regexp.MustCompile(`^` + server + `(,` + server + `)*/?$`)

const server = `(\[[0-9A-Fa-f:.]*\]|[^\[\]:/@,]*)(:\d*)?`

// Shown gives a location without a password or token: those of the servers, of the system account, and of the
// servers' monitoring. Of a URL that cannot be told apart for sure only the scheme is left. What is no URL is
// shown as it is.
func Shown(text string) string {
	scheme, rest, is := strings.Cut(text, "://")
	if !is || scheme == "disk" || scheme == "peer" {
		return text
	}
	unclear := scheme + "://…"
	where, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(where, '@'); at >= 0 {
		where = where[at+1:]
	}
	if !servers.MatchString(where) {
		return unclear
	}
	var settings []string
	for setting := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(setting, "=")
		switch {
		case name == "system" || setting == "":
		case name == "monitor":
			settings = append(settings, "monitor="+monitor(value))
		case slices.Contains(shown, name) && !strings.Contains(value, "@"): // else it may be a password with a '?' in it
			settings = append(settings, setting)
		default:
			return unclear
		}
	}
	if len(settings) > 0 {
		where += "?" + strings.Join(settings, "&")
	}
	return scheme + "://" + where
}

// monitor is the URL of a server's monitoring, as a setting has it, without who asks there.
func monitor(value string) string {
	text, err := url.QueryUnescape(value)
	if err != nil || !strings.Contains(text, "@") {
		return value
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return "…"
}
