package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C5, V4: the page of storage says what is wrong, the worst first; of nodes that are lost which they are, and
// what waits because of that.
func TestStorageSaysWhatIsWrong(t *testing.T) {
	node := func(name, state string, shards int) admin.ClusterNode {
		return admin.ClusterNode{Name: name, State: state, Shards: shards}
	}
	well := []admin.ClusterNode{node("a", admin.NodeLive, 32), node("b", admin.NodeQuiet, 32)}
	for says, c := range map[string]admin.Cluster{
		"": {Nodes: well, Streams: &admin.Streams{Count: 9}},
		"Node c is lost. The other nodes have taken what was done there.": {Nodes: append(well, node("c", admin.NodeLost, 0))},
		"Node c is lost. 22 shards of the grid wait for a node.":          {Nodes: append(well, node("c", admin.NodeLost, 21)), UnheldShards: 1},
		"Nodes a, b and c are lost. 2 streams have no leader, and store nothing. 7 streams have a replica whose server is gone.": {
			Nodes: []admin.ClusterNode{node("a", admin.NodeLost, 0), node("b", admin.NodeLost, 0), node("c", admin.NodeLost, 0)}, Streams: &admin.Streams{Leaderless: 2, Offline: 7},
		},
		"1 stream has no leader, and stores nothing.":                                         {Nodes: well, Streams: &admin.Streams{Leaderless: 1, Offline: 3}, UnheldShards: 1},
		"The last scrub has 1 finding: odd. To see all of them, run eventyard cluster scrub.": {Nodes: well, Scrub: &admin.ClusterScrub{Findings: 1, First: "odd"}, UnheldShards: 1},
		"The servers do not answer.":                                                          {Nodes: well, Problems: []string{"The servers do not answer.", "Nor does anybody else."}},
	} {
		testkit.Equal(t, illOf(c, nil), says)
		answers := fixed()
		answers["GET /api/v1/cluster"], answers["GET /api/v1/overview"] = c, admin.Overview{}
		_, _, h := newFixture(answers)
		testkit.That(t, strings.Contains(get(h, base+"storage").Body.String(), `<p><b>`+says+`</b></p>`) == (says != ""), "the page does not say %q", says)
	}
}

// C5, V4: on several nodes the page says which server leads how many streams, which one decides on new ones,
// which streams are not well and why, and how many shards nobody holds.
func TestStorageShowsStreams(t *testing.T) {
	answers := fixed()
	answers["GET /api/v1/cluster"] = admin.Cluster{
		Node: "a", Engine: "nats", UnheldShards: 3, Nodes: []admin.ClusterNode{{Name: "a", State: admin.NodeLive, Shards: 61}},
		Servers: &admin.NATSServers{Replicas: 3, Leader: "n2", Known: []admin.NATSServer{{Name: "n1"}, {Name: "n2"}}},
		Streams: &admin.Streams{Count: 9, Leaderless: 1, Lagging: 1, Leaders: map[string]int{"n1": 5, "n2": 3}, Worst: []admin.Stream{
			{Name: "H_orders_0"}, {Name: "H_orders_1", Leader: "n1", Replicas: []admin.StreamReplica{{Server: "n3", Offline: true}, {Server: "n2", Lag: 1200}}},
		}},
	}
	_, _, h := newFixture(answers)
	page := get(h, base+"storage").Body.String()
	for _, says := range []string{
		`n2 <span class="badge">decides on streams</span>`, `<td class="num">5</td>`, `<td class="num">3</td>`, "H_orders_0", `<span class="badge bad">none</span>`,
		`n3 <span class="badge bad">gone</span>`, "1,200 behind", "3 shards of the grid are held by nobody",
	} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %s", says)
	}
	testkit.Equal(t, storageView{}.Leads("n1"), "–", "where the servers do not say")
}

// V4, R6: a disk that is full is what the page of storage says first, and a check of the data what it has found.
func TestStorageShowsDisks(t *testing.T) {
	answers := fixed()
	full := "The disk of node yard-1 is full: 0 bytes of 64.0 GiB are left, and what is sent is refused."
	answers["GET /api/v1/overview"] = admin.Overview{Needs: []admin.Need{{Kind: "probation", Sentence: "company is on probation."}, {Kind: "disk-full", Sentence: full}}}
	_, _, h := newFixture(answers)
	page := func() string { return get(h, base+"storage").Body.String() }
	testkit.That(t, strings.Contains(page(), "<b>"+full+"</b>") && !strings.Contains(page(), "company is on probation"), "the page does not say that the disk is full")
	testkit.That(t, strings.Contains(get(h, base+"hubs").Body.String(), full), "another page does not say that the disk is full")
	testkit.Equal(t, strings.Count(page(), full), 1, "how often the page of storage says it")

	for says, left := range map[string]*float64{"–": nil, "0.0": new(0.0), "2.3": new(2.34), "21": new(21.4), "over 365": new(4e9)} {
		answers["GET /api/v1/storage"] = admin.Storage{Nodes: []admin.NodeStorage{{Node: "yard-1", DaysLeft: left}}}
		testkit.That(t, strings.Contains(page(), `<span id="disk0-left">`+says+`</span>`), "the page does not say that %s days are left", says)
	}

	check := at("storage", "check")
	testkit.That(t, strings.Contains(page(), check), "the data cannot be checked")
	for says, c := range map[string]admin.StorageCheck{
		"3 of 12 partitions":   {Partitions: 3, TotalPartitions: 12},
		"sound":                {Ended: apiTime(0)},
		"12 problems":          {Ended: apiTime(0), Problems: []string{"sensors / 0: event 7 is damaged", "and so on"}, MoreProblems: 10},
		"failed: nobody knows": {Ended: apiTime(0), Failed: "nobody knows"},
	} {
		said, _ := checkWords(c)
		testkit.Equal(t, said, says)
		answers["GET /api/v1/storage"] = admin.Storage{Nodes: []admin.NodeStorage{{Node: "yard-1", Check: &c}}}
		testkit.Equal(t, strings.Contains(page(), check), c.Ended != nil, "the data can be checked while it is "+says)
		for _, problem := range c.Problems {
			testkit.That(t, strings.Contains(page(), problem), "the page does not say %q", problem)
		}
	}
	answers["GET /api/v1/storage"] = admin.Storage{}
	testkit.Equal(t, get(h, base+"storage").Code, http.StatusOK, "where nothing is told of disks")
}
