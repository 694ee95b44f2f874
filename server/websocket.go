package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// webSocketPath is where clients of Event Hubs expect AMQP over WebSockets. .NET asks
// for it with a slash at its end.
const webSocketPath = "/$servicebus/websocket"

func isWebSocket(r *http.Request) bool {
	return strings.TrimSuffix(r.URL.Path, "/") == webSocketPath
}

// serveWebSocket hands a connection to the AMQP server, which refuses web pages of
// another origin. Clients may call the yard by any name: what lets them in is a token.
// Only where everybody knows the key is a page of a foreign name kept out as well:
// somebody has pointed that name at this machine (DNS rebinding) to make his page look
// like one of ours. Programs that are no browsers may say what they like.
func (d *doors) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if d.development && r.Header.Get("Origin") != "" && !isLocalName(r.Host) {
		http.Error(w, "a web page of "+r.Host+" may not connect to this yard: use 127.0.0.1 or localhost", http.StatusForbidden)
		return
	}
	d.amqp.ServeHTTP(w, r)
}

// isLocalName tells whether a Host header names this machine in a way that no name
// server can give: an address, localhost, or a name beneath it (RFC 6761).
func isLocalName(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
