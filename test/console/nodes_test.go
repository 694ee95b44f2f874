package console

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// startNodes runs a yard of three nodes on three NATS servers, and a balancer before them.
func startNodes(t *testing.T) (nodes map[string]*program, base string) {
	t.Helper()
	servers := natstest.Start(t, 3)
	key := filepath.Join(t.TempDir(), "secret.key")
	testkit.Must(t, os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	nodes = map[string]*program{}
	var addresses []string
	for i := range 3 {
		name := fmt.Sprintf("node%d", i)
		nodes[name] = serve(t, "--engine", servers.URL(), "--yard", "console", "--replicas", "3", "--node", name, "--secrets-key-file", key)
		addresses = append(addresses, strings.TrimPrefix(nodes[name].base, "http://"))
	}
	front := parts.NewBalancer(t, "127.0.0.1:0")
	front.Serve(addresses...)
	return nodes, "http://" + front.Address()
}

// answering is the node that the page of storage is from.
const answering = `document.querySelector("#part-all .about b:last-of-type")?.textContent`

// C5, V4: the node that a page is from is killed. The page says so, and comes back from another, whole and
// without being loaded again; the session is good there, what was sent is there, and the node that does
// not answer is named. What can be done at the console is done before and after, by whichever node answers.
func TestTheNodeOfAPageIsKilled(t *testing.T) {
	nodes, base := startNodes(t)
	v := newVisitor(t, base, mouse{})
	p := v.page
	p.signIn(auth.RootPolicy, auth.DevelopmentKey)
	through := testkit.Value(admin.New(admin.Config{Server: base, ConnectionString: nodes["node0"].connection}))(t)
	t.Cleanup(through.Close)
	testkit.Must(t, testkit.Err(through.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(4)})))
	testkit.Must(t, testkit.Err(through.CreateGroup(t.Context(), "orders", "billing")))
	y := (&yard{client: through, base: base, connection: nodes["node0"].connection}).stock(t)
	before, after := split(t, y.deeds())
	running := map[string]*admin.Client{}
	for name, node := range nodes {
		running[name] = node.admin(t)
	}
	y.spread(before, running)
	walk(t, v, before, mouse{}, keyboard{})
	killed := p.openStorage(len(nodes))
	left := nodes[otherThan(killed, nodes)].admin(t)
	y.client = left
	testkit.Must(t, testkit.Err(left.Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, "before the kill"), Partition: "0"})))

	p.run("mark the page", evaluate(`window.marked = true; new MutationObserver(() => { window.wasLost ||= !document.getElementById("lost").hidden; }).observe(document.getElementById("lost"), {attributes: true}); 0`))
	testkit.Must(t, nodes[killed].End("KILL"))
	p.await("that the page says that nobody answers", `window.wasLost === true`)
	p.await("the page from another node", fmt.Sprintf(`document.getElementById("lost").hidden && %s !== %q`, answering, killed))
	p.await("the lost node's name", fmt.Sprintf(`[...document.querySelectorAll("#part-all tbody tr")].some(r => r.cells[0].textContent.includes(%q) && r.querySelector(".badge.bad")) && %s`, killed, contains("Node "+killed+" is lost.")))
	p.await("the page that was marked, live and not grey", `window.marked === true && !document.getElementById("main").classList.contains("soft") && `+contains("Live"))
	p.forgive() // it said that it could not reach the node
	p.check(parts.Axe(t), "storage-node-lost")

	p.open("/console/hubs/orders/events")
	p.await("what was sent before, to who is signed in", contains("before the kill")+" && "+contains("signed in as "+auth.RootPolicy))
	p.open("/console/hubs/orders/send")
	p.fill(map[string]string{"body": "after the kill"})
	p.press(`button[value="act"]`, "1 event was stored.")
	p.open("/console/")
	p.await("what needs somebody", contains("Node "+killed+" is lost"))
	delete(running, killed)
	y.spread(after, running)
	walk(t, v, after, keyboard{}, mouse{})
}

// spread has all nodes know what a deed has done before one of them is asked: what one acknowledged the others learn a
// moment later, and in the order in which it was done, so that who knows what was done last knows all.
func (y *stocked) spread(deeds []deed, nodes map[string]*admin.Client) {
	first := 100 * len(nodes) // other hours than with a node more
	for i, d := range deeds {
		deeds[i].check = func(v *visitor) {
			v.t.Helper()
			age := fmt.Sprintf("%dh", first+i)
			testkit.Must(v.t, testkit.Err(y.client.UpdateHub(v.t.Context(), archive.Hub, admin.HubRequest{Retention: &admin.RetentionRequest{Age: &age}})))
			for name, node := range nodes {
				testkit.Eventually(v.t, "that "+name+" knows", func() bool {
					h, err := node.Hub(v.t.Context(), archive.Hub)
					return err == nil && h.Retention.Age == age
				})
			}
			d.check(v)
		}
	}
}

// Of a yard of several nodes: deeds that it does not offer, and those that are done in the short run, before and after
// a node is killed.
var (
	ofOneNode   = []string{"check the data"}
	beforeAKill = []string{
		"make a hub", "change a hub", "send an event", "make a group", "move checkpoints", "make a topic", "pause a subscription",
		"make a function", "hold a circuit", "make a policy",
	}
	afterAKill = []string{
		"send an event again", "send a CloudEvent", "release a partition", "publish an event", "publish an event again", "resume a subscription",
		"redrive a dead letter", "purge dead letters", "probe an endpoint", "resume a circuit", "open a circuit", "redrive poison events",
		"limit a policy", "delete a policy", "delete a hub", "delete a function", "delete a topic", "forget an instance",
	}
)

// split divides deeds, in their order, into those before a node is killed and those after; in the long run all.
func split(t *testing.T, deeds []deed) (before, after []deed) {
	t.Helper()
	for _, name := range slices.Concat(ofOneNode, beforeAKill, afterAKill) {
		testkit.MustThat(t, slices.ContainsFunc(deeds, func(d deed) bool { return d.name == name }), "there is no deed %q", name)
	}
	deeds = slices.DeleteFunc(deeds, func(d deed) bool { return slices.Contains(ofOneNode, d.name) })
	if *all {
		return deeds[:len(deeds)/2], deeds[len(deeds)/2:]
	}
	for _, d := range deeds {
		switch {
		case slices.Contains(beforeAKill, d.name):
			before = append(before, d)
		case slices.Contains(afterAKill, d.name):
			after = append(after, d)
		}
	}
	return before, after
}

// openStorage opens the page of storage until all nodes are well, and gives the one that its stream is
// from: which may be another than the page's.
func (p *page) openStorage(nodes int) (node string) {
	p.t.Helper()
	p.open("/console/storage")
	p.await("all nodes", fmt.Sprintf(`document.querySelectorAll("#part-all .badge.good").length > %d`, nodes)) // theirs and the yard's
	p.run("mark what is there", evaluate(`document.querySelector("#part-all h1").id = "first"; 0`))
	p.await("what the stream brings", `!document.getElementById("first")`)
	p.run("read the node", chromedp.Evaluate(answering, &node))
	return node
}

func otherThan(one string, nodes map[string]*program) string {
	for name := range nodes {
		if name != one {
			return name
		}
	}
	return ""
}
