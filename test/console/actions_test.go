package console

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// deed is something that is done at a page. Its effect is seen by the API.
type deed struct {
	name, at string
	do       []step
	check    func(v *visitor)
	// live: it needs a script.
	live bool
}

type step func(v *visitor)

func press(selector, leadsTo string) step { return func(v *visitor) { v.press(selector, leadsTo) } }
func write(field, text string) step       { return func(v *visitor) { v.write(field, text) } }
func choose(field, value string) step     { return func(v *visitor) { v.choose(field, value) } }

// Buttons of forms, one of which says what would be done, and one does it; and what forms say.
const (
	look    = `button[value="look"]`
	act     = `button[value="act"]`
	foresee = `.sheet .note.odd`
	refusal = `.note.bad`
	secret  = `[data-secret]`
)

// A yard in which there is something to do takes seconds to stock, so that all who only look at one look at
// the same, before somebody works in it.
func TestAStockedYard(t *testing.T) {
	y := newStocked(t)
	t.Run("forms", func(t *testing.T) { checkPages(t, y.yard, formsOf...) })
	t.Run("the calls with an event", y.callsWithAnEvent)
	t.Run("comfort", y.comfort)
	t.Run("without script", y.withoutScript)
	t.Run("each action", y.eachAction)
}

// formsOf are the forms of a stocked yard, and its pages that others do not have.
var formsOf = []string{
	"new/topic", "new/function", "new/policy", "hubs/orders/new-group", "hubs/orders/send", "hubs/orders/delete", "hubs/orders/subscriptions",
	"hubs/orders/groups/night/delete", "hubs/orders/groups/night/release/0", "hubs/orders/groups/night/forget/lost", "hubs/photos/partitions/0/events/0/again",
	"topics/shop/events", "topics/shop/settings", "topics/shop/regenerate", "topics/shop/delete", "topics/shop/events/0/again",
	"topics/shop/subscriptions/company/edit", "topics/shop/subscriptions/company/explain", "topics/shop/subscriptions/company/delete", "topics/shop/subscriptions/company/redrive", "topics/shop/subscriptions/company/purge",
	"hubs/windows/subscriptions/archive", "hubs/windows/subscriptions/archive/attempts", "hubs/windows/subscriptions/archive/dead", "hubs/windows/subscriptions/archive/dead/0", "hubs/windows/subscriptions/archive/edit",
	"hubs/windows/subscriptions/archive/explain", "hubs/windows/subscriptions/archive/delete", "hubs/windows/subscriptions/archive/redrive", "hubs/windows/subscriptions/archive/purge",
	"functions/picky/poison", "events?id=0/0&in=hubs/photos", "functions/picky/redrive", "functions/resize/edit", "functions/resize/notice", "functions/resize/delete",
	"circuits/outside?hub=orders&group=billing", "policies/RootManageSharedAccessKey/settings", "policies/RootManageSharedAccessKey/regenerate", "policies/RootManageSharedAccessKey/delete",
}

// V1: each thing that can be done at the console is done by mouse or by keyboard alone, in turn; in the long
// run by mouse, by keyboard, and without a script.
func (y *stocked) eachAction(t *testing.T) {
	if !*all {
		y.walk(t, newVisitor(t, y.base, nil), mouse{}, keyboard{})
		return
	}
	for name, visit := range map[string]func(t *testing.T, base string) *visitor{
		"mouse":          func(t *testing.T, base string) *visitor { return newVisitor(t, base, mouse{}) },
		"keyboard":       func(t *testing.T, base string) *visitor { return newVisitor(t, base, keyboard{}) },
		"without script": newStillVisitor,
	} {
		t.Run(name, func(t *testing.T) {
			y := newStocked(t)
			v := visit(t, y.base)
			y.walk(t, v, v.hands)
		})
	}
}

// walk does all deeds, with each pair of hands in turn. Later ones build on earlier ones.
func (y *stocked) walk(t *testing.T, v *visitor, turns ...hands) {
	t.Helper()
	walk(t, v, y.deeds(), turns...)
}

func walk(t *testing.T, v *visitor, deeds []deed, turns ...hands) {
	t.Helper()
	for i, d := range deeds {
		if v.still && d.live {
			continue
		}
		v.hands = turns[i%len(turns)]
		if !t.Run(d.name, func(t *testing.T) { v.does(t, d) }) {
			return
		}
	}
}

// does does a deed, and says where it came to if it comes to nothing.
func (v *visitor) does(t *testing.T, d deed) {
	outer := v.t
	v.t = t
	defer func() { v.t = outer }()
	defer func() {
		var at string
		if t.Failed() && chromedp.Run(v.ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &at)) == nil {
			t.Logf("by %T at %s", v.hands, at)
		}
	}()
	v.visit(d.at)
	for _, s := range d.do {
		s(v)
	}
	d.check(v)
}

// stocked is a yard in which there is something to do for every form: events that were handled, dead
// letters, poison events, an endpoint on probation, an instance that was killed.
type stocked struct {
	*yard
	hook *hook
}

var (
	company = admin.SubscriptionRef{Name: "company", Topic: "shop"}
	guard   = admin.SubscriptionRef{Name: "guard", Topic: "alarms"}
	// archive and siren are the same of hubs. Theirs come after hub orders, which docs take for an example: it is the first.
	archive = admin.SubscriptionRef{Name: "archive", Hub: "windows"}
	siren   = admin.SubscriptionRef{Name: "siren", Hub: "sirens"}
	// outside is the circuit of a function that the yard does not run.
	outside = admin.CircuitRef{Function: "outside", Hub: "orders", Group: "billing"}
)

func newStocked(t *testing.T) *stocked {
	t.Helper()
	return newYard(t).stock(t)
}

// stock makes all of it in a yard that has hub orders.
func (of *yard) stock(t *testing.T) *stocked {
	t.Helper()
	y := &stocked{of, newHook(t)}
	y.killOne(t)
	for _, body := range []string{"one", "two", "three"} {
		y.send(t, body)
	}
	for _, partition := range testkit.Value(y.client.Hub(t.Context(), "orders"))(t).PartitionIDs {
		testkit.Must(t, testkit.Err(y.client.MoveCheckpoint(t.Context(), "orders", "billing", partition, admin.Target{Latest: true}, admin.MoveOptions{})))
	}
	testkit.Must(t, testkit.Err(y.client.CreateFunction(t.Context(), admin.FunctionRequest{Name: "resize", Hub: "orders", Endpoint: new(y.hook.URL + "/resize")})))
	testkit.Must(t, testkit.Err(y.client.OpenCircuit(t.Context(), outside, "so that there is one")))
	testkit.Must(t, testkit.Err(y.client.CloseCircuit(t.Context(), outside, "so that it can be opened")))
	y.poison(t, 2)
	for _, s := range []admin.SubscriptionRef{company, archive} {
		y.deliver(t, s, http.StatusBadRequest, 2)
	}
	for _, s := range []admin.SubscriptionRef{guard, siren} {
		y.deliver(t, s, http.StatusServiceUnavailable, 12)
	}
	for _, s := range []admin.SubscriptionRef{company, archive} {
		testkit.Eventually(t, "two dead letters", func() bool { return len(y.dead(t, s)) == 2 })
	}
	for _, s := range []admin.SubscriptionRef{guard, siren} {
		testkit.Eventually(t, "probation", func() bool { return y.health(t, s) == "probation" })
	}
	testkit.Eventually(t, "two poison events", func() bool { return y.poisoned(t) == 2 })
	return y
}

// killOne leaves all partitions of group night to an instance that does not live any more.
func (y *stocked) killOne(t *testing.T) {
	t.Helper()
	testkit.Must(t, testkit.Err(y.client.CreateGroup(t.Context(), "orders", "night")))
	worker := startWorker(t, y.connection, "night", "lost")
	testkit.Eventually(t, "an instance with all partitions", func() bool {
		return !slices.ContainsFunc(y.owned(t).Partitions, func(p admin.OwnedPartition) bool { return p.Owner != "lost" })
	})
	testkit.Must(t, worker.Process.Kill())
}

// owned is who owns what in group night.
func (y *stocked) owned(t *testing.T) admin.Ownership {
	t.Helper()
	return testkit.Value(y.client.Ownership(t.Context(), "orders", "night", 0))(t)
}

// poison makes function picky, which takes no event, and sends some.
func (y *stocked) poison(t *testing.T, events int) {
	t.Helper()
	y.hub(t, "photos", 1)
	y.hook.answer("/picky", http.StatusBadRequest)
	testkit.Must(t, testkit.Err(y.client.CreateFunction(t.Context(), admin.FunctionRequest{
		Name: "picky", Hub: "photos", Endpoint: new(y.hook.URL + "/picky"), Start: new("earliest"), Retries: new(admin.Retries(0)),
	})))
	for range events {
		testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "photos", admin.Batch{Events: eventsOf(t, "blurred")})))
	}
}

// poisoned is how many events function picky has put away, and nobody has redriven.
func (y *stocked) poisoned(t *testing.T) int {
	t.Helper()
	if n := testkit.Value(y.client.Function(t.Context(), "picky"))(t).Poisoned; n != nil {
		return *n
	}
	return 0
}

// hub makes a hub, as an operator does: it is none of this process that serves.
func (y *yard) hub(t *testing.T, name string, partitions int) {
	t.Helper()
	testkit.Must(t, testkit.Err(y.client.CreateHub(t.Context(), admin.HubRequest{Name: name, Partitions: &partitions})))
}

func (y *yard) send(t *testing.T, body string) {
	t.Helper()
	testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, body)})))
}

// deliver makes a topic or a hub with a subscription whose endpoint answers with a status, and sends events there.
func (y *stocked) deliver(t *testing.T, s admin.SubscriptionRef, status, events int) {
	t.Helper()
	y.hook.answer("/"+s.Name, status)
	subscribe := func() {
		testkit.Must(t, testkit.Err(y.client.CreateSubscription(t.Context(), admin.SubscriptionRequest{
			Name: s.Name, Topic: s.Topic, SourceHub: s.Hub, Endpoint: new(y.hook.URL + "/" + s.Name), DeadLetter: new("yard"), Sign: new("hmac"),
		})))
	}
	if s.Hub != "" {
		y.hub(t, s.Hub, 1)
		subscribe()
		for range events {
			testkit.Must(t, testkit.Err(y.client.Send(t.Context(), s.Hub, admin.Batch{Events: eventsOf(t, "ajar")})))
		}
		return
	}
	topic := testkit.Value(y.client.CreateTopic(t.Context(), admin.TopicRequest{Name: s.Topic, Schema: "cloudevents"}))(t)
	subscribe()
	client := testkit.Value(grid.NewClient(grid.Config{Endpoint: topic.Endpoint, Key: topic.Keys.Key1, Schema: grid.CloudEvents, Source: "/homes"}))(t)
	for range events {
		testkit.Must(t, client.Publish(t.Context(), grid.Event{Type: "alarm.glass", Data: []byte(`{"kind":"glass"}`)}))
	}
}

// dead are the dead letters of a subscription, also those that were redriven.
func (y *stocked) dead(t *testing.T, of admin.SubscriptionRef) []admin.DeadLetter {
	t.Helper()
	return testkit.Value(y.client.DeadLetters(t.Context(), of, admin.DeadLetterChoice{Redriven: true}, 0, 10))(t).Letters
}

// health is that of a subscription's endpoint.
func (y *stocked) health(t *testing.T, of admin.SubscriptionRef) string {
	t.Helper()
	s := testkit.Value(y.client.Subscription(t.Context(), of, false))(t)
	if s.Stats == nil {
		return ""
	}
	return s.Stats.Endpoint.State
}

// hook is an endpoint that agrees to whatever would be sent to it, and answers each path as it is bidden.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	statuses map[string]int // by path, where it is not 200; guarded by mu
	requests map[string]int // by path; guarded by mu
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{statuses: map[string]int{}, requests: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) answer(path string, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses[path] = status
}

// asked is how many requests came to a path.
func (h *hook) asked(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests[path]
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests[r.URL.Path]++
	status, bidden := h.statuses[r.URL.Path]
	h.mu.Unlock()
	if r.Method == http.MethodOptions || !bidden {
		status = http.StatusOK
	}
	w.Header().Set("WebHook-Allowed-Origin", r.Header.Get("WebHook-Request-Origin"))
	w.WriteHeader(status)
}

// P6, V4: the first key leads past what is the same on all pages, and what somebody has reached by keys is
// still under their hands when the part of the page that it is in comes anew.
func TestFocusStaysWhereAPartComesAnew(t *testing.T) {
	y := newYard(t)
	v := newVisitor(t, y.base, keyboard{})
	v.visit("hubs/orders/groups/billing")
	v.push(v.page, "a.skip")
	v.run("press Tab", chromedp.KeyEvent(kb.Tab))
	v.await("the focus within the page", `document.getElementById("main").contains(document.activeElement)`)
	move := `#part-head a[href="/console/hubs/orders/groups/billing/move"]`
	keyboard{}.reach(v.page, move)
	y.worker(t, "one")
	v.await("the head of a group that somebody reads", shows("#part-head .badge.good"))
	v.await("the focus", `document.activeElement.matches(`+quoted(move)+`)`)
}
