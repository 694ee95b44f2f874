package console

import (
	"context"
	"encoding/json"
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
				testkit.That(t, strings.Contains(streamed(t, h, base+tt.path, 30*time.Second), jsonText(t, tt.comes)), "its stream does not say %q", tt.comes)
				wait := get(h, more(base+tt.path, "wait", "yes")).Body.String()
				testkit.That(t, !strings.Contains(wait, tt.has), "the page that waits says %q", tt.has)
			})
		})
	}
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
