package frame

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

var (
	errForeignHost = errors.New("neither an address nor a name of this machine")
	errCrossOrigin = errors.New("a page of another origin may not change anything here")
)

// guard keeps foreign web pages out. A page open in the user's browser may send requests to
// loopback as freely as the user may, and everybody knows the key of a yard there. And a browser
// that was once told a key (Basic) shows it for any page that asks.
type guard struct {
	loopbackOnly bool
	host         string // the yard's own name; empty if it has none
	crossOrigin  *http.CrossOriginProtection
}

func newGuard(cfg Config) guard {
	return guard{loopbackOnly: cfg.LoopbackOnly, host: cfg.Host, crossOrigin: http.NewCrossOriginProtection()}
}

// check refuses a request that changes something on behalf of another origin and, on loopback, one
// that came by a foreign name: such a name was pointed at this machine by somebody else (DNS
// rebinding), and makes every page of his a page of ours, whose answers it may read.
func (g guard) check(api *API, r *http.Request) error {
	if api.Unguarded {
		return nil
	}
	if g.loopbackOnly && !g.isOwn(api, r.Host) {
		return fmt.Errorf("the request came for host %s, which is %w: it could be a web page that points its own name here", r.Host, errForeignHost)
	}
	if err := g.crossOrigin.Check(r); err != nil && !(api.Deliveries && isDelivery(r)) {
		from := "another origin"
		if origin := r.Header.Get("Origin"); origin != "" {
			from = fmt.Sprintf("%.200q", origin)
		}
		return fmt.Errorf("%w: the browser says that the request comes from a page of %s, and this is %s", errCrossOrigin, from, r.Host)
	}
	return nil
}

// isDelivery tells a grid, ours or another, that delivers CloudEvents to a topic or a hub of ours: it
// names itself in Origin, as pages do, and in a header of its own (reference §9), which no page can
// send to another origin that does not agree to it beforehand (CORS). Browsers that say where a
// request comes from are believed.
func isDelivery(r *http.Request) bool {
	return r.Header.Get("WebHook-Request-Origin") != "" && r.Header.Get("Sec-Fetch-Site") == ""
}

// isOwn tells whether a host is this machine, or a name that the operator has given the yard.
func (g guard) isOwn(api *API, host string) bool {
	return auth.IsLocalName(host, g.host) || g.host != "" && slices.ContainsFunc(api.Beneath, func(name string) bool {
		return auth.IsLocalName(host, name+"."+g.host)
	})
}
