package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is a yard with one listener, on a port of its own, that syncs nothing.
func quick(t *testing.T) Config {
	return Config{
		DataDir: filepath.Join(t.TempDir(), "data"), Sync: "os", Log: slog.New(slog.DiscardHandler),
		HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off,
	}
}

// onEngine has what a yard would have in its folder on the engine that the environment asks for.
func onEngine(t *testing.T, cfg Config) Config {
	t.Helper()
	if cfg.Engine != "" || cfg.share != nil {
		return cfg
	}
	engine, key := testengine.Yard(t, cfg.DataDir)
	if cfg.Engine = engine; engine != "" && cfg.Secrets == (Secrets{}) {
		cfg.Secrets.Key = key
	}
	return cfg
}

// running is a yard under test.
type running struct {
	*Server
	t     *testing.T
	url   string
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	s, err := New(onEngine(t, cfg))
	testkit.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-s.ended // its folder is removed next
		http.DefaultClient.CloseIdleConnections()
		<-s.ended // or it would write into a folder that is being removed
	})
	select {
	case <-s.Started():
		r.url = s.Addresses()["http"]
	case err := <-r.ended:
		t.Fatalf("the yard did not start: %v", err)
	}
	return r
}

func (r *running) shutdown() {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Errorf("stopped with %v", err)
	}
}

func (r *running) do(method, path, body string) (status int, answer string) {
	r.t.Helper()
	response, err := http.DefaultClient.Do(r.request(method, path, strings.NewReader(body)))
	testkit.Must(r.t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	testkit.Must(r.t, err)
	return response.StatusCode, string(all)
}

// request is one of somebody who knows the key that everybody knows.
func (r *running) request(method, path string, body io.Reader) *http.Request {
	request, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		panic(err) // the URL is our own
	}
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	return request
}

func (r *running) want(status int, method, path, body string) string {
	r.t.Helper()
	got, answer := r.do(method, path, body)
	testkit.MustEqual(r.t, got, status, "%s %s answers: %s", method, path, answer)
	return answer
}

// H2, H3, H4: the whole way, and over a restart.
func TestEventsAreStillThereAfterARestart(t *testing.T) {
	cfg := quick(t)
	cfg.Sync = "always"
	first := start(t, cfg)
	first.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	first.want(201, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"one"},{"body":"two"}],"partition":"1"}`)
	first.shutdown()

	second := start(t, cfg)
	answer := second.want(200, "GET", "/api/v1/hubs/orders/partitions/1/events", "")
	if !strings.Contains(answer, `"one"`) || !strings.Contains(answer, `"two"`) {
		t.Errorf("read %s", answer)
	}
	second.shutdown()
}

func TestConfiguredHubsExist(t *testing.T) {
	cfg := quick(t)
	cfg.Hubs = []Hub{
		{Name: "orders", Partitions: 3, Retention: &Retention{Age: new(time.Hour), Bytes: new(int64(1 << 20))}, Groups: []string{"billing", "$default"}},
		{Name: "plain"},
	}
	for range 2 { // the second start finds them there
		r := start(t, cfg)
		var hub struct {
			Partitions int
			Retention  struct{ Age string }
			Groups     []string
		}
		testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/hubs/orders", "")), &hub))
		if hub.Partitions != 3 || hub.Retention.Age != "1h" || len(hub.Groups) != 2 {
			t.Errorf("hub is %+v", hub)
		}
		r.want(200, "GET", "/api/v1/hubs/plain", "")
		r.shutdown()
	}
	cfg.Hubs[0].Partitions = 4
	s, err := New(onEngine(t, cfg))
	testkit.Must(t, err)
	if err := s.Run(t.Context()); !errors.Is(err, broker.ErrPartitionsFixed) || !strings.Contains(err.Error(), "orders") {
		t.Errorf("another number of partitions: %v", err)
	}
}

func TestWhatAServerDoesNotTake(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"an outside address":  {Config{HTTP: "0.0.0.0:8080"}, "use https, or set allowPlaintext"},
		"plain AMQP outside":  {Config{AMQP: ":5672"}, "use amqps, or set allowPlaintext"},
		"any token outside":   {Config{AMQPS: ":5671", AcceptAnyJWT: true}, "for development only"},
		"no address":          {Config{HTTP: "8080"}, "is no address"},
		"half a certificate":  {Config{TLS: TLS{CertFile: "a.pem"}}, "tls.keyFile"},
		"no audience":         {Config{OIDC: OIDC{Issuer: "https://a"}}, "oidc.audience"},
		"a short time-out":    {Config{AMQPIdleTimeout: time.Second}, "not between 5s and 1h"},
		"a policy's rights":   {Config{Policies: []Policy{{Name: "p"}}}, "policies[0].rights"},
		"a sync mode":         {Config{Sync: "never"}, "never"},
		"a hub's name":        {Config{Hubs: []Hub{{Name: "a b"}}}, `hub "a b"`},
		"a reserved hub":      {Config{Hubs: []Hub{{Name: "Metrics/x"}}}, `"metrics" is a path`},
		"too many partitions": {Config{Hubs: []Hub{{Name: "a", Partitions: 1025}}}, "1025 partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
	testkit.Check(t, testkit.Err(New(Config{})), "the zero configuration")
}

func TestAServerRunsOnce(t *testing.T) {
	r := start(t, quick(t))
	testkit.ErrorIs(t, r.Run(t.Context()), ErrUsed)
	r.shutdown()
}

func TestAllListenersMayBeOff(t *testing.T) {
	cfg := quick(t)
	cfg.HTTP = Off
	r := start(t, cfg)
	testkit.Equal(t, len(r.Addresses()), 0, "addresses: %v", r.Addresses())
	r.shutdown()
}

func TestInfoShowsTheListeners(t *testing.T) {
	cfg := quick(t)
	cfg.Version, cfg.Namespace = "1.2.3", "ours"
	r := start(t, cfg)
	info := r.want(200, "GET", "/api/v1", "")
	for _, want := range []string{`"1.2.3"`, `"ours"`, r.url} {
		if !strings.Contains(info, want) {
			t.Errorf("%s lacks %s", info, want)
		}
	}
	if metrics := r.want(200, "GET", "/metrics", ""); !strings.Contains(metrics, "go_goroutines") || !strings.Contains(metrics, "eventyard_") {
		t.Error("metrics of the process or of the yard are missing")
	}
	r.shutdown()
}

// A tail ends with a word when the yard stops, a long poll with an empty page; neither holds it up.
func TestStoppingEndsTailsAndLongPolls(t *testing.T) {
	cfg := quick(t)
	cfg.Grace = time.Hour
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"h","partitions":1}`)
	response, err := http.DefaultClient.Do(r.request("GET", "/api/v1/hubs/h/events?follow=true", nil))
	testkit.Must(t, err)
	defer response.Body.Close()
	polled := longPoll(r)
	waitForCall("v1.(*page).fill")
	r.shutdown()
	rest, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(rest), `"reason":"stopping"`) {
		t.Errorf("the tail ended with %q, %v", rest, err)
	}
	if answer := <-polled; answer != "200 {\"events\":[],\"next\":0}\n" {
		t.Errorf("the long poll ended with %q", answer)
	}
}

// longPoll waits for an event that never comes, and gives what it was answered.
func longPoll(r *running) <-chan string {
	answer := make(chan string, 1)
	go func() {
		response, err := http.DefaultClient.Do(r.request("GET", "/api/v1/hubs/h/partitions/0/events?wait=60s", nil))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		answer <- fmt.Sprintf("%d %s", response.StatusCode, body)
	}()
	return answer
}

// waitForCall returns once some goroutine is inside the function. A poll that waits
// leaves no other trace from which to tell that it has arrived.
func waitForCall(function string) {
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function)) {
		runtime.Gosched()
	}
}

// A request that will not end is cut off after the grace period.
func TestStoppingCutsOffWhatWillNotEnd(t *testing.T) {
	cfg := quick(t)
	cfg.Grace = 20 * time.Millisecond
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"h","partitions":1}`)
	body, unfinished := io.Pipe()
	sending := postSlowly(t, r, body)
	testkit.Must(t, testkit.Err(io.WriteString(unfinished, `{"events":[`)))
	r.shutdown()
	unfinished.CloseWithError(io.ErrClosedPipe)
	if status := <-sending; status == http.StatusCreated {
		t.Error("half a request was taken")
	}
}

// A request under way when the yard is told to stop is answered.
func TestStoppingLetsRequestsFinish(t *testing.T) {
	cfg := quick(t)
	cfg.Grace = time.Hour
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"h","partitions":1}`)
	body, rest := io.Pipe()
	sending := postSlowly(t, r, body)
	testkit.Must(t, testkit.Err(io.WriteString(rest, `{"events":[`)))
	r.stop()
	waitForClosedListener(r)
	testkit.Must(t, testkit.Err(io.WriteString(rest, `{"body":"late"}]}`)))
	rest.Close()
	if got := <-sending; got != http.StatusCreated {
		t.Errorf("answered %d", got)
	}
	testkit.Check(t, <-r.ended)
}

// postSlowly sends events as they are written. It asks the yard first, so that the
// first write returns only once a handler wants the body.
func postSlowly(t *testing.T, r *running, body io.Reader) <-chan int {
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	t.Cleanup(client.CloseIdleConnections)
	request := r.request("POST", "/api/v1/hubs/h/events", body)
	request.Header.Set("Expect", "100-continue")
	status := make(chan int, 1)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			status <- 0
			return
		}
		response.Body.Close()
		status <- response.StatusCode
	}()
	return status
}

// waitForClosedListener returns once nobody is let in any more.
func waitForClosedListener(r *running) {
	for {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			return
		}
		c.Close()
	}
}

// Yards start, stop at any moment and start again on the same folder; none leaves a
// goroutine, a lock or a port behind.
func TestStormOfStartsAndStops(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 2}}
	cfg.Policies = []Policy{{Name: "p", Hub: "h", Rights: []string{"send"}}}
	for i := range 20 {
		s, err := New(onEngine(t, cfg))
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			testkit.Check(t, s.Run(ctx), "life %d", i)
		})
		if i%2 == 0 {
			<-s.Started()
			for _, url := range s.Addresses() { // clients that may come too late
				all.Go(func() { knock(url) })
			}
		}
		cancel()
		all.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
}

// knock is a client that says little and does not stay.
func knock(address string) {
	scheme, host, _ := strings.Cut(address, "://")
	if scheme == "http" {
		if response, err := http.Get(address + "/readyz"); err == nil {
			response.Body.Close()
		}
		return
	}
	c, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, saslHeader)
	_, _ = c.Read(make([]byte, 8))
}
