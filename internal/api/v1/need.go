package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// What routes need. Whoever may send to a hub or listen to it may also look at it.
var (
	toProbe     = frame.Open("probes have no token, and learn only whether the yard answers")
	toRefuse    = frame.Open("nothing is done but to say what is wrong")
	anyGrant    = frame.Of(frame.Any)
	toScrape    = frame.Of(frame.Namespace, auth.Metrics, auth.Listen)
	manageAll   = frame.Of(frame.Namespace, auth.Manage)
	manageHub   = frame.Of(frame.Hub, auth.Manage)
	sendToHub   = frame.Of(frame.Hub, auth.Send)
	listenToHub = frame.Of(frame.Hub, auth.Listen)
	lookAtHub   = frame.Of(frame.Hub, auth.Send, auth.Listen)
)

// entityOf is what rights to a request are judged by. That of a REST call is narrower than
// the hub where its address is: there are tokens that are good for one publisher only.
func entityOf(rt *route, r *http.Request) auth.Entity {
	switch {
	case rt.need.Reach != frame.Hub:
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
