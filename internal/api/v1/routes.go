package v1

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// handler answers a request or says why not. After the first byte of an answer it
// returns nil: what goes wrong then is the stream's own affair.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one operation of the listener, as openapi.json describes it too.
type route struct {
	method string
	path   string
	// need is what whoever calls has to show; it is checked before serve.
	need  need
	serve handler
	// stream marks answers that may take long by design: they are not timed, and HEAD
	// makes no sense for them.
	stream bool
	// eventHubs marks the Event Hubs REST calls. They are found by the path's end and
	// not by the mux, because a hub's name may hold slashes.
	eventHubs bool
}

// routes is the whole listener.
func (d *Handler) routes() []route {
	return []route{
		{method: "GET", path: "/api/v1", need: anyGrant, serve: d.info},
		{method: "GET", path: "/api/v1/openapi.json", need: nothing, serve: d.openAPI},

		{method: "GET", path: "/api/v1/hubs", need: anyGrant, serve: d.listHubs},
		{method: "POST", path: "/api/v1/hubs", need: manageAll, serve: d.createHub},
		{method: "GET", path: "/api/v1/hubs/{hub}", need: lookAtHub, serve: d.getHub},
		{method: "PATCH", path: "/api/v1/hubs/{hub}", need: manageHub, serve: d.updateHub},
		{method: "DELETE", path: "/api/v1/hubs/{hub}", need: manageHub, serve: d.deleteHub},

		{method: "GET", path: "/api/v1/hubs/{hub}/groups", need: lookAtHub, serve: d.listGroups},
		{method: "POST", path: "/api/v1/hubs/{hub}/groups", need: manageHub, serve: d.createGroup},
		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}", need: lookAtHub, serve: d.getGroup},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/groups/{group}", need: manageHub, serve: d.deleteGroup},

		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}/ownership", need: listenToHub, serve: d.withGroups(d.showOwnership), stream: true},
		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints", need: listenToHub, serve: d.withGroups(d.listCheckpoints)},
		{method: "POST", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints", need: manageHub, serve: d.withGroups(d.importCheckpoints)},
		{method: "PUT", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints/{partition}", need: manageHub, serve: d.withGroups(d.moveCheckpoint)},

		{method: "GET", path: "/api/v1/hubs/{hub}/partitions", need: lookAtHub, serve: d.listPartitions},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions/{partition}", need: lookAtHub, serve: d.getPartition},

		{method: "POST", path: "/api/v1/hubs/{hub}/events", need: sendToHub, serve: d.sendEvents},
		{method: "GET", path: "/api/v1/hubs/{hub}/events", need: listenToHub, serve: d.readHub, stream: true},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions/{partition}/events", need: listenToHub, serve: d.readPage, stream: true},

		{method: "GET", path: "/api/v1/policies", need: manageAll, serve: d.listPolicies},
		{method: "POST", path: "/api/v1/policies", need: manageAll, serve: d.createPolicy},
		{method: "GET", path: "/api/v1/policies/{policy}", need: manageAll, serve: d.getPolicy},
		{method: "DELETE", path: "/api/v1/policies/{policy}", need: manageAll, serve: d.deletePolicy},
		{method: "POST", path: "/api/v1/policies/{policy}/regenerate", need: manageAll, serve: d.regeneratePolicy},

		{method: "GET", path: "/api/v1/hubs/{hub}/policies", need: manageHub, serve: d.listPolicies},
		{method: "POST", path: "/api/v1/hubs/{hub}/policies", need: manageHub, serve: d.createPolicy},
		{method: "GET", path: "/api/v1/hubs/{hub}/policies/{policy}", need: manageHub, serve: d.getPolicy},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/policies/{policy}", need: manageHub, serve: d.deletePolicy},
		{method: "POST", path: "/api/v1/hubs/{hub}/policies/{policy}/regenerate", need: manageHub, serve: d.regeneratePolicy},

		{method: "GET", path: "/api/v1/topics", need: manageAll, serve: d.withGrid(d.listTopics)},
		{method: "POST", path: "/api/v1/topics", need: manageAll, serve: d.withGrid(d.createTopic)},
		{method: "GET", path: "/api/v1/topics/{topic}", need: manageAll, serve: d.withGrid(d.getTopic)},
		{method: "PATCH", path: "/api/v1/topics/{topic}", need: manageAll, serve: d.withGrid(d.updateTopic)},
		{method: "DELETE", path: "/api/v1/topics/{topic}", need: manageAll, serve: d.withGrid(d.deleteTopic)},
		{method: "POST", path: "/api/v1/topics/{topic}/regenerate", need: manageAll, serve: d.withGrid(d.regenerateTopicKey)},

		{method: "GET", path: "/api/v1/subscriptions", need: manageAll, serve: d.withGrid(d.listSubscriptions)},
		{method: "POST", path: "/api/v1/subscriptions", need: manageAll, serve: d.withGrid(d.createSubscription), stream: true},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: d.withGrid(d.getSubscription)},
		{method: "PATCH", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: d.withGrid(d.updateSubscription), stream: true},
		{method: "DELETE", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: d.withGrid(d.deleteSubscription)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/resume", need: manageAll, serve: d.withGrid(d.resumeSubscription)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/rotate-key", need: manageAll, serve: d.withGrid(d.rotateSigningKey)},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/attempts", need: manageAll, serve: d.withGrid(d.listAttempts)},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/dead", need: manageAll, serve: d.withGrid(d.listDeadLetters)},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/dead/{number}", need: manageAll, serve: d.withGrid(d.getDeadLetter)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/redrive", need: manageAll, serve: d.withGrid(d.redrive), stream: true},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/purge", need: manageAll, serve: d.withGrid(d.purgeDeadLetters)},

		{method: "GET", path: "/api/v1/functions", need: manageAll, serve: d.withFunctions(d.listFunctions)},
		{method: "POST", path: "/api/v1/functions", need: manageAll, serve: d.withFunctions(d.createFunction)},
		{method: "GET", path: "/api/v1/functions/{function}", need: manageAll, serve: d.withFunctions(d.getFunction)},
		{method: "PATCH", path: "/api/v1/functions/{function}", need: manageAll, serve: d.withFunctions(d.updateFunction)},
		{method: "DELETE", path: "/api/v1/functions/{function}", need: manageAll, serve: d.withFunctions(d.deleteFunction), stream: true},
		{method: "POST", path: "/api/v1/functions/{function}/pause", need: manageAll, serve: d.withFunctions(d.pauseFunction)},
		{method: "POST", path: "/api/v1/functions/{function}/resume", need: manageAll, serve: d.withFunctions(d.resumeFunction)},

		{method: "GET", path: "/api/v1/circuits", need: manageAll, serve: d.withFunctions(d.listCircuits)},
		{method: "GET", path: "/api/v1/circuits/{function}", need: manageAll, serve: d.withFunctions(d.getCircuit)},
		{method: "POST", path: "/api/v1/circuits/{function}/open", need: manageAll, serve: d.withFunctions(d.openCircuit)},
		{method: "POST", path: "/api/v1/circuits/{function}/close", need: manageAll, serve: d.withFunctions(d.closeCircuit)},

		{method: "GET", path: "/api/v1/hubs/{hub}/poison", need: listenToHub, serve: d.withFunctions(d.listPoison)},
		{method: "POST", path: "/api/v1/hubs/{hub}/poison/redrive", need: manageAll, serve: d.withFunctions(d.redrivePoison), stream: true},
		{method: "POST", path: "/api/v1/notices/test", need: manageAll, serve: d.withFunctions(d.testNotice), stream: true},

		{method: "GET", path: "/api/v1/connection-string", need: manageAll, serve: d.getConnectionString},

		{method: "POST", path: "/{hub}/messages", need: sendToHub, serve: d.postMessages, eventHubs: true},
		{method: "POST", path: "/{hub}/partitions/{partition}/messages", need: sendToHub, serve: d.postMessages, eventHubs: true},
		{method: "POST", path: "/{hub}/publishers/{publisher}/messages", need: sendToHub, serve: d.postMessages, eventHubs: true},

		{method: "GET", path: "/healthz", need: nothing, serve: d.healthy},
		{method: "GET", path: "/readyz", need: nothing, serve: d.ready},
		{method: "GET", path: "/metrics", need: namespaceGrant, serve: d.showMetrics},
	}
}

// register fills the mux. Each route is registered by method and, beneath it, each
// path without one, so that a wrong method is told in our own words and not in the
// mux's. The Event Hubs calls are kept apart, by path.
func (d *Handler) register() {
	d.mux, d.calls = http.NewServeMux(), map[string]http.Handler{}
	allowed := map[string][]string{}
	for _, rt := range d.routes() {
		if rt.eventHubs {
			d.calls[rt.path] = d.handle(rt)
			continue
		}
		d.mux.Handle(rt.method+" "+rt.path, d.handle(rt))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		d.mux.Handle(path, d.handle(route{path: path, need: nothing, serve: wrongMethod(methods)}))
	}
	d.unrouted = d.handle(route{path: unrouted, need: nothing, serve: noSuchPath})
	d.mux.Handle("/", d.unrouted)
}

// find gives the handler of a request. The Event Hubs calls come first, because the
// mux would clean their paths, and "a//b" is a hub's name. It would clean the others, too, and send
// clients there: who deletes the group ".." does not mean the hub.
func (d *Handler) find(r *http.Request) http.Handler {
	if a, ok := parseAddress(r.URL.EscapedPath()); ok {
		return d.calls[a.route()]
	}
	if p := r.URL.EscapedPath(); path.Clean(p) != strings.TrimSuffix(p, "/") && p != "/" {
		return d.unrouted
	}
	return d.mux
}

// handle is the frame around every handler: it names the route for the metrics, lets
// in whoever has what the route needs, and turns the error into an answer.
func (d *Handler) handle(rt route) http.Handler {
	if rt.need.reach == undeclared {
		panic("httpapi: route " + rt.method + " " + rt.path + " does not say what it needs")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rec, ok := w.(*recorder); ok {
			rec.route, rec.stream = rt.path, rt.stream
		}
		rt := rt
		if (rt.stream || rt.eventHubs) && r.Method != rt.method {
			rt.need, rt.serve = nothing, wrongMethod([]string{rt.method})
		}
		r, err := d.admit(rt, r)
		if err != nil {
			d.turnAway(w, r, rt, err)
			return
		}
		switch err := rt.serve(w, r); {
		case errors.Is(err, auth.ErrRevoked): // since it was let in
			d.turnAway(w, r, rt, err)
		case err != nil:
			d.refuse(w, r, err)
		}
	})
}

func wrongMethod(allowed []string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &refusal{
			status: http.StatusMethodNotAllowed,
			kind:   "method-not-allowed",
			title:  "This path does not take that method",
			detail: r.Method + " is not a method of " + r.URL.Path,
			next:   "use " + strings.Join(allowed, ", ") + "; all operations are described at /api/v1/openapi.json",
		}
	}
}

func noSuchPath(_ http.ResponseWriter, r *http.Request) error {
	return &refusal{
		status: http.StatusNotFound,
		kind:   "no-such-path",
		title:  "There is nothing at this path",
		detail: "no operation of this yard has the path " + r.URL.Path,
		next:   "begin at /api/v1; all paths are described at /api/v1/openapi.json, and a '/' in a hub's name is written %2F there",
	}
}
