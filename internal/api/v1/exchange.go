package v1

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// exchange is one request to the API.
type exchange struct {
	*frame.Call
	handler   *Handler
	eventHubs bool
	route     *route // nil before it is found
}

// Find looks for the route, of which there is always one: some only say what is wrong.
func (x *exchange) Find() error {
	escaped := x.R.URL.EscapedPath()
	switch {
	case x.eventHubs: // the mux would clean the path, and "a//b" is a hub's name
		a, _ := parseAddress(escaped)
		x.route = x.handler.calls[a.route()]
	case path.Clean(escaped) != strings.TrimSuffix(escaped, "/") && escaped != "/":
		x.route = x.handler.unrouted // or the mux would send clients on: who deletes the group ".." does not mean the hub
	default:
		x.handler.mux.ServeHTTP(x, x.R)
	}
	if rt := x.route; (rt.stream || rt.eventHubs) && x.R.Method != rt.method { // HEAD comes with GET
		wrong := *rt
		wrong.need, wrong.serve = toRefuse, wrongMethod([]string{rt.method})
		x.route = &wrong
	}
	if x.route != x.handler.unrouted {
		x.Route = x.route.row()
	}
	return nil
}

// Admit is the one place where it is decided who is let in. The request carries the admission from
// then on.
func (x *exchange) Admit() error {
	if x.route.need.Reach == frame.Nobody {
		return nil
	}
	now := time.Now() // before the token is checked, so that it cannot expire between
	grant, err := frame.Authenticate(x.handler.cfg.Access, x.R)
	if err != nil {
		return err
	}
	x.Holder = grant.Account()
	a := admission{grant: grant, need: x.route.need, entity: entityOf(x.route, x.R), at: now}
	if err := a.check(); err != nil {
		return err
	}
	ctx := activity.By(context.WithValue(x.R.Context(), admissionKey{}, a), grant.Holder, frame.Address(x.R))
	x.R = x.R.WithContext(caller.With(ctx, caller.Caller{Grant: grant})) // other nodes may have to be asked
	return nil
}

func (x *exchange) Serve() error {
	x.R.Body = http.MaxBytesReader(x, x.R.Body, x.Route.MaxBody)
	if x.route.need.Reach != frame.Nobody && !x.eventHubs {
		if err := checkQuery(x.route, x.R); err != nil {
			return err
		}
		if err := checkCoding(x.R); err != nil {
			return err
		}
	}
	return x.route.serve(x.Call, x.R)
}

func (x *exchange) Judge(err error) frame.Refusal { return judge(err) }

// turnedAway tells whether the guard or the route's need kept the caller out, or what it was let in
// with has been revoked since.
func (x *exchange) turnedAway(said frame.Refusal) bool {
	return !x.Admitted || errors.Is(said.Cause, auth.ErrRevoked)
}

// Refuse tells who was turned away how to enter. The Event Hubs REST API knows no 403 and puts a
// word of its own before the detail.
func (x *exchange) Refuse(said frame.Refusal) {
	if x.route != nil && x.turnedAway(said) {
		if x.eventHubs && said.Status == http.StatusForbidden {
			said.Status = http.StatusUnauthorized
		}
		if said.Status == http.StatusUnauthorized {
			x.Header()["Www-Authenticate"] = frame.Challenges
			said.Next += x.handler.howToEnter()
		}
		if word := serviceWords[said.Code]; x.eventHubs && !strings.HasPrefix(said.Detail, word) {
			said.Detail = word + said.Detail
		}
	}
	if said.RetryAfter > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(int(said.RetryAfter.Seconds())))
	}
	if x.eventHubs {
		writeXMLError(x, said)
		return
	}
	_ = writeAs(x, said.Status, "application/problem+json", problemOf(said)) // it holds text and numbers only
}

func (x *exchange) Ended(took time.Duration) {
	x.handler.metrics.Observe(x.Call, took)
	if x.Refused != nil && x.turnedAway(*x.Refused) {
		x.handler.metrics.refused.WithLabelValues(x.Refused.Code).Inc()
	}
}
