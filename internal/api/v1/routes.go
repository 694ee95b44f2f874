package v1

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
)

// handler answers a request or says why not. After the first byte of an answer it
// returns nil: what goes wrong then is the stream's own affair.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one operation of the API, as openapi.json describes it too.
type route struct {
	method string
	path   string
	// need is what whoever calls has to show; it is checked before serve.
	need  frame.Need
	serve handler
	// maxBody bounds the body; zero means maxManagementBytes.
	maxBody int64
	// stream marks answers that may take long by design: they are not timed, and HEAD
	// makes no sense for them.
	stream bool
	// eventHubs marks the Event Hubs REST calls. They are found by the path's end and
	// not by the mux, because a hub's name may hold slashes.
	eventHubs bool
}

// row is what the frame knows of a route.
func (rt route) row() frame.Route {
	return frame.Route{Method: rt.method, Path: rt.path, Need: rt.need, MaxBody: cmp.Or(rt.maxBody, maxManagementBytes), Long: rt.stream}
}

// routes is the whole listener.
func (d *Handler) routes() []route {
	eventBytes := int64(d.cfg.MaxEventBytes)
	groups := servedIf(d.cfg.Groups != nil, frame.Refusal{
		Code: "not-kept-here", Title: "This yard keeps no leases and checkpoints",
		Detail: "what consumer groups own and have done is not kept by this yard", Next: "look into the store that the group's processors use",
	})
	kafka := servedIf(d.cfg.KafkaGroups != nil && d.cfg.Groups != nil, frame.Refusal{
		Code: "no-kafka", Title: "This yard has no Kafka groups",
		Detail: "groups of Kafka's consumers are not served here", Next: "ask another yard",
	})
	grid := servedIf(d.cfg.Grid != nil, frame.Refusal{
		Code: "no-grid", Title: "This yard has no grid",
		Detail: "topics and subscriptions are not served here", Next: "ask another yard",
	})
	functions := servedIf(d.cfg.Functions != nil && d.cfg.Poison != nil && d.cfg.Notices != nil, frame.Refusal{
		Code: "no-functions", Title: "This yard runs no functions",
		Detail: "functions and circuits are not served here", Next: "ask another yard",
	})
	backup := servedIf(d.cfg.Backup != nil, frame.Refusal{
		Code: "no-backup", Title: "This yard gives no backups",
		Detail: "the storage of this yard cannot be copied while it is used",
		Next:   "back up the servers that keep the data",
	})
	servers := servedIf(d.cfg.Maintenance != nil, frame.Refusal{
		Code: "no-servers", Title: "This yard is on one machine",
		Detail: "the events of this yard are in its data folder, and not on NATS servers",
		Next:   "eventyard storage check looks at a data folder; eventyard copy takes a yard from one to NATS servers",
	})
	figures := servedIf(d.cfg.Figures != nil, frame.Refusal{
		Code: "no-figures", Title: "This yard keeps no figures",
		Detail: "nothing is counted here but what /metrics has", Next: "ask another yard",
	})
	stored := servedIf(d.cfg.Storage != nil, frame.Refusal{
		Code: "no-storage", Title: "This yard does not tell of its storage",
		Detail: "how the storage is cannot be asked here", Next: "ask at the machine that has it: eventyard doctor",
	})
	journal := servedIf(d.cfg.Activity != nil, frame.Refusal{
		Code: "no-activity", Title: "This yard keeps no activity",
		Detail: "what changes is not kept by this yard", Next: "look into its log",
	})
	return []route{
		{method: "GET", path: "/api/v1", need: anyGrant, serve: d.info},
		{method: "GET", path: "/api/v1/openapi.json", need: frame.Open("it describes the API, and the API is no secret"), serve: d.openAPI},
		{method: "GET", path: "/api/v1/ca.pem", need: frame.Open("it is a certificate, which every handshake refers to, and clients need it before they can be let in"), serve: d.getCA},
		{method: "GET", path: "/api/v1/cluster", need: manageAll, serve: d.getCluster},
		{method: "POST", path: "/api/v1/cluster/scrub", need: manageAll, serve: servers(d.scrub), stream: true},
		{method: "POST", path: "/api/v1/cluster/replicas", need: manageAll, serve: servers(d.setReplicas), stream: true},

		{method: "GET", path: "/api/v1/overview", need: anyGrant, serve: figures(d.getOverview)},
		{method: "GET", path: "/api/v1/series", need: anyGrant, serve: figures(d.getSeries)},
		{method: "GET", path: "/api/v1/storage", need: manageAll, serve: stored(d.showStorage)},
		{method: "POST", path: "/api/v1/storage/check", need: manageAll, serve: stored(d.checkStorage)},
		{method: "GET", path: "/api/v1/certificate", need: manageAll, serve: stored(d.showCertificates)},
		{method: "GET", path: "/api/v1/connections", need: manageAll, serve: d.listConnections},
		{method: "GET", path: "/api/v1/activity", need: manageAll, serve: journal(d.listActivity), stream: true},
		{method: "GET", path: "/api/v1/hubs/{hub}/activity", need: manageHub, serve: journal(d.listActivity), stream: true},

		{method: "GET", path: "/api/v1/hubs", need: anyGrant, serve: d.listHubs},
		{method: "POST", path: "/api/v1/hubs", need: manageAll, serve: d.createHub},
		{method: "GET", path: "/api/v1/hubs/{hub}", need: lookAtHub, serve: d.getHub},
		{method: "PATCH", path: "/api/v1/hubs/{hub}", need: manageHub, serve: d.updateHub},
		{method: "DELETE", path: "/api/v1/hubs/{hub}", need: manageHub, serve: d.deleteHub},

		{method: "GET", path: "/api/v1/hubs/{hub}/groups", need: lookAtHub, serve: d.listGroups},
		{method: "POST", path: "/api/v1/hubs/{hub}/groups", need: manageHub, serve: d.createGroup},
		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}", need: lookAtHub, serve: d.getGroup},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/groups/{group}", need: manageHub, serve: d.deleteGroup},

		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}/ownership", need: listenToHub, serve: groups(d.showOwnership), stream: true},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/groups/{group}/ownership/{partition}", need: manageHub, serve: groups(d.releasePartition)},
		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}/history", need: listenToHub, serve: groups(journal(d.showHistory))},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/groups/{group}/instances/{instance}", need: manageHub, serve: groups(d.forgetInstance)},
		{method: "GET", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints", need: listenToHub, serve: groups(d.listCheckpoints)},
		{method: "POST", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints", need: manageHub, serve: groups(d.importCheckpoints), maxBody: maxImportBytes},
		{method: "PUT", path: "/api/v1/hubs/{hub}/groups/{group}/checkpoints/{partition}", need: manageHub, serve: groups(d.moveCheckpoint)},

		{method: "GET", path: "/api/v1/kafka-groups", need: anyGrant, serve: kafka(d.listKafkaGroups)},
		{method: "GET", path: "/api/v1/hubs/{hub}/kafka-groups", need: listenToHub, serve: kafka(d.listKafkaGroups)},
		{method: "GET", path: "/api/v1/hubs/{hub}/kafka-groups/{group}", need: listenToHub, serve: kafka(d.showKafkaTable)},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/kafka-groups/{group}", need: manageHub, serve: kafka(d.deleteKafkaGroup)},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/kafka-groups/{group}/offsets", need: manageHub, serve: kafka(d.forgetKafkaOffsets)},
		{method: "PUT", path: "/api/v1/hubs/{hub}/kafka-groups/{group}/offsets/{partition}", need: manageHub, serve: kafka(d.moveKafkaOffset)},
		{method: "POST", path: "/api/v1/hubs/{hub}/kafka-groups/{group}/copy", need: manageHub, serve: kafka(d.copyKafkaOffsets)},

		{method: "GET", path: "/api/v1/hubs/{hub}/density", need: lookAtHub, serve: d.showDensity},
		{method: "GET", path: "/api/v1/hubs/{hub}/keys", need: listenToHub, serve: d.listKeys},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions", need: lookAtHub, serve: d.listPartitions},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions/{partition}", need: lookAtHub, serve: d.getPartition},

		{method: "POST", path: "/api/v1/hubs/{hub}/events", need: sendToHub, serve: d.sendEvents, maxBody: 2 * eventBytes},
		{method: "GET", path: "/api/v1/hubs/{hub}/events", need: listenToHub, serve: d.readHub, stream: true},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions/{partition}/events", need: listenToHub, serve: d.readPage, stream: true},

		{method: "GET", path: "/api/v1/policies", need: manageAll, serve: d.listPolicies},
		{method: "POST", path: "/api/v1/policies", need: manageAll, serve: d.createPolicy},
		{method: "GET", path: "/api/v1/policies/{policy}", need: manageAll, serve: d.getPolicy},
		{method: "PATCH", path: "/api/v1/policies/{policy}", need: manageAll, serve: d.updatePolicy},
		{method: "DELETE", path: "/api/v1/policies/{policy}", need: manageAll, serve: d.deletePolicy},
		{method: "POST", path: "/api/v1/policies/{policy}/regenerate", need: manageAll, serve: d.regeneratePolicy},

		{method: "GET", path: "/api/v1/hubs/{hub}/policies", need: manageHub, serve: d.listPolicies},
		{method: "POST", path: "/api/v1/hubs/{hub}/policies", need: manageHub, serve: d.createPolicy},
		{method: "GET", path: "/api/v1/hubs/{hub}/policies/{policy}", need: manageHub, serve: d.getPolicy},
		{method: "PATCH", path: "/api/v1/hubs/{hub}/policies/{policy}", need: manageHub, serve: d.updatePolicy},
		{method: "DELETE", path: "/api/v1/hubs/{hub}/policies/{policy}", need: manageHub, serve: d.deletePolicy},
		{method: "POST", path: "/api/v1/hubs/{hub}/policies/{policy}/regenerate", need: manageHub, serve: d.regeneratePolicy},

		{method: "GET", path: "/api/v1/topics", need: manageAll, serve: grid(d.listTopics)},
		{method: "POST", path: "/api/v1/topics", need: manageAll, serve: grid(d.createTopic)},
		{method: "GET", path: "/api/v1/topics/{topic}", need: manageAll, serve: grid(d.getTopic)},
		{method: "PATCH", path: "/api/v1/topics/{topic}", need: manageAll, serve: grid(d.updateTopic)},
		{method: "DELETE", path: "/api/v1/topics/{topic}", need: manageAll, serve: grid(d.deleteTopic)},
		{method: "GET", path: "/api/v1/topics/{topic}/events", need: manageAll, serve: grid(d.readTopic)},
		{method: "POST", path: "/api/v1/topics/{topic}/regenerate", need: manageAll, serve: grid(d.regenerateTopicKey)},

		{method: "GET", path: "/api/v1/topics/{topic}/events/{id}/journey", need: manageAll, serve: grid(d.topicJourney)},
		{method: "GET", path: "/api/v1/hubs/{hub}/partitions/{partition}/events/{sequence}/journey", need: manageAll, serve: d.hubJourney},

		{method: "GET", path: "/api/v1/subscriptions", need: manageAll, serve: grid(d.listSubscriptions)},
		{method: "POST", path: "/api/v1/subscriptions", need: manageAll, serve: grid(d.createSubscription), stream: true},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: grid(d.getSubscription)},
		{method: "PATCH", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: grid(d.updateSubscription), stream: true},
		{method: "DELETE", path: "/api/v1/subscriptions/{subscription}", need: manageAll, serve: grid(d.deleteSubscription)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/resume", need: manageAll, serve: grid(d.resumeSubscription)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/probe", need: manageAll, serve: grid(d.probeSubscription)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/rotate-key", need: manageAll, serve: grid(d.rotateSigningKey)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/explain", need: manageAll, serve: grid(d.explainFilter), maxBody: 2 * eventBytes},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/attempts", need: manageAll, serve: grid(d.listAttempts)},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/dead", need: manageAll, serve: grid(d.listDeadLetters)},
		{method: "GET", path: "/api/v1/subscriptions/{subscription}/dead/{number}", need: manageAll, serve: grid(d.getDeadLetter)},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/redrive", need: manageAll, serve: grid(d.redrive), stream: true},
		{method: "POST", path: "/api/v1/subscriptions/{subscription}/purge", need: manageAll, serve: grid(d.purgeDeadLetters)},

		{method: "GET", path: "/api/v1/functions", need: manageAll, serve: functions(d.listFunctions)},
		{method: "POST", path: "/api/v1/functions", need: manageAll, serve: functions(d.createFunction)},
		{method: "GET", path: "/api/v1/functions/{function}", need: manageAll, serve: functions(d.getFunction)},
		{method: "PATCH", path: "/api/v1/functions/{function}", need: manageAll, serve: functions(d.updateFunction)},
		{method: "DELETE", path: "/api/v1/functions/{function}", need: manageAll, serve: functions(d.deleteFunction), stream: true},
		{method: "POST", path: "/api/v1/functions/{function}/pause", need: manageAll, serve: functions(d.pauseFunction)},
		{method: "POST", path: "/api/v1/functions/{function}/resume", need: manageAll, serve: functions(d.resumeFunction)},

		{method: "GET", path: "/api/v1/circuits", need: manageAll, serve: functions(d.listCircuits)},
		{method: "GET", path: "/api/v1/circuits/{function}", need: manageAll, serve: functions(d.getCircuit)},
		{method: "GET", path: "/api/v1/circuits/{function}/history", need: manageAll, serve: functions(d.circuitHistory)},
		{method: "POST", path: "/api/v1/circuits/{function}/open", need: manageAll, serve: functions(d.openCircuit)},
		{method: "POST", path: "/api/v1/circuits/{function}/close", need: manageAll, serve: functions(d.closeCircuit)},

		{method: "GET", path: "/api/v1/hubs/{hub}/poison", need: listenToHub, serve: functions(d.listPoison)},
		{method: "POST", path: "/api/v1/hubs/{hub}/poison/redrive", need: manageAll, serve: functions(d.redrivePoison), stream: true},
		{method: "POST", path: "/api/v1/notices/test", need: manageAll, serve: functions(d.testNotice), stream: true},

		{method: "GET", path: "/api/v1/blob-account", need: manageAll, serve: d.getBlobAccount},
		{method: "PATCH", path: "/api/v1/blob-account", need: manageAll, serve: d.updateBlobAccount},
		{method: "POST", path: "/api/v1/blob-account/regenerate", need: manageAll, serve: d.regenerateBlobKey},

		{method: "GET", path: "/api/v1/connection-string", need: manageAll, serve: d.getConnectionString},
		{method: "GET", path: "/api/v1/backup", need: manageAll, serve: backup(d.takeBackup), stream: true},

		{method: "POST", path: "/{hub}/messages", need: sendToHub, serve: d.postMessages, maxBody: eventBytes, eventHubs: true},
		{method: "POST", path: "/{hub}/partitions/{partition}/messages", need: sendToHub, serve: d.postMessages, maxBody: eventBytes, eventHubs: true},
		{method: "POST", path: "/{hub}/publishers/{publisher}/messages", need: sendToHub, serve: d.postMessages, maxBody: eventBytes, eventHubs: true},

		{method: "GET", path: "/healthz", need: toProbe, serve: d.healthy},
		{method: "GET", path: "/readyz", need: toProbe, serve: d.ready},
		{method: "GET", path: "/metrics", need: toScrape, serve: d.showMetrics},
	}
}

// servedIf is for routes that need a service which a yard may do without.
func servedIf(there bool, otherwise frame.Refusal) func(handler) handler {
	otherwise.Status = http.StatusNotImplemented
	return func(serve handler) handler {
		if there {
			return serve
		}
		return func(http.ResponseWriter, *http.Request) error { return &otherwise }
	}
}

// register fills the mux. Each route is registered by method and, beneath it, each
// path without one, so that a wrong method is told in our own words and not in the
// mux's. The Event Hubs calls are kept apart, by path.
func (d *Handler) register() {
	d.mux, d.calls = http.NewServeMux(), map[string]*route{}
	allowed := map[string][]string{}
	for _, rt := range d.routes() {
		if rt.eventHubs {
			d.calls[rt.path] = &rt
			continue
		}
		d.mux.Handle(rt.method+" "+rt.path, finds(&rt))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		d.mux.Handle(path, finds(&route{path: path, need: toRefuse, serve: wrongMethod(methods)}))
	}
	d.unrouted = &route{need: toRefuse, serve: noSuchPath}
	d.mux.Handle("/", finds(d.unrouted))
}

// finds tells the exchange that asks the mux what it found.
func finds(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).route = rt })
}

func wrongMethod(allowed []string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &frame.Refusal{
			Status: http.StatusMethodNotAllowed,
			Code:   "method-not-allowed",
			Title:  "This path does not take that method",
			Detail: r.Method + " is not a method of " + r.URL.Path,
			Next:   "use " + strings.Join(allowed, ", ") + "; all operations are described at /api/v1/openapi.json",
		}
	}
}

func noSuchPath(_ http.ResponseWriter, r *http.Request) error {
	return &frame.Refusal{
		Status: http.StatusNotFound,
		Code:   "no-such-path",
		Title:  "There is nothing at this path",
		Detail: "no operation of this yard has the path " + r.URL.Path,
		Next:   "begin at /api/v1; all paths are described at /api/v1/openapi.json, and a '/' in a hub's name is written %2F there",
	}
}
