package egress

import (
	"net/textproto"

	"golang.org/x/net/http/httpguts"
)

// framing are headers that say how a message is carried. They are the transport's own: one that
// a stranger could set would make two parties read the same bytes differently.
var framing = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// Sendable reports whether a header may be sent as it stands: its name is one, its value has no
// line break or other control character, and it is none that says how the message is carried.
func Sendable(name, value string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) && !framing[textproto.CanonicalMIMEHeaderKey(name)]
}
