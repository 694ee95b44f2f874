package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// guard keeps foreign web pages out. A page open in the user's browser may send requests
// to loopback as freely as the user may, and everybody knows the key of a yard there.
// And a browser that was once told a key (Basic) shows it for any page that asks.
type guard struct {
	loopbackOnly bool
	host         string // the yard's own name; empty if it has none
	crossOrigin  *http.CrossOriginProtection
}

func newGuard(loopbackOnly bool, host string) guard {
	return guard{loopbackOnly: loopbackOnly, host: host, crossOrigin: http.NewCrossOriginProtection()}
}

// check refuses a request that changes something on behalf of another origin, and,
// on a loopback listener, one that came by a foreign name: such a name was pointed at
// this machine by somebody else (DNS rebinding), and makes every page of his a page
// of ours, whose answers it may read.
func (g guard) check(r *http.Request) error {
	if g.loopbackOnly && !auth.IsLocalName(r.Host, g.host) {
		return &refusal{
			status: http.StatusForbidden,
			kind:   "foreign-host",
			title:  "This listener answers to local names only",
			detail: "the request came for host " + r.Host + ", which is neither an address nor a name of this machine: it could be a web page that points its own name here",
			next:   "use http://127.0.0.1 or http://localhost with the listener's port",
		}
	}
	if err := g.crossOrigin.Check(r); err != nil {
		return &refusal{
			status: http.StatusForbidden,
			kind:   "cross-origin",
			title:  "A page of another origin may not change anything here",
			detail: err.Error(),
			next:   "send the request from a program, or from a page that this yard serves",
		}
	}
	return nil
}
