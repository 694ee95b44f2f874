package console

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// slowConsole is a console in front of an API that takes so long for some of its paths.
func slowConsole(t *testing.T, answers map[string]any, takes time.Duration, paths ...string) http.Handler {
	t.Helper()
	c, api, h := newFixture(answers)
	c.figuresTime = figuresTime
	began := time.Now()
	c.now = func() time.Time { return noon.Add(time.Since(began)) }
	slow := func(w http.ResponseWriter, r *http.Request, as auth.Grant) {
		if slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(r.URL.Path, p) }) {
			select {
			case <-time.After(takes):
			case <-r.Context().Done():
			}
		}
		api.serve(w, r, as)
	}
	client, err := admin.New(admin.Config{Server: "http://inside", Transport: inside{slow}})
	testkit.Must(t, err)
	c.api = client
	return h
}

// streaming opens the stream of a page, in a bubble, until the test ends. What it gives waits so long, and gives
// what was sent since it was last called.
func streaming(t *testing.T, h http.Handler, path string) (wait func(time.Duration) string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &listener{ResponseRecorder: httptest.NewRecorder()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+url.QueryEscape(path), nil))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func(lasts time.Duration) string {
		time.Sleep(lasts)
		synctest.Wait()
		return l.take()
	}
}

// streamed is what the stream of a page sends in so long a time.
func streamed(t *testing.T, h http.Handler, path string, lasts time.Duration) string {
	t.Helper()
	return streaming(t, h, path)(lasts)
}

// V4: a page whose facts take seconds is there within 300 ms and says that it is still looking; its stream fills
// it in, and who has no script is led to the page that waits.
func TestWhatIsSlowComesByTheStream(t *testing.T) {
	many := fixed()
	var topics []admin.Topic
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		topics = append(topics, admin.Topic{Name: name})
	}
	many["GET /api/v1/topics"] = map[string]any{"topics": topics}
	many["GET /api/v1/topics/{topic}/events/{id}/journey"] = admin.Journeys{Summary: "it is not there"}
	for name, tt := range map[string]struct {
		answers   map[string]any
		path      string
		slow      []string
		has, lack string
		comes     string
	}{
		"an event in a topic":          {fixed(), "events?id=7c1d-e0&in=topics/alarms", []string{"/journey"}, "Still looking", "Not found", "It was delivered to 1 of the 3 subscriptions"},
		"an event of a hub":            {fixed(), "events?id=0/41&in=hubs/sensors", []string{"/journey"}, "Still looking", "Not found", "called 2 times"},
		"an event that is in no topic": {many, "events?id=7c1d-e0", []string{"/journey"}, "Still looking", "Not found", "It is not there"},
		"a text among events":          {fixed(), "hubs/sensors/events?find=glass", []string{"partitions/0/events"}, "Still looking", "Nothing found", "<mark>glass</mark>"},
		"the hubs of the yard":         {fixed(), "", []string{"/hubs"}, "the page fills itself", "An empty yard", "aggregator"},
		"a hub":                        {fixed(), "hubs/sensors", []string{"/sensors"}, "Still looking", "Kept", "part-whole"},
		"the partitions of a hub":      {fixed(), "hubs/sensors", []string{"/partitions"}, "Still looking", "Kept", "Keeps events for "},
		"a group":                      {fixed(), "hubs/sensors/groups/aggregator", []string{"/ownership"}, "Still looking", "Who owns what", "Who owns what"},
		"the list of hubs":             {fixed(), "hubs", []string{"/hubs"}, "Still looking", "No hub yet", "A hub is a log of events"},
		"the groups of a hub":          {fixed(), "hubs/sensors/groups", []string{"/sensors"}, "Still looking", "New group", "New group"},
		"the events of a hub":          {fixed(), "hubs/sensors/events", []string{"/sensors"}, "Still looking", "Nothing found", "part-whole"},
		"the list of topics":           {fixed(), "topics", []string{"/topics"}, "Still looking", "No topic yet", "company"},
		"their subscriptions":          {fixed(), "topics", []string{"/subscriptions"}, "Still looking", "No topic yet", "company"},
		"a topic":                      {fixed(), "topics/alarms", []string{"/alarms"}, "Still looking", "company", "company"},
		"a subscription":               {fixed(), "topics/alarms/subscriptions/company", []string{"/company"}, "Still looking", "hooks.example", "hooks.example"},
		"the list of functions":        {fixed(), "functions", []string{"/functions"}, "Still looking", "No function yet", "elsewhere"},
		"their circuits":               {fixed(), "functions", []string{"/circuits"}, "Still looking", "No function yet", "elsewhere"},
		"a function":                   {fixed(), "functions/score", []string{"/functions/score"}, "Still looking", "Waiting", "Stopped: 101 failures"},
		"who may do what":              {fixed(), "access", []string{"/policies"}, "Still looking", "first-key", "gateway"},
		"what has changed":             {fixed(), "activity", []string{"/activity"}, "Still looking", "hub created", "part-whole"},
		"where it is kept":             {fixed(), "storage", []string{"/cluster"}, "Still looking", "yard-1 is lost", "part-whole"},
		"the yard as a whole":          {fixed(), "", []string{"/overview"}, "Still looking.", "Nothing needs you", "part-figures"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := slowConsole(t, tt.answers, 2*time.Second, tt.slow...)
				began := time.Now()
				w := get(h, base+tt.path)
				testkit.Equal(t, w.Code, http.StatusOK)
				testkit.That(t, time.Since(began) <= figuresTime, "it takes %s", time.Since(began))
				page := w.Body.String()
				checkPage(t, w)
				testkit.That(t, strings.Contains(page, tt.has), "it does not say %q", tt.has)
				testkit.That(t, !strings.Contains(page, tt.lack), "it says %q", tt.lack)
				testkit.That(t, strings.Contains(page, "data-live="), "it has no stream")
				testkit.That(t, strings.Contains(page, "wait=yes"), "it does not lead to the page that waits")
				testkit.That(t, strings.Contains(streamed(t, h, liveOf(t, page), 30*time.Second), jsonText(t, tt.comes)), "its stream does not say %q", tt.comes)
				wait := get(h, more(base+tt.path, "wait", "yes")).Body.String()
				testkit.That(t, !strings.Contains(wait, tt.has), "the page that waits says %q", tt.has)
			})
		})
	}
}

// liveOf is the address that a page gives its stream.
func liveOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, `data-live="`)
	path, _, found := strings.Cut(rest, `"`)
	testkit.That(t, found, "the page has no stream")
	return html.UnescapeString(path)
}

// V4: nor does a page wait to be told which yard it is and how that is: it says the former as it was, and its
// stream the latter.
func TestWhatStandsAroundAPageDoesNotHoldIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowConsole(t, fixed(), 2*time.Second, "/api/v1", "/overview")
		began := time.Now()
		page := get(h, base+"hubs").Body.String()
		testkit.That(t, time.Since(began) <= figuresTime, "it takes %s", time.Since(began))
		testkit.That(t, strings.Contains(page, "sensors") && !strings.Contains(page, "Still looking"), "the page has no list")
		testkit.That(t, strings.Contains(streamed(t, h, liveOf(t, page), 10*time.Second), jsonText(t, `<b class="odd">`)), "the stream does not say how many need somebody")
		testkit.That(t, strings.Contains(get(h, base+"hubs?wait=yes").Body.String(), "<b>home-yard</b>"), "the page that waits does not say which yard it is")
		testkit.That(t, strings.Contains(get(h, base+"hubs").Body.String(), "<b>home-yard</b>"), "it is not remembered which yard it is")
	})
}

// V4: a page that came without anything, and its stream, follow on as any other does; and a browser without a
// script goes by itself where all of it is.
func TestAPageThatCameLateIsKeptLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fixed()
		h := slowConsole(t, answers, time.Second, "/ownership")
		page := get(h, base+"hubs/sensors/groups/aggregator").Body.String()
		testkit.That(t, strings.Contains(page, `<noscript><meta http-equiv="refresh" content="0;url=/console/hubs/sensors/groups/aggregator?wait=yes"></noscript>`), "without a script it stays as it is")
		testkit.That(t, strings.Contains(page, `<a href="/console/hubs">Hubs</a></li><li><span aria-current="page">aggregator</span>`), "it does not say where one is")
		wait := streaming(t, h, liveOf(t, page))
		first := wait(10 * time.Second)
		testkit.Equal(t, strings.Count(first, `"id":"part-whole"`), 1, "how often the page is sent whole")
		testkit.That(t, strings.Contains(first, "event: cells"), "it is not kept live: %s", first)
		testkit.That(t, !strings.Contains(get(h, base+"hubs").Body.String(), "noscript"), "a page that is whole leads away")
	})
}

// jsonText is a text as a frame of a stream has it.
func jsonText(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	testkit.Must(t, lines.Encode(text))
	return strings.Trim(b.String(), "\"\n")
}

// V4: a hub that was not listed in time does not make a yard an empty one, and a yard that is empty is shown as one
// by the stream.
func TestAYardIsNotEmptyBecauseItIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowConsole(t, freshYard(), time.Second, "/hubs")
		testkit.That(t, !strings.Contains(get(h, base).Body.String(), "An empty yard"), "it is taken for an empty one")
		testkit.That(t, strings.Contains(streamed(t, h, base, 5*time.Second), "An empty yard"), "the stream does not say that it is empty")
	})
}

// V4: a stream looks for an event once, and then at the event.
func TestAStreamSearchesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fixed()
		c, api, h := newFixture(answers)
		began := time.Now()
		c.now = func() time.Time { return noon.Add(time.Since(began)) }
		answers["GET /api/v1/topics"] = map[string]any{"topics": []admin.Topic{{Name: "alarms"}, {Name: "others"}}}
		answers["GET /api/v1/topics/others/events/{id}/journey"] = admin.Journeys{Summary: "it is not there"}
		delete(answers, "GET /api/v1/topics/{topic}/events/{id}/journey")
		answers["GET /api/v1/topics/alarms/events/{id}/journey"] = admin.Journeys{Events: []admin.Journey{fixedJourney()}}
		streamed(t, h, base+"events?id=7c1d-e0", 21*time.Second)
		asked := func(path string) (n int) {
			api.mu.Lock()
			defer api.mu.Unlock()
			for _, call := range api.calls {
				if strings.HasPrefix(call, "GET /api/v1/"+path+"/events") {
					n++
				}
			}
			return n
		}
		testkit.Equal(t, asked("topics/others"), 1, "searches where it is not")
		testkit.That(t, asked("topics/alarms") >= 4, "the event that waits was looked at %d times", asked("topics/alarms"))
		streamed(t, h, base+"hubs/sensors/events?find=glass", 9500*time.Millisecond)
		testkit.Equal(t, asked("hubs/sensors/partitions/0"), 1, "searches of a partition")
	})
}
