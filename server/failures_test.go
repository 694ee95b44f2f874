package server

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: wrong keys are noticed alike whatever they are shown to, and a right one is let in after any
// number of them.
func TestWrongKeysAreNoticedEverywhere(t *testing.T) {
	text := &testkit.Buffer{}
	cfg := everyListener(t)
	cfg.Log = slog.New(slog.NewTextHandler(text, nil))
	cfg.Topics = []Topic{{Name: "orders"}}
	r := start(t, cfg)
	refused := func(what string, show func()) {
		t.Helper()
		before := strings.Count(text.String(), "a key or token was refused")
		show()
		testkit.Equal(t, strings.Count(text.String(), "a key or token was refused"), before+1, "lines after %s", what)
	}
	for what, change := range map[string]func(*http.Request){
		"GET /api/v1/hubs":               func(q *http.Request) { q.SetBasicAuth("nobody", "wrong") },
		"GET /api/v1":                    func(q *http.Request) { q.Header.Set("Authorization", "SharedAccessSignature sr=x&sig=eA&se=1&skn=y") },
		"POST /topics/orders/api/events": func(q *http.Request) { q.Header.Set("aeg-sas-key", "wrong") },
		"GET /blob/eventyard/c?restype=container&sig=eA&sv=2020-02-10&sr=c&sp=r&se=2030-01-01": nil,
	} {
		method, path, _ := strings.Cut(what, " ")
		q, err := http.NewRequest(method, r.url+path, nil)
		testkit.Must(t, err)
		if change != nil {
			change(q)
		}
		refused(what, func() {
			response, err := http.DefaultClient.Do(q)
			testkit.Must(t, err)
			response.Body.Close()
		})
	}
	for _, way := range ways {
		refused(way, func() {
			conn, err := goamqp.NewConn(t.Context(), r.dial(way), &goamqp.ConnOptions{HostName: "localhost", SASLType: goamqp.SASLTypePlain("nobody", "wrong")})
			if err == nil {
				_ = conn.Close()
				t.Errorf("%s lets a wrong key in", way)
			}
		})
	}
	r.want(200, "GET", "/api/v1/hubs", "")
	r.shutdown()
}
