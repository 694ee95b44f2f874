package server

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
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
		wantNoticed(t, text, what, func() {
			response, err := http.DefaultClient.Do(q)
			testkit.Must(t, err)
			response.Body.Close()
		})
	}
	for _, way := range ways {
		wantNoticed(t, text, way, func() {
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

// R4: so it is with Kafka's clients, however they log in, and at the console, which wants to know who is there once
// others can reach the yard.
func TestWrongKeysAreNoticedBeyondLoopback(t *testing.T) {
	text := &testkit.Buffer{}
	cfg := everyListener(t)
	cfg.Log = slog.New(slog.NewTextHandler(text, nil))
	cfg.HTTP, cfg.AllowPlaintext = "0.0.0.0:0", true
	r := start(t, cfg)
	good := testkit.Value(auth.ParseConnectionString(r.Access().ConnectionString))(t)
	for _, listener := range []string{"kafka", "kafkas"} {
		for way, logIn := range map[string]func(*KafkaConn) error{
			"PLAIN":                 func(c *KafkaConn) error { return c.LogIn("nobody", "wrong") },
			"PLAIN, a wrong string": func(c *KafkaConn) error { return c.LogIn("$ConnectionString", "wrong") },
			"OAUTHBEARER":           func(c *KafkaConn) error { return c.show("OAUTHBEARER", "n,,\x01auth=Bearer wrong\x01\x01") },
			"SCRAM-SHA-512":         func(c *KafkaConn) error { return c.showWrongProof(auth.RootPolicy) },
		} {
			conn := r.dialKafka(listener)
			wantNoticed(t, text, way+" at "+listener, func() {
				testkit.That(t, logIn(conn) != nil, "%s at %s lets a wrong key in", way, listener)
			})
		}
	}
	wantNoticed(t, text, "the console", func() {
		form := url.Values{"policy": {auth.RootPolicy}, "key": {"wrong"}}
		response := testkit.Value(http.PostForm("http://"+r.host("http")+"/console/signin", form))(t)
		response.Body.Close()
		testkit.Equal(t, response.StatusCode, http.StatusUnauthorized, "status of signing in with a wrong key")
	})
	testkit.Must(t, r.dialKafka("kafka").LogIn(auth.RootPolicy, good.Key), "a right key after wrong ones")
	r.shutdown()
}

// wantNoticed is that one line more says so after a wrong key was shown. A yard has ten at once.
func wantNoticed(t *testing.T, text *testkit.Buffer, what string, show func()) {
	t.Helper()
	before := strings.Count(text.String(), "a key or token was refused")
	show()
	testkit.Equal(t, strings.Count(text.String(), "a key or token was refused"), before+1, "lines after %s", what)
}
