//go:build linux

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// brokenReason is what the program says while it is broken: long, and without a place to break it.
var brokenReason = "the ledger is away: " + strings.Repeat("9f8d7c6b5a", 20)

// patient is a program that fails until it is mended, and the people who are told of that.
type patient struct {
	*httptest.Server
	mended atomic.Bool
	links  chan string // of the notices
}

func newPatient(t *testing.T) *patient {
	p := &patient{links: make(chan string, 16)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /function", func(w http.ResponseWriter, _ *http.Request) {
		if !p.mended.Load() {
			http.Error(w, brokenReason, http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /notice", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var notice struct{ ResumeURL string }
		if err := json.Unmarshal(body, &notice); err == nil && notice.ResumeURL != "" {
			p.links <- notice.ResumeURL
		}
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// TestResumeInBrowser opens the link of a notice in a real browser that runs no scripts. Looking
// resumes nothing; pressing the button does, once, by mouse as by keyboard. // F6, F7
func TestResumeInBrowser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width  int
		scheme string
		press  func(p *parts.Page)
	}{
		"by mouse on a desk":     {1280, "light", func(p *parts.Page) { p.Click("button") }},
		"by keyboard on a phone": {390, "dark", func(p *parts.Page) { p.Press("Tab", "Enter") }},
	} {
		t.Run(name, func(t *testing.T) {
			page := parts.Browser(t)
			page.Screen(c.width, 844, c.scheme)
			program := newPatient(t)
			y := startYard(t, layout{hubs: map[string]int{"orders": 1}})
			link := breakCircuit(t, y, program)

			page.Open(link)
			wantPage(t, page, c.width, "billing", "circuit open", "Stopped after 3 failures within 30 s", "the ledger is away", "Waiting", "UTC")
			page.Open(link)
			wantCircuit(t, y, "open")
			t.Log("proved: who only opens the link resumes nothing")

			program.mended.Store(true)
			c.press(page)
			wantPage(t, page, c.width, "billing", "circuit closed", "Resumed")
			wantCircuit(t, y, "closed")
			wantHandled(t, y)
			t.Log("proved: the button resumes, and processing goes on")

			page.Open(link)
			wantPage(t, page, c.width, "billing", "It is running already", "A link is good once")
			wantRequests(t, page, link, "GET 200", "GET 200", "POST 200", "GET 410")
		})
	}
}

// breakCircuit lets a function fail until its circuit opens, and gives the link of the notice.
func breakCircuit(t *testing.T, y *yard, p *patient) (link string) {
	t.Helper()
	y.do(t, "function", "create", "billing", "--hub", "orders", "--endpoint", p.URL+"/function", "--retries", "0", "--batch", "1",
		"--breaker", "2/30s", "--notify", p.URL+"/notice")
	y.do(t, "send", "orders", `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`)
	eventually(t, func() string {
		select {
		case link = <-p.links:
			return ""
		default:
			return "no notice has come"
		}
	})
	wantCircuit(t, y, "open")
	return link
}

// wantPage wants words on the page, as a person sees it, no need to scroll sideways, and a browser
// without complaints but about the status.
func wantPage(t *testing.T, page *parts.Page, width int, words ...string) {
	t.Helper()
	text := page.Text()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the page lacks %q:\n%s", word, text)
		}
	}
	if got := page.Width(); got > width {
		t.Errorf("the page is %d wide in a window of %d", got, width)
	}
	for _, complaint := range page.Complaints {
		if !strings.Contains(complaint, "status of 410") {
			t.Errorf("the browser says: %s", complaint)
		}
	}
}

func wantCircuit(t *testing.T, y *yard, state string) {
	t.Helper()
	if got := ask[admin.Circuit](t, y, "circuit", "show", "billing"); got.State != state {
		t.Fatalf("the circuit is %s, want %s: %+v", got.State, state, got)
	}
}

// wantHandled waits until no event waits any more.
func wantHandled(t *testing.T, y *yard) {
	t.Helper()
	eventually(t, func() string {
		shown := ask[admin.Function](t, y, "function", "show", "billing")
		if shown.State == "running" && shown.Lag != nil && *shown.Lag == 0 {
			return ""
		}
		return fmt.Sprintf("the function is %+v", shown)
	})
}

// wantRequests wants that the browser has asked for the page so often and in these ways, and for
// nothing else.
func wantRequests(t *testing.T, page *parts.Page, link string, wanted ...string) {
	t.Helper()
	var got []string
	for _, r := range page.Requests {
		got = append(got, fmt.Sprintf("%s %d", r.Method, r.Status))
		if r.URL != link {
			t.Errorf("the browser asked for %s", r.URL)
		}
	}
	testkit.Equal(t, strings.Join(got, ", "), strings.Join(wanted, ", "),
		"the browser asked")
}
