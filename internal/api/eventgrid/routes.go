package eventgrid

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// route is one operation of the API.
type route struct {
	frame.Route
	// pattern is the path, whose words are found in any case.
	pattern pattern
	serve   func(*call) error
	// manager: it is the resource manager's, which frames lists. namespaced: its topics are a
	// namespace's, and take CloudEvents if nothing else is said.
	manager, namespaced bool
	// domain: its topics are domains.
	domain bool
	// created: a change is answered 201, as if it were made anew, since its clients take no other.
	created bool
	// silentHead: HEAD is answered as if there were nothing, as Event Grid does (reference §1).
	silentHead bool
}

// What routes need: a topic's key, or a right to the namespace, which topics belong to.
var (
	toPublish = frame.Need{Reach: frame.Namespace, OneOf: []auth.Rights{auth.Send}, TopicKey: true}
	toPull    = frame.Need{Reach: frame.Namespace, OneOf: []auth.Rights{auth.Listen}, TopicKey: true}
	toManage  = frame.Of(frame.Namespace, auth.Manage)
)

// The beginnings of the resource manager's paths (reference §18). A yard is one subscription and
// one resource group, so that any stand for it.
const (
	ofProvider = "/providers/Microsoft.EventGrid"
	ofAccount  = "/subscriptions/{account}"
	ofGroup    = ofAccount + "/resourceGroups/{group}"
	ofHub      = ofGroup + "/providers/Microsoft.EventHub/namespaces/{namespace}/eventhubs/{hub}"
)

// routes is the whole API. It is searched from the top; publishing comes first.
func routes(cfg Config) []route {
	list := slices.Concat(publishRoutes(int64(cfg.MaxBytes)), pullRoutes(), edgeRoutes(), managerRoutes())
	for i := range list {
		list[i].pattern = newPattern(list[i].Path)
		list[i].MaxBody = cmp.Or(list[i].MaxBody, maxManageBytes)
	}
	return list
}

func publishRoutes(maxBytes int64) (list []route) {
	publish := frame.Route{Method: "POST", Name: "Publish", Need: toPublish, MaxBody: maxBytes}
	options := frame.Route{Method: "OPTIONS", Name: "PublishOptions", Need: frame.Open("publishers ask it before they show a key; only to who shows one it tells of the topic")}
	for _, path := range []string{"/topics/{topic}/api/events", "/topics/{topic}/events", "/api/events", "/"} {
		publish.Path, options.Path = path, path
		list = append(list,
			route{Route: publish, serve: (*call).publish, silentHead: true},
			route{Route: options, serve: (*call).publishOptions, silentHead: true})
	}
	publish.Path, publish.Name = "/topics/{topic}:publish", "NamespacePublish"
	list = append(list, route{Route: publish, serve: (*call).publishToNamespace})
	for _, method := range []string{"GET", "POST"} {
		list = append(list, route{serve: (*call).validate, Route: frame.Route{
			Method: method, Path: "/topics/{topic}/validate", Name: "Validate", Need: frame.Open("the link's token is what lets in"),
		}})
	}
	return list
}

func pullRoutes() (list []route) {
	for _, rt := range []struct {
		name  string
		serve func(*call) error
		waits bool
	}{
		{"Receive", (*call).receive, true},
		{"Acknowledge", (*call).acknowledge, false},
		{"Release", (*call).release, false},
		{"Reject", (*call).reject, false},
		{"RenewLock", (*call).renewLock, false},
	} {
		verb := strings.ToLower(rt.name[:1]) + rt.name[1:]
		list = append(list, route{serve: rt.serve, Route: frame.Route{
			Method: "POST", Path: "/topics/{topic}/eventsubscriptions/{subscription}:" + verb, Name: rt.name, Need: toPull, Long: rt.waits,
		}})
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
		managed("GET", ofGroup+ofProvider+"/namespaces/{namespace}", "GetNamespace", (*call).getNamespace),
		managed("GET", ofProvider+"/topicTypes", "ListTopicTypes", (*call).listTopicTypes),
		managed("GET", ofProvider+"/topicTypes/{topicType}", "GetTopicType", (*call).getTopicType),
		managed("GET", ofProvider+"/topicTypes/{topicType}/eventTypes", "ListEventTypes", (*call).listEventTypes),
		subscriptionRoutes(ofHub+ofProvider+"/eventSubscriptions"),
	)
	list = append(list, scopeRoutes(ofGroup+ofProvider+"/topics")...)
	for _, rt := range scopeRoutes(ofGroup + ofProvider + "/namespaces/{namespace}/topics") {
		rt.namespaced = true
		list = append(list, rt)
	}
	list = append(list, domainRoutes()...)
	for _, of := range []string{ofAccount, ofGroup} {
		for _, part := range []string{"/topicTypes/{topicType}", "/locations/{location}", "/locations/{location}/topicTypes/{topicType}"} {
			list = append(list, managed("GET", of+ofProvider+part+"/eventSubscriptions", "ListSubscriptions", (*call).listSubscriptions)...)
		}
	}
	for i := range list {
		list[i].manager, list[i].created = true, !list[i].namespaced
	}
	return list
}

// domainRoutes are those of domains, which are topics in all but their path, and of their topics.
func domainRoutes() []route {
	const base = ofGroup + ofProvider + "/domains"
	const all, one = base + "/{topic}/topics", base + "/{topic}/topics/{domainTopic}"
	list := slices.Concat(
		managed("GET", ofAccount+ofProvider+"/domains", "ListDomains", (*call).listTopics),
		scopeRoutes(base),
		managed("GET", all, "ListDomainTopics", (*call).listDomainTopics),
		managed("GET", one, "GetDomainTopic", (*call).getDomainTopic),
		managed("PUT", one, "PutDomainTopic", (*call).putDomainTopic),
		managed("DELETE", one, "DeleteDomainTopic", (*call).deleteDomainTopic),
		subscriptionRoutes(one+"/eventSubscriptions"),
		subscriptionRoutes(one+ofProvider+"/eventSubscriptions"),
	)
	for i := range list {
		list[i].domain = true
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
	return []route{{serve: serve, Route: frame.Route{Method: method, Path: path, Name: name, Need: toManage}}}
}

// Find looks for the route and the names in the path.
func (c *call) Find() error {
	path, err := splitPath(c.R.URL.EscapedPath())
	if err != nil {
		return err
	}
	var allowed []string
	for i := range c.handler.routes {
		rt := &c.handler.routes[i]
		found, ok := rt.pattern.match(path)
		switch {
		case !ok:
			continue
		case rt.silentHead && c.R.Method == http.MethodHead:
			return noSuchPath(c.R)
		// HEAD is GET without a body, but not where GET changes something.
		case rt.Method == c.R.Method, c.R.Method == http.MethodHead && rt.Method == http.MethodGet && rt.Need.Reach != frame.Nobody:
			c.route, c.Route, c.names = rt, rt.Route, found
			return c.nameByHost()
		}
		allowed = append(allowed, rt.Method)
	}
	if len(allowed) == 0 {
		return noSuchPath(c.R)
	}
	return c.wrongMethod(allowed)
}

// nameByHost takes the topic from the host where the path names none.
func (c *call) nameByHost() error {
	if c.Route.Name != "Publish" && c.Route.Name != "PublishOptions" || c.names.topic != "" {
		return nil
	}
	if c.names.topic = topickey.TopicOfHost(c.R.Host); c.names.topic == "" {
		return &frame.Refusal{
			Status: http.StatusNotFound, Code: codeNotFound,
			Detail: "neither the path nor the host's first label names a topic",
			Next:   "publish to /topics/NAME/api/events, or to /api/events at a host such as NAME.localhost",
		}
	}
	return nil
}

func noSuchPath(r *http.Request) error {
	return &frame.Refusal{
		Status: http.StatusNotFound, Code: codeNotFound,
		Detail: "there is nothing at " + shorten(r.URL.Path),
		Next:   "publish to /topics/NAME/api/events; GET /topics lists the topics",
	}
}

func (c *call) wrongMethod(allowed []string) error {
	slices.Sort(allowed)
	slices.Reverse(allowed) // POST before OPTIONS, as Event Grid has it
	methods := strings.Join(slices.Compact(allowed), ", ")
	c.Header().Set("Allow", methods)
	return &frame.Refusal{
		Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed",
		Detail: shorten(c.R.Method) + " is not a method of " + shorten(c.R.URL.Path),
		Next:   "use " + methods,
	}
}
