package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: a configured function is there when the yard is, and is called with what comes; what differs
// at the next start is made as it stands.
func TestConfiguredFunctionsAreCalled(t *testing.T) {
	first, second := newReceiver(t), newReceiver(t)
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1}}
	cfg.Functions = []Function{{Name: "billing", Hub: "orders", Group: "billing", Endpoint: new(first.URL), Retries: new(admin.Retries(0)), Headers: map[string]string{"X-Key": "secret"}}}
	r := start(t, cfg)
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}}]`)
	first.await(first.got, `"n":1`)
	r.shutdown()

	cfg.Functions[0].Endpoint, cfg.Functions[0].Retries = new(second.URL), new(admin.Forever)
	r = start(t, cfg)
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":2}}]`)
	second.await(second.got, `"n":2`)
	shown := r.want(http.StatusOK, "GET", "/api/v1/functions/billing", "")
	if !strings.Contains(shown, `"retries":-1`) || strings.Contains(shown, "secret") {
		t.Errorf("the function is %s", shown)
	}
}

// F5: a function that waits for its program stops with the yard, and its events come again.
func TestStoppingDoesNotWaitForAnOpenCircuit(t *testing.T) {
	hook := newReceiver(t)
	hook.status.Store(http.StatusInternalServerError)
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1}}
	cfg.Functions = []Function{{Name: "billing", Hub: "orders", Endpoint: new(hook.URL), Retries: new(admin.Retries(0)), Breaker: new("1/30s")}}
	r := start(t, cfg)
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}},{"body":{"n":2}},{"body":{"n":3}}]`)
	testkit.Eventually(t, "the circuit opens", func() bool {
		return strings.Contains(r.want(http.StatusOK, "GET", "/api/v1/circuits", ""), `"state":"open"`)
	})
	r.shutdown()

	hook.status.Store(http.StatusOK)
	r = start(t, cfg)
	r.want(http.StatusOK, "POST", "/api/v1/functions/billing/resume", "")
	testkit.Eventually(t, "the rest is handled", func() bool {
		return strings.Contains(r.want(http.StatusOK, "GET", "/api/v1/functions/billing", ""), `"lag":0`)
	})
}

// Whoever has a link can resume: it goes over TLS where others come in by TLS, and never to where
// they cannot come in.
func TestLinksOfNoticesLeadToTheBestListener(t *testing.T) {
	listener := func(name, address string) openListener {
		return openListener{Listener: config.Listener{Name: name, Address: address, TLS: name == "https"}}
	}
	for want, test := range map[string]struct {
		open   openListeners
		public string
	}{
		"https://yard.example.com/a": {openListeners{listener("http", "127.0.0.1:8080")}, "https://yard.example.com/a/"},
		"http://127.0.0.1:8080":      {openListeners{listener("https", "127.0.0.1:8443"), listener("http", "127.0.0.1:8080")}, ""},
		"https://192.0.2.1:8443":     {openListeners{listener("http", "192.0.2.1:8080"), listener("https", "192.0.2.1:8443")}, ""},
		"http://192.0.2.1:8080":      {openListeners{listener("http", "192.0.2.1:8080"), listener("https", "127.0.0.1:8443")}, ""},
		"":                           {openListeners{listener("amqp", "192.0.2.1:5672")}, ""},
	} {
		t.Run(fmt.Sprintf("%q", want), func(t *testing.T) {
			testkit.Equal(t, test.open.resumeBase(Config{PublicURL: test.public}), want)
		})
	}
}

// F6, F7: a circuit opens, the notice has a link under the public URL, which a proxy passes on to a
// yard on loopback. Whoever only looks changes nothing; of those who press at once one resumes, be
// it by the listener with TLS, and then processing goes on.
func TestALinkResumesBehindAProxy(t *testing.T) {
	program, chat := newReceiver(t), newReceiver(t)
	program.status.Store(http.StatusInternalServerError)
	cfg := quick(t)
	cfg.HTTPS, cfg.PublicURL = "127.0.0.1:0", "https://yard.example.com"
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1}}
	cfg.Functions = []Function{{Name: "billing", Hub: "orders", Endpoint: new(program.URL), Retries: new(admin.Retries(0)), Batch: new(1), Breaker: new("1/30s"), Notify: []string{chat.URL + "/hook"}}}
	r := start(t, cfg)
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}},{"body":{"n":2}},{"body":{"n":3}}]`)
	_, rest, _ := strings.Cut(chat.await(chat.got, `"resumeUrl":"https://yard.example.com/resume/`), `"resumeUrl":"https://yard.example.com`)
	path, _, _ := strings.Cut(rest, `"`)
	ask := func(method, listener string) (int, string) {
		request, err := http.NewRequest(method, r.Addresses()[listener]+path, nil)
		testkit.Check(t, err)
		request.Host = "yard.example.com"
		request.Header.Set("Origin", "https://yard.example.com")
		answer, err := r.client().Do(request)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer answer.Body.Close()
		page, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(page)
	}
	for _, listener := range []string{"http", "https"} {
		if status, page := ask("GET", listener); status != http.StatusOK || !strings.Contains(page, ">Resume</button>") || !strings.Contains(page, "500") {
			t.Errorf("by %s: %d %s", listener, status, page)
		}
	}
	if circuit := r.want(http.StatusOK, "GET", "/api/v1/circuits/billing", ""); !strings.Contains(circuit, `"state":"open"`) {
		t.Errorf("whoever looked has changed it: %s", circuit)
	}
	program.status.Store(http.StatusOK)
	var pressed sync.WaitGroup
	var resumed, late atomic.Int64
	for i := range 8 {
		pressed.Go(func() {
			switch status, page := ask("POST", []string{"http", "https"}[i%2]); {
			case status == http.StatusOK && strings.Contains(page, "Resumed"):
				resumed.Add(1)
			case status == http.StatusGone && strings.Contains(page, "running already"):
				late.Add(1)
			}
		})
	}
	pressed.Wait()
	if resumed.Load() != 1 || late.Load() != 7 {
		t.Errorf("%d have resumed, %d came late", resumed.Load(), late.Load())
	}
	chat.await(chat.got, `"type":"Eventyard.CircuitClosed"`)
	testkit.Eventually(t, "the rest is handled", func() bool {
		return strings.Contains(r.want(http.StatusOK, "GET", "/api/v1/functions/billing", ""), `"lag":0`)
	})
}

// F7: whoever has no good link is shown a page that says so, without a token and at once.
func TestLinksAreServed(t *testing.T) {
	r := start(t, quick(t))
	answer, err := http.Get(r.url + "/resume/nonsense")
	testkit.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode < 400 || answer.StatusCode >= 500 || !strings.Contains(answer.Header.Get("Content-Type"), "text/html") {
		t.Errorf("answered %s, %v", answer.Status, answer.Header)
	}
}

func TestFunctionsAndNoticesThatMakeNoSense(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"timeout": func(c *Config) {
			c.Functions = []Function{{Name: "f", Hub: "h", Endpoint: new("http://x/"), Timeout: new("some")}}
		},
		"header": func(c *Config) {
			c.Functions = []Function{{Name: "f", Hub: "h", Endpoint: new("http://x/"), Headers: map[string]string{"no token": "x"}}}
		},
		"breaker": func(c *Config) {
			c.Functions = []Function{{Name: "f", Hub: "h", Endpoint: new("http://x/"), Breaker: new("many")}}
		},
		"notify.smtp.from":   func(c *Config) { c.Notify.SMTP.Addr = "mail:25" },
		"notify.smtp.addr":   func(c *Config) { c.Notify.To = []string{"mailto:a@b"} },
		"notify.smtp.caFile": func(c *Config) { c.Notify.SMTP.CAFile = filepath.Join(c.DataDir, "none.pem") },
		"does not exist":     func(c *Config) { c.Functions = []Function{{Name: "f", Hub: "h", Endpoint: new("http://x/")}} },
	} {
		cfg := quick(t)
		change(&cfg)
		s, err := New(onEngine(t, cfg))
		if err == nil {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				select {
				case <-s.Started():
					cancel()
				case <-ctx.Done():
				}
			}()
			err = s.Run(ctx)
			cancel()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		_ = os.RemoveAll(cfg.DataDir)
	}
}
