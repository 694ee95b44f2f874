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
	y := &stocked{yard: &yard{client: through, base: base}, hook: newHook(t)}
	y.some(t, v, "make a hub", "change a hub", "send an event", "make a group", "make a topic", "make a policy")
	killed := p.openStorage(len(nodes))
	left := nodes[otherThan(killed, nodes)].admin(t)
	y.client = left
	testkit.Must(t, testkit.Err(left.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(2)})))
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
	v.hands = keyboard{}
	y.some(t, v, "send an event again", "send a CloudEvent", "publish an event", "publish an event again", "limit a policy", "delete a policy", "delete a hub", "delete a topic")
}

// some does deeds by their names, in the order in which they are walked through.
func (y *stocked) some(t *testing.T, v *visitor, names ...string) {
	t.Helper()
	done := 0
	for _, d := range y.deeds() {
		if !slices.Contains(names, d.name) {
			continue
		}
		done++
		if !t.Run(d.name, func(t *testing.T) { v.does(t, d) }) {
			t.FailNow()
		}
	}
	testkit.Equal(t, done, len(names), "deeds")
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
