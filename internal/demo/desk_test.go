package demo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// S, G7: a broken webhook answers 503, and the others answer as before.
func TestTheDeskPlaysBadly(t *testing.T) {
	d, mux := &desk{}, http.NewServeMux()
	testkit.Must(t, d.routes(mux))
	post := func(path, kind, body string) int {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	alarm := `[{"id":"1","eventType":"door.opened","subject":"homes/h-000001","eventTime":"2026-01-31T12:00:00Z","dataVersion":"1","data":{}}]`
	d.broken.Store(true)
	testkit.Equal(t, post("/hooks/"+brokenHook, "application/json", alarm), 503, "the broken webhook")
	testkit.Equal(t, post("/hooks/resident-push", "application/json", alarm), 200, "another one")
	d.broken.Store(false)
	testkit.Equal(t, post("/hooks/"+brokenHook, "application/json", alarm), 200, "the webhook that works again")

	// F4: one event that cannot be scored fails its batch.
	good, bad := `{"id":"a","data":{"home":"h-000001","sensor":"motion","value":41}}`, `{"id":"b","data":{"value":"a lot"}}`
	kind := "application/cloudevents-batch+json"
	testkit.Equal(t, post("/scorer", kind, "["+good+"]"), 204, "a good batch")
	testkit.Equal(t, post("/scorer", kind, "["+good+","+bad+"]"), 500, "a batch with a bad event")
	d.away.Store(true)
	testkit.Equal(t, post("/scorer", kind, "["+good+"]"), 503, "a scorer without its store")

	testkit.Equal(t, post("/mailbox", "application/json", `{"text":"the circuit is open","resumeUrl":"http://127.0.0.1/resume"}`), 204, "a notice")
	testkit.Equal(t, d.mail()[0].Link, "http://127.0.0.1/resume", "the link in the mailbox")
}
