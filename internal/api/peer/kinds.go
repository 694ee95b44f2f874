// Package peer judges what the nodes of a yard ask each other. Each kind of request is one row of a
// table (kinds.go), as routes are: with the right that its caller needs, or with the reason why nodes
// ask it by themselves, for nobody.
//
// The listener has let the caller in already. The node that answers does not rely on it: it is told
// what was shown (package caller) and judges that as its own listener would, by the policies and keys
// that it knows itself.
package peer

import (
	"slices"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Kind is one kind of request between nodes.
type Kind struct {
	// Subject is its name on the wire.
	Subject string
	// Need is what the caller has to have shown: the same as at the routes, by which alone callers
	// cause such a request.
	Need   frame.Need
	Routes []string
	// Own says why nodes ask it by themselves, where no caller causes it: nothing is shown then.
	Own string
}

// What callers need; a test compares it with the routes.
var (
	toPull   = frame.Need{Reach: frame.Namespace, OneOf: []auth.Rights{auth.Listen}, TopicKey: true}
	toManage = frame.Of(frame.Namespace, auth.Manage)
	// Each question has a need of its own besides.
	toLook = frame.Of(frame.Any)
)

// journeys are the routes that follow one event.
var journeys = []string{"v1 GET /api/v1/topics/{topic}/events/{id}/journey", "v1 GET /api/v1/hubs/{hub}/partitions/{partition}/events/{sequence}/journey"}

const (
	pulls         = "eventgrid POST /topics/{topic}/eventsubscriptions/{subscription}:"
	subscriptions = "/api/v1/subscriptions/{subscription}"
)

// Kinds are all that there are. One that is not here is refused.
var Kinds = []Kind{
	{Subject: "ping", Own: "whether a process of that name lives; the answer is empty"},
	{Subject: "slots.check", Own: "which receivers of that node have closed; the slot's entry names them by random ids"},
	{Subject: "slots.evict", Own: "the slot's entry has decided who leaves, and names them by random ids"},

	{Subject: "kafka.group", Own: "a Kafka client, where one broker stands for all nodes, asks about a group of that node: what it has shown goes along, and is judged there as by its own Kafka listener"},

	{Subject: "grid.receive", Need: toPull, Routes: []string{pulls + "receive"}},
	{Subject: "grid.settle", Need: toPull, Routes: []string{pulls + "acknowledge", pulls + "reject", pulls + "release", pulls + "renewLock"}},
	{Subject: "grid.giveback", Own: "events were received for a caller who has left, or whose right has ended since: others get them sooner"},

	{Subject: "certificate.show", Need: toManage, Routes: []string{"v1 GET /api/v1/certificate"}},
	{Subject: "storage.show", Need: toManage, Routes: []string{"v1 GET /api/v1/storage"}},
	{Subject: "connections.list", Need: toManage, Routes: []string{"v1 GET /api/v1/connections"}},

	{Subject: "grid.stats", Need: toManage, Routes: []string{"v1 GET " + subscriptions, "v1 GET /api/v1/subscriptions"}},
	{Subject: "grid.attempts", Need: toManage, Routes: []string{"v1 GET " + subscriptions + "/attempts"}},
	{Subject: "grid.probe", Need: toManage, Routes: []string{"v1 POST " + subscriptions + "/probe"}},
	{Subject: "grid.dead.count", Need: toManage, Routes: []string{"v1 GET " + subscriptions, "v1 GET /api/v1/subscriptions"}},
	{Subject: "grid.trace", Need: toManage, Routes: journeys},
	{Subject: "grid.dead.list", Need: toManage, Routes: append([]string{"v1 GET " + subscriptions + "/dead"}, journeys...)},
	{Subject: "grid.dead.get", Need: toManage, Routes: []string{"v1 GET " + subscriptions + "/dead/{number}"}},
	{Subject: "grid.dead.redrive", Need: toManage, Routes: []string{"v1 POST " + subscriptions + "/redrive"}},
	{Subject: "grid.dead.purge", Need: toManage, Routes: []string{"v1 POST " + subscriptions + "/purge"}},

	{Subject: "functions.calls", Need: toManage, Routes: []string{journeys[1]}},

	{Subject: "series.read", Need: toLook, Routes: []string{
		"v1 GET /api/v1/series", "v1 GET /api/v1/overview", "v1 GET /api/v1/hubs", "v1 GET /api/v1/topics", "v1 GET /api/v1/functions",
	}},
	{Subject: "keys.count", Need: toLook, Routes: []string{"v1 GET /api/v1/hubs/{hub}/keys"}},
	{Subject: "overview.health", Need: toLook, Routes: []string{"v1 GET /api/v1/overview"}},
}

// kindOf finds a row.
func kindOf(subject string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Subject == subject })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}
