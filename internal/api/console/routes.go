package console

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
)

const (
	// maxFormBytes bounds what a form may send: an event of the largest size, and its frame.
	maxFormBytes = 2 << 20
	// maxSignInBytes bounds what a stranger may: a connection string or a token, and where to go then.
	maxSignInBytes = 16 << 10
)

// route is one path of the console with a method.
type route struct {
	method, path string
	need         frame.Need
	serve        func(v *visit) error
	// page is what a stream can be about; nil: nothing.
	page *page
	long bool
	// maxBody bounds what it is sent; 0: maxFormBytes.
	maxBody int64
}

// row is what the frame knows of a route.
func (rt route) row() frame.Route {
	return frame.Route{Method: rt.method, Path: rt.path, Need: rt.need, MaxBody: cmp.Or(rt.maxBody, maxFormBytes), Long: rt.long}
}

// signedIn is what pages need: a session with any right, or development mode. What is on them is what
// the API gives to that session.
var signedIn = frame.Of(frame.Any)

// ofSubscription is where a subscription is: in its source, a topic or a hub. Each name stands behind
// the word for what it names, and what is done behind both, so that nothing can be called what
// something else is.
const (
	anySource      = "{source}"
	ofSubscription = base + anySource + "/subscriptions/{subscription}"
)

// sources are what {source} stands for.
var sources = []string{"topics/{topic}", "hubs/{hub}"}

// sourced gives a path once, or once for each kind of source.
func sourced(path string) []string {
	if !strings.Contains(path, anySource) {
		return []string{path}
	}
	var all []string
	for _, s := range sources {
		all = append(all, strings.Replace(path, anySource, s, 1))
	}
	return all
}

// allPages are all that can be looked at, by path.
func allPages() map[string]*page {
	return map[string]*page{
		base:                       &overviewPage,
		base + "more":              &morePage,
		base + "activity":          &activityPage,
		docsPath:                   &docsIndexPage,
		docsPath + "/{page...}":    &docsPage,
		base + "events":            &journeyPage,
		base + "hubs":              &hubsPage,
		base + "hubs/{hub}":        &hubPage,
		base + "hubs/{hub}/events": &eventsPage,
		base + "hubs/{hub}/partitions/{partition}/events/{sequence}": &eventPage,
		base + "hubs/{hub}/groups":                                   &groupsPage,
		base + "hubs/{hub}/groups/{group}":                           &groupPage,
		base + "hubs/{hub}/kafka-groups/{group}":                     &kafkaGroupPage,
		base + "hubs/{hub}/access":                                   &hubAccessPage,
		base + "hubs/{hub}/connect":                                  &connectPage,
		base + "hubs/{hub}/subscriptions":                            &hubSubscriptionsPage,
		base + "topics":                                              &topicsPage,
		base + "topics/{topic}":                                      &topicPage,
		base + "topics/{topic}/events":                               &topicEventsPage,
		ofSubscription:                                               &subscriptionPage,
		ofSubscription + "/attempts":                                 &attemptsPage,
		ofSubscription + "/dead":                                     &deadLettersPage,
		ofSubscription + "/dead/{number}":                            &deadPage,
		base + "functions":                                           &functionsPage,
		base + "functions/{function}":                                &functionPage,
		base + "functions/{function}/poison":                         &poisonPage,
		base + "circuits/{function}":                                 &circuitPage,
		base + "access":                                              &accessPage,
		base + "storage":                                             &storagePage,
	}
}

// allActions are all that can be done.
func allActions() []*action {
	return []*action{
		&createHub, &changeHub, &deleteHub, &sendEvent, &sendAgain,
		&createGroup, &deleteGroup, &moveCheckpoints, &releasePartition, &forgetInstance,
		&createTopic, &changeTopic, &deleteTopic, &revealTopic, &regenerateTopic, &publishEvent, &publishAgain,
		&createSubscription, &changeSubscription, &deleteSubscription, &explainSubscription,
		&probeSubscription, &pauseSubscription, &resumeSubscription, &rotateKey, &redriveDead, &purgeDead,
		&createFunction, &changeFunction, &testNotice, &deleteFunction, &holdFunction, &resumeFunction, &openCircuit, &closeCircuit, &redrivePoison,
		&createPolicy, &changePolicy, &revealPolicy, &copyPolicy, &regeneratePolicy, &deletePolicy, &checkStorage,
	}
}

// routes is the whole console.
func (c *Console) routes() []route {
	all := []route{
		{method: "GET", path: "/", need: frame.Open("it leads to the console"), serve: toConsole},
		{method: "GET", path: "/console", need: frame.Open("it leads to the console"), serve: toConsole},
		{method: "GET", path: base + "assets/{hash}/{file}", need: frame.Open("style, script and icons are the same for everybody"), serve: c.assets.serve},
		{method: "GET", path: signInPath, need: frame.Open("it is where one signs in"), serve: c.showSignIn},
		{method: "POST", path: signInPath, need: frame.Open("the key that it is sent is what lets in"), serve: c.signIn, maxBody: maxSignInBytes},
		{method: "GET", path: issuerPath, need: frame.Open("it leads to the issuer, where one signs in"), serve: c.toIssuer},
		{method: "GET", path: callbackPath, need: frame.Open("the code that the issuer gave is what lets in"), serve: c.fromIssuer},
		{method: "POST", path: base + "signout", need: signedIn, serve: c.signOut},
		{method: "GET", path: base + "hubs/{hub}/partitions/{partition}/events/{sequence}/body", need: signedIn, serve: c.saveBody},
		{method: "GET", path: base + "activity.json", need: signedIn, serve: c.saveActivity},
		{method: "GET", path: base + "find", need: signedIn, serve: c.showFind},
		{method: "GET", path: livePath, need: signedIn, serve: c.live, long: true},
	}
	pages := allPages()
	for _, pattern := range sorted(pages) {
		p := pages[pattern]
		for _, path := range sourced(pattern) {
			all = append(all, route{method: "GET", path: path, need: signedIn, serve: p.serve, page: p})
		}
	}
	for _, a := range allActions() {
		for _, path := range sourced(a.path) {
			if a.sheet != nil {
				all = append(all, route{method: "GET", path: path, need: signedIn, serve: a.show})
			}
			all = append(all, route{method: "POST", path: path, need: signedIn, serve: a.run})
		}
	}
	return all
}

func (c *Console) register() {
	c.mux = http.NewServeMux()
	c.missing = &route{need: frame.Open("nothing is done but to say what is wrong"), serve: func(v *visit) error { return notHere(v.r) }}
	for _, rt := range c.routes() {
		path := rt.path
		if path == base || path == "/" {
			path += "{$}"
		}
		c.mux.Handle(rt.method+" "+path, finds(&rt))
	}
	c.mux.Handle("/", finds(c.missing))
}

func toConsole(v *visit) error {
	http.Redirect(v.w, v.r, base, http.StatusSeeOther)
	return nil
}
