package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// realWorld has the real way out, to this machine.
func realWorld(t *testing.T, cfg egress.Config, handler http.HandlerFunc) (*world, string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w := newWorld(t)
	client, err := egress.New(cfg)
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	w.cfg.Client = client
	return w, server.URL
}

// F6
func TestAWebhookGetsAllThatPeopleNeed(t *testing.T) {
	got := make(chan []byte, 1)
	w, url := realWorld(t, egress.Config{Loopback: true}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
		w.WriteHeader(202)
		got <- body
	})
	target := url + "/hooks/SECRET?x=1"
	w.circuits.setTargets(target)
	s := w.open()
	defer w.run(s)()
	w.circuits.set("resize", opened(breaker.Record{}, "i1"))
	var body []byte
	select {
	case body = <-got:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	var p map[string]any
	testkit.Must(t, json.Unmarshal(body, &p))
	for name, value := range map[string]any{
		"type": "Eventyard.CircuitOpened", "function": "resize", "hub": "Images", "group": "resizer", "state": "open", "incident": "i1", "failures": 101.0, "lag": 1234.0,
	} {
		testkit.Equal(t, p[name], value, "%s", name)
	}
	link, _ := p["resumeUrl"].(string)
	g, err := readToken(s.secret, strings.TrimPrefix(link, yardURL+PathPrefix))
	if err != nil || g.Incident != "i1" || g.Function != "resize" || g.Group.Hub != "Images" || g.Group.Group != "resizer" {
		t.Errorf("link %q is of %+v: %v", link, g, err)
	}
	expires, err := time.Parse(time.RFC3339, p["expires"].(string))
	if err != nil || !expires.Equal(g.Expires) || time.Until(expires) < 71*time.Hour || time.Until(expires) > 72*time.Hour {
		t.Errorf("it expires at %v: %v", p["expires"], err)
	}
	want(t, "text", p["text"].(string), "resize has stopped after 101 failures within 30 s (hub Images, group resizer). 1,234 events waiting, nothing is lost. Look and resume: "+link)
	if errs := p["errors"].([]any); len(errs) != 1 || errs[0].(map[string]any)["error"] != "no such image" {
		t.Errorf("errors are %v", p["errors"])
	}
}

func TestOnly2xxIsSuccess(t *testing.T) {
	for status, final := range map[int]bool{200: false, 204: false, 301: true, 404: true, 410: true, 429: false, 500: false, 503: false} {
		w, url := realWorld(t, egress.Config{Loopback: true}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "77")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			if status >= 300 {
				_, _ = io.WriteString(w, "it\r\nsaid")
			}
		})
		err := w.open().Test(t.Context(), url)
		if ok := status < 300; ok != (err == nil) {
			t.Errorf("%d gives %v", status, err)
		}
		if err == nil {
			continue
		}
		var r *refusal
		if !errors.As(err, &r) || r.final != final || r.after != 77*time.Second || !strings.Contains(err.Error(), `it\r\nsaid`) {
			t.Errorf("%d gives %v (%+v)", status, err, r)
		}
	}
}

// What a function's name or an operator's can do in a chat: nothing.
func TestChatsGetPlainText(t *testing.T) {
	n := aNotice(func(n *notice) {
		n.Kind, n.Link, n.Function = kindHeld, "", "<!channel> @here *f* `x` <https://evil.example|resume>"
		n.Record.By = "<@U123>\nBob"
	})
	text := postOf(n, chat).Text
	testkit.That(t, !strings.ContainsAny(text, "<>&@*`\n"), "the text is %q", text)
}

// The yard's own network is not reached by way of notices.
func TestWebhooksAreGuarded(t *testing.T) {
	reached := false
	w, url := realWorld(t, egress.Config{}, func(http.ResponseWriter, *http.Request) { reached = true })
	w.circuits.setTargets(url)
	s := w.open()
	testkit.ErrorIs(t, s.cfg.CheckTarget(url), egress.ErrForbidden)
	l := &ledger{Group: resizers, Function: "resize"}
	l.note(Circuit{resizers, "resize", opened(breaker.Record{}, "i1")}, []string{url}, time.Now())
	it, _ := l.head(url)
	if err := s.deliver(t.Context(), l, it); err == nil || reached {
		t.Errorf("sent: %v, %v", err, reached)
	}
}

// A webhook's URL is a secret beyond the host.
func TestSecretsOfTargetsAreNotLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		var log bytes.Buffer
		w.cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w.setDown(only(chat))
		stop := w.run(w.open())
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		time.Sleep(25 * time.Hour)
		stop()
		if text := log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "chat.example.com") || !strings.Contains(text, "level=WARN msg=\"a notice was given up\"") {
			t.Errorf("the log is %s", text)
		}
	})
}

func TestTargetsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.cfg.SMTP = SMTP{Addr: "smtp.example.com:587", From: "yard@example.com"}
	s := w.open()
	for target, says := range map[string]string{
		boss: "", "MAILTO:Boss@example.com": "", "mailto:o%27hara@example.com": "", chat: "", "http://hooks.example.com:8080/x": "",
		"mailto:": "no address", "mailto": "neither mail", "mailto:boss": "no address", "mailto:a@example.com,b@example.com": "no address", "mailto:a@example.com?cc=b@example.com": "no address",
		"mailto:Boss <a@example.com>": "more than an address", "mailto:a@example.com%0d%0aBcc:b@example.com": "no address", "mailto:%zz@example.com": "cannot be read",
		"mailto:\"a b\"@example.com": "more than", "boss@example.com": "neither mail nor a webhook", "ftp://example.com/": "neither mail", "": "neither mail",
		"https://": "no host", "https://user@example.com/": "has a user", "http://127.0.0.1/": "not allowed", "https://example.com/" + strings.Repeat("x", 3000): "at most 1024",
		"https://example.com/\"": "%22", "https://example.com/größe": "%C3%B6", "https://example.com/\\": "%5C", "https://example.com/\xff": "%FF",
	} {
		err := s.cfg.CheckTarget(target)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%.60s: got %v, want %q in it", target, err, says)
		}
		if says != "" && s.Test(t.Context(), target) == nil {
			t.Errorf("a test is sent to %s", target)
		}
	}
	w.cfg.SMTP = SMTP{}
	if err := w.open().cfg.CheckTarget(boss); err == nil || !strings.Contains(err.Error(), "notify.smtp.addr") {
		t.Errorf("without a server: %v", err)
	}
	w.cfg.Client = nil
	testkit.That(t, w.open().cfg.CheckTarget(chat) != nil, "without a way out webhooks are taken")
}

func TestATestIsCountedAndMarked(t *testing.T) {
	w := newWorld(t)
	testkit.Must(t, w.open().Test(t.Context(), chat))
	if p := w.posted(chat)[0]; p.Type != "Eventyard.Test" || p.ResumeURL != "" || p.Command != "" || !strings.HasPrefix(p.Text, "Test of notices") {
		t.Errorf("got %+v", p)
	}
}
