package eventgrid

import (
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// route is one operation of the listener.
type route struct {
	method string
	// pattern's words are found in any case; a name in braces stands for one segment.
	pattern pattern
	name    string // for metrics and logs
	need    need
	serve   func(*call) error
	// poll marks what waits by design: it is not timed.
	poll bool
	// manager: it is the resource manager's, which frames lists. namespaced: its topics are a
	// namespace's, and take CloudEvents if nothing else is said.
	manager, namespaced bool
	// silentHead: HEAD is answered as if there were nothing, as Event Grid does (reference §1).
	silentHead bool
}

// need is what a caller has to show.
type need byte

const (
	undeclared need = iota // somebody forgot; such a route is never served
	nothing                // anybody may
	toPublish              // the topic's key, or the right to send to the namespace
	toPull                 // the topic's key, or the right to listen
	toManage               // the right to manage the namespace
)

// rights are those that a policy of the namespace has to have.
func (n need) rights() auth.Rights {
	switch n {
	case toPublish:
		return auth.Send
	case toPull:
		return auth.Listen
	}
	return auth.Manage
}

// The beginnings of the resource manager's paths (reference §18). A yard is one subscription and
// one resource group, so that any stand for it.
const (
	ofProvider = "/providers/Microsoft.EventGrid"
	ofAccount  = "/subscriptions/{account}"
	ofGroup    = ofAccount + "/resourceGroups/{group}"
	ofHub      = ofGroup + "/providers/Microsoft.EventHub/namespaces/{namespace}/eventhubs/{hub}"
)

// routes is the whole listener. It is searched from the top; publishing comes first.
func routes() []route {
	list := slices.Concat(publishRoutes(), pullRoutes(), edgeRoutes(), managerRoutes())
	for _, rt := range list {
		if rt.need == undeclared {
			panic("gridapi: route " + rt.name + " does not say what it needs")
		}
	}
	return list
}

func publishRoutes() (list []route) {
	for _, path := range []string{"/topics/{topic}/api/events", "/topics/{topic}/events", "/api/events", "/"} {
		p := newPattern(path)
		list = append(list,
			route{method: "POST", pattern: p, name: "Publish", need: toPublish, serve: (*call).publish, silentHead: true},
			route{method: "OPTIONS", pattern: p, name: "PublishOptions", need: nothing, serve: (*call).publishOptions, silentHead: true},
		)
	}
	validate := newPattern("/topics/{topic}/validate")
	return append(list,
		route{method: "POST", pattern: newPattern("/topics/{topic}:publish"), name: "NamespacePublish", need: toPublish, serve: (*call).publishToNamespace},
		route{method: "GET", pattern: validate, name: "Validate", need: nothing, serve: (*call).validate},
		route{method: "POST", pattern: validate, name: "Validate", need: nothing, serve: (*call).validate},
	)
}

func pullRoutes() (list []route) {
	const base = "/topics/{topic}/eventsubscriptions/{subscription}:"
	for _, rt := range []route{
		{name: "receive", serve: (*call).receive, poll: true},
		{name: "acknowledge", serve: (*call).acknowledge},
		{name: "release", serve: (*call).release},
		{name: "reject", serve: (*call).reject},
		{name: "renewLock", serve: (*call).renewLock},
	} {
		rt.method, rt.need, rt.pattern = "POST", toPull, newPattern(base+rt.name)
		rt.name = strings.ToUpper(rt.name[:1]) + rt.name[1:]
		list = append(list, rt)
	}
	return list
}

// edgeRoutes are those of Event Grid's edition for the edge: short paths, lists without a frame.
func edgeRoutes() []route {
	return slices.Concat(
		managed("GET", "/topics", "ListTopics", (*call).listTopics),
		topicRoutes("/topics/{topic}"),
		subscriptionRoutes("/topics/{topic}/eventSubscriptions"),
	)
}

func managerRoutes() []route {
	list := slices.Concat(
		managed("GET", ofAccount+ofProvider+"/topics", "ListTopics", (*call).listTopics),
		managed("GET", ofAccount+ofProvider+"/eventSubscriptions", "ListSubscriptions", (*call).listSubscriptions),
		managed("GET", ofGroup+ofProvider+"/eventSubscriptions", "ListSubscriptions", (*call).listSubscriptions),
		subscriptionRoutes(ofHub+ofProvider+"/eventSubscriptions"),
	)
	list = append(list, scopeRoutes(ofGroup+ofProvider+"/topics")...)
	for _, rt := range scopeRoutes(ofGroup + ofProvider + "/namespaces/{namespace}/topics") {
		rt.namespaced = true
		list = append(list, rt)
	}
	for i := range list {
		list[i].manager = true
	}
	return list
}

// scopeRoutes are those of the resource manager for all that is beneath a list of topics.
func scopeRoutes(base string) []route {
	topic := base + "/{topic}"
	return slices.Concat(
		managed("GET", base, "ListTopics", (*call).listTopics),
		topicRoutes(topic),
		managed("PATCH", topic, "UpdateTopic", (*call).updateTopic),
		managed("POST", topic+"/regenerateKey", "RegenerateKey", (*call).regenerateKey),
		subscriptionRoutes(topic+"/eventSubscriptions"),
		subscriptionRoutes(topic+ofProvider+"/eventSubscriptions"), // the older form: of any scope
	)
}

func topicRoutes(topic string) []route {
	return slices.Concat(
		managed("GET", topic, "GetTopic", (*call).getTopic),
		managed("PUT", topic, "PutTopic", (*call).putTopic),
		managed("DELETE", topic, "DeleteTopic", (*call).deleteTopic),
		managed("POST", topic+"/listKeys", "ListKeys", (*call).listKeys),
	)
}

func subscriptionRoutes(base string) []route {
	one := base + "/{subscription}"
	return slices.Concat(
		managed("GET", base, "ListSubscriptions", (*call).listSubscriptions),
		managed("GET", one, "GetSubscription", (*call).getSubscription),
		managed("PUT", one, "PutSubscription", (*call).putSubscription),
		managed("PATCH", one, "UpdateSubscription", (*call).updateSubscription),
		managed("DELETE", one, "DeleteSubscription", (*call).deleteSubscription),
		managed("POST", one+"/getFullUrl", "GetFullURL", (*call).getFullURL),
		managed("POST", one+"/getDeliveryAttributes", "GetDeliveryAttributes", (*call).getDeliveryAttributes),
	)
}

func managed(method, path, name string, serve func(*call) error) []route {
	return []route{{method: method, pattern: newPattern(path), name: name, need: toManage, serve: serve}}
}

// find gives a call its route and the names in its path.
func (d *Handler) find(c *call) error {
	path, err := splitPath(c.r.URL.EscapedPath())
	if err != nil {
		return err
	}
	var allowed []string
	for _, rt := range d.routes {
		found, ok := rt.pattern.match(path)
		switch {
		case !ok:
			continue
		case rt.silentHead && c.r.Method == http.MethodHead:
			return noSuchPath(c.r)
		case rt.takes(c.r.Method):
			c.route, c.names = rt, found
			return c.nameByHost()
		}
		allowed = append(allowed, rt.method)
	}
	if len(allowed) == 0 {
		return noSuchPath(c.r)
	}
	return c.wrongMethod(allowed)
}

// takes tells whether the route is for a method. HEAD is GET without a body, but not where GET
// changes something.
func (rt route) takes(method string) bool {
	return rt.method == method || method == http.MethodHead && rt.method == http.MethodGet && rt.need == toManage
}

// nameByHost takes the topic from the host where the path names none.
func (c *call) nameByHost() error {
	if c.route.name != "Publish" && c.route.name != "PublishOptions" || c.names.topic != "" {
		return nil
	}
	if c.names.topic = topicOfHost(c.r.Host); c.names.topic == "" {
		return &fault{
			status: http.StatusNotFound, code: codeNotFound,
			message: "neither the path nor the host's first label names a topic",
			next:    "publish to /topics/NAME/api/events, or to /api/events at a host such as NAME.localhost",
		}
	}
	return nil
}

func noSuchPath(r *http.Request) error {
	return &fault{
		status: http.StatusNotFound, code: codeNotFound,
		message: "there is nothing at " + shorten(r.URL.Path),
		next:    "publish to /topics/NAME/api/events; GET /topics lists the topics",
	}
}

func (c *call) wrongMethod(allowed []string) error {
	slices.Sort(allowed)
	slices.Reverse(allowed) // POST before OPTIONS, as Event Grid has it
	methods := strings.Join(slices.Compact(allowed), ", ")
	c.w.Header().Set("Allow", methods)
	return &fault{
		status: http.StatusMethodNotAllowed, code: "MethodNotAllowed",
		message: shorten(c.r.Method) + " is not a method of " + shorten(c.r.URL.Path),
		next:    "use " + methods,
	}
}
