package auth

import (
	"net"
	"net/netip"
	"strings"
)

// IsLocalName reports whether a Host header, with or without a port, names this machine in a
// way that no name server can give: an address literal, localhost, or a name beneath it
// (RFC 6761); or by a name that the operator has given it, empty if none. Where everybody
// knows the key, a web page that came by another name is a stranger's, who has pointed
// that name at this machine (DNS rebinding).
func IsLocalName(host, own string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = Fold(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || own != "" && name == Fold(own)
}
