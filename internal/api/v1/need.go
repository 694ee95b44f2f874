package v1

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// reach is how far a grant has to reach for a route.
type reach int

const (
	undeclared  reach = iota // somebody forgot; such a route is never registered
	ofNobody                 // open to all: no token is looked at
	ofAny                    // any good token will do, whatever it is for
	ofNamespace              // the token is for the whole namespace
	ofHub                    // the token is for the hub in the path, or what contains it
)

// need is what a route asks of whoever calls it.
type need struct {
	reach reach
	// oneOf are the rights of which one is enough; empty asks for any right at all.
	oneOf []auth.Rights
}

// What routes need. Whoever may send to a hub or listen to it may also look at it.
var (
	nothing        = need{reach: ofNobody}
	anyGrant       = need{reach: ofAny}
	namespaceGrant = need{reach: ofNamespace}
	manageAll      = need{reach: ofNamespace, oneOf: []auth.Rights{auth.Manage}}
	manageHub      = need{reach: ofHub, oneOf: []auth.Rights{auth.Manage}}
	sendToHub      = need{reach: ofHub, oneOf: []auth.Rights{auth.Send}}
	listenToHub    = need{reach: ofHub, oneOf: []auth.Rights{auth.Listen}}
	lookAtHub      = need{reach: ofHub, oneOf: []auth.Rights{auth.Send, auth.Listen}}
)

// String is how openapi.json and refusals put it.
func (n need) String() string {
	switch n.reach {
	case ofNobody:
		return "nothing"
	case ofAny:
		return "any token"
	case ofNamespace:
		return n.rights() + " to the namespace"
	default:
		return n.rights() + " to the hub"
	}
}

func (n need) rights() string {
	names := make([]string, len(n.oneOf))
	for i, r := range n.oneOf {
		names[i] = strings.Join(r.Names(), " and ")
	}
	if len(names) == 0 {
		return "any right"
	}
	return strings.Join(names, " or ")
}

// check tells why a grant is not enough for a place.
func (n need) check(g auth.Grant, at auth.Entity, now time.Time) error {
	if n.reach == ofAny {
		if g.Stands() {
			return nil
		}
		return fmt.Errorf("%w: the token of %q gives none at all", errRights, g.Holder)
	}
	if !g.Allows(at, 0, now) {
		return fmt.Errorf("%w: the token of %q is not for %s", auth.ErrAudience, g.Holder, showPosition(at))
	}
	enough := func(r auth.Rights) bool { return g.Allows(at, r, now) }
	if len(n.oneOf) == 0 || slices.ContainsFunc(n.oneOf, enough) {
		return nil
	}
	return fmt.Errorf("%w: %s is required, and the token of %q gives %s to %s",
		errRights, n.rights(), g.Holder, g.Rights(at), showPosition(at))
}

func showPosition(at auth.Entity) string {
	if at.Hub == "" {
		return "the whole namespace"
	}
	return fmt.Sprintf("%q", at.Path)
}

// positionOf is what rights to a request are judged by. That of a REST call is narrower than
// the hub where its address is: there are tokens that are good for one publisher only.
func positionOf(rt route, r *http.Request) auth.Entity {
	switch {
	case rt.need.reach != ofHub:
		return auth.Entity{}
	case !rt.eventHubs:
		return auth.At(r.PathValue("hub"))
	}
	a, _ := parseAddress(r.URL.EscapedPath())
	switch {
	case a.partition != "":
		return auth.At(a.hub, "partitions", a.partition)
	case a.publisher != "":
		return auth.At(a.hub, "publishers", a.publisher)
	}
	return auth.At(a.hub)
}
