package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// freshYard is one in which nothing was made yet but some hubs.
func freshYard(hubs ...admin.Hub) map[string]any {
	answers := fixed()
	for path, list := range map[string]string{"topics": "topics", "subscriptions": "subscriptions", "functions": "functions", "circuits": "circuits"} {
		answers["GET /api/v1/"+path] = map[string]any{list: []int{}}
	}
	answers["GET /api/v1/hubs"] = map[string]any{"hubs": hubs}
	answers["GET /api/v1/series"] = admin.SeriesList{}
	o := fixedOverview()
	o.Needs = nil
	answers["GET /api/v1/overview"] = o
	return answers
}

// V4: the first steps are ticked off by what the yard has seen, and go once all of it was.
func TestFirstStepsTickThemselvesOff(t *testing.T) {
	made := func(ago time.Duration, stats admin.HubStats) admin.Hub {
		return admin.Hub{Name: "sensors", Partitions: 4, Created: *apiTime(ago), Stats: &stats}
	}
	read := admin.SeriesList{Series: []admin.Series{{Of: "read", Unit: "events/s", From: *apiTime(time.Minute), Step: 1, Values: []*float64{nil, new(0.), new(1.)}}}}
	for name, c := range map[string]struct {
		hubs   []admin.Hub
		series admin.SeriesList
		states []string // of each step; nil: they are not shown
		says   string
	}{
		"an empty yard":     {states: []string{"done", "now", "", ""}, says: "An empty yard"},
		"a hub":             {hubs: []admin.Hub{made(time.Minute, admin.HubStats{})}, states: []string{"done", "done", "now", ""}, says: "First steps"},
		"a hub of long ago": {hubs: []admin.Hub{made(72*time.Hour, admin.HubStats{})}, states: []string{"done", "done", "now", ""}, says: "First steps"},
		"an event":          {hubs: []admin.Hub{made(time.Minute, admin.HubStats{Events: 1})}, states: []string{"done", "done", "done", "now"}, says: "A program that reads"},
		"a reader":          {hubs: []admin.Hub{made(time.Minute, admin.HubStats{Events: 1})}, series: read, states: []string{"done", "done", "done", "done"}, says: "It was read."},
		"a checkpoint, and events that are removed": {hubs: []admin.Hub{made(time.Minute, admin.HubStats{LagEvents: new(0.)})}, states: []string{"done", "done", "done", "done"}, says: "It was read."},
		"a reader, and a while":                     {hubs: []admin.Hub{made(11*time.Minute, admin.HubStats{Events: 1})}, series: read},
		"two hubs":                                  {hubs: []admin.Hub{made(time.Minute, admin.HubStats{}), {Name: "more", Created: *apiTime(0)}}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := freshYard(c.hubs...)
			answers["GET /api/v1/series"] = c.series
			_, _, h := newFixture(answers)
			w := get(h, base)
			checkPage(t, w)
			testkit.Diff(t, strings.Join(c.states, ","), strings.Join(statesOf(w.Body.String()), ","))
			testkit.That(t, strings.Contains(w.Body.String(), c.says), "it does not say %q", c.says)
			testkit.Equal(t, strings.Count(w.Body.String(), "<h1"), 1, "headings")
		})
	}
}

// statesOf are the classes of the steps on a page.
func statesOf(page string) (states []string) {
	_, steps, ok := strings.Cut(page, `<ol class="steps">`)
	if !ok {
		return nil
	}
	steps, _, _ = strings.Cut(steps, "</ol>")
	for _, step := range strings.Split(steps, "<li")[1:] {
		state, found := strings.CutPrefix(step, ` class="`)
		state, _, _ = strings.Cut(state, `"`)
		if !found {
			state = ""
		}
		states = append(states, state)
	}
	return states
}

// V3, V4: beyond loopback the steps have a policy's connection string without its key, which the script can copy;
// and the hub that they create leads back to them.
func TestFirstStepsBeyondLoopback(t *testing.T) {
	hub := admin.Hub{Name: "sensors", Partitions: 4, Created: *apiTime(0), Stats: &admin.HubStats{}}
	c, _, h := newFixture(freshYard(hub))
	testkit.That(t, strings.Contains(get(h, base+"?lang=curl").Body.String(), "RootManageSharedAccessKey:SAS_KEY_VALUE"), "development mode does not show the key that everybody knows")
	signedInWith(c, "", auth.Manage)
	page := getSignedIn(h, base).Body.String()
	for _, says := range []string{"SharedAccessKey=••••••••", `data-copy-from="/console/policies/RootManageSharedAccessKey/copy?key=primary"`, "YARD_USER"} {
		testkit.That(t, strings.Contains(page, says), "it does not say %q", says)
	}
	testkit.That(t, !strings.Contains(page, "SAS_KEY_VALUE"), "it shows the key that is not valid")

	_, _, h = newFixture(freshYard())
	w := post(h, base+"new/hub", url.Values{"name": {"sensors"}, "partitions": {"4"}, "first": {"1"}})
	testkit.Equal(t, w.Code, http.StatusSeeOther)
	testkit.Equal(t, w.Header().Get("Location"), base+"?done=created")
}
