package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// waitsFor is an API some of whose answers wait for a node that says nothing, for as long as the asker has
// patience with it.
func waitsFor(api *fakeAPI, paths ...string) func(http.ResponseWriter, *http.Request, auth.Grant) {
	return func(w http.ResponseWriter, r *http.Request, as auth.Grant) {
		for _, p := range paths {
			if strings.HasPrefix(r.URL.Path, p) {
				waiting, cancel := cluster.Wait(r.Context(), 2*time.Second)
				<-waiting.Done()
				cancel()
				break
			}
		}
		api.serve(w, r, as)
	}
}

// C4, V4: a page of several nodes, one of which says nothing, is there within 300 ms, names that node, and shows
// what the others have counted; its stream names it too, and takes it back when the node answers again.
func TestANodeThatDoesNotAnswerIsNamedInTime(t *testing.T) {
	silence := func(answers map[string]any, nodes ...string) {
		series := answers["GET /api/v1/series"].(admin.SeriesList)
		series.Missing = nodes
		o, kept, keys := fixedOverview(), fixedStorage(), fixedKeys()
		o.Missing, kept.Unanswered, keys.Unanswered = nodes, nodes, nodes
		answers["GET /api/v1/series"], answers["GET /api/v1/overview"], answers["GET /api/v1/storage"], answers["GET /api/v1/hubs/{hub}/keys"] = series, o, kept, keys
	}
	slow := []string{"/api/v1/series", "/api/v1/overview", "/api/v1/storage", "/api/v1/hubs/sensors/keys", "/api/v1/connections", "/api/v1/certificate"}
	for _, path := range []string{"", "hubs/sensors", "hubs/sensors/groups/aggregator", "storage", "access"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := fixed()
				silence(answers, "yard-2")
				c, api, h := newFixture(answers)
				c.cfg.API, c.figuresTime = nil, figuresTime
				client, err := admin.New(admin.Config{Server: "http://inside", Transport: inside{waitsFor(api, slow...)}})
				testkit.Must(t, err)
				c.api = client
				began := time.Now()
				w := get(h, base+path)
				testkit.Equal(t, w.Code, http.StatusOK)
				testkit.That(t, time.Since(began) <= figuresTime, "it takes %s", time.Since(began))
				testkit.That(t, strings.Contains(w.Body.String(), "Node yard-2 does not answer."), "the node is not named")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		answers := fixed()
		silence(answers, "yard-2", "yard-3")
		c, api, h := newFixture(answers)
		began := time.Now()
		c.now = func() time.Time { return noon.Add(time.Since(began)) }
		ctx, cancel := context.WithCancel(t.Context())
		l := &listener{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base+"hubs/sensors", nil))
		}()
		wait := func() string { time.Sleep(5 * time.Second); synctest.Wait(); return l.take() }
		testkit.That(t, strings.Contains(wait(), "Nodes yard-2 and yard-3 do not answer."), "the stream does not name the nodes")
		api.mu.Lock()
		silence(answers)
		api.mu.Unlock()
		back := wait()
		testkit.That(t, strings.Contains(back, `{"html":"","id":"part-yard"}`), "the stream still names nodes: %s", back)
		cancel()
		<-ended
	})
}
