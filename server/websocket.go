package server

import (
	"net/http"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// webSocketPath is where clients of Event Hubs expect AMQP over WebSockets. .NET asks
// for it with a slash at its end.
const webSocketPath = "/$servicebus/websocket"

// webSockets is the way to the AMQP server by HTTP.
func (d *listeners) webSockets() frame.API {
	return frame.Plain("amqp", isWebSocket, http.HandlerFunc(d.serveWebSocket), frame.Route{
		Method: http.MethodGet, Path: webSocketPath, Need: frame.Open("AMQP lets in by itself: SASL and $cbs"), Long: true,
	})
}

func isWebSocket(r *http.Request) bool {
	return strings.TrimSuffix(r.URL.Path, "/") == webSocketPath
}

// serveWebSocket hands a connection to the AMQP server, which refuses web pages of
// another origin. Clients may call the yard by any name: what lets them in is a token.
// Only where everybody knows the key is a page of a foreign name kept out as well:
// somebody has pointed that name at this machine (DNS rebinding) to make his page look
// like one of ours. Programs that are no browsers may say what they like; one of them
// always names an origin, so the name that the operator gave the yard is good, too.
func (d *listeners) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if d.development && r.Header.Get("Origin") != "" && !auth.IsLocalName(r.Host, d.host) {
		http.Error(w, "a web page of "+r.Host+" may not connect to this yard: use 127.0.0.1 or localhost", http.StatusForbidden)
		return
	}
	if r.ProtoMajor == 1 && r.Body == http.NoBody {
		// The connection gets a permit of AMQP, or is closed as soon as it has its answer.
		w.Header().Set("Connection", "close")
		d.visitors.leave(r)
	}
	d.amqp.ServeHTTP(w, r)
}
