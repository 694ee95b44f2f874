package soak

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: clients who know their key are served while strangers do their worst, each kind of them from
// many addresses. Nothing that was acknowledged is missing. In the long run each kind of client
// keeps four fifths of its rate, and its 99th percentile within three times what it was. Calm and
// storm take turns, so that what else the machine does falls on both. So does a storm at another yard on
// the same machine: what that takes from clients is no fault of this one, and is told, not judged.
func TestGoodClientsBesideHostileOnes(t *testing.T) {
	rounds, calm, storm, attacks := 1, time.Second, 3*time.Second, 60
	if *wanted {
		rounds = 10
		calm, storm, attacks = *soakFor/time.Duration(6*rounds), *soakFor*4/time.Duration(6*rounds), 400
	}
	y := startProgram(t)
	status, err := y.request(http.DefaultClient, "POST", "/api/v1/hubs", `{"name":"orders","partitions":4}`)
	testkit.Must(t, err)
	testkit.MustEqual(t, status, http.StatusCreated, "status of a new hub")
	var other *program
	if *wanted {
		other = startProgram(t)
	}
	good := y.serveGoodClients(t)
	var before, during, beside spell
	begun := 0
	for range rounds {
		good.measure(t, calm, &before)
		crowd := y.attack(t, attacks)
		good.measure(t, storm, &during)
		said := crowd()
		t.Logf("attacks, by kind and how they ended:\n%s", said)
		begun += countAttacks(said)
		if *wanted {
			crowd := other.attack(t, attacks)
			good.measure(t, calm, &beside)
			crowd()
		}
	}
	good.stop()
	if most := int(storm.Seconds()) * attacks * rounds; *wanted && begun < most*3/4 {
		t.Errorf("%d attacks were begun, of %d: the hostile clients had too little of the processor to prove anything", begun, most)
	}

	acknowledged, read := good.total(), y.count(t)
	if read < acknowledged {
		t.Errorf("%d events were acknowledged and %d are there", acknowledged, read)
	}
	for i, kind := range goodKinds {
		b, d := before.figures(i), during.figures(i)
		t.Logf("%s: %v; beside hostile clients %v", kind.name, b, d)
		if !*wanted {
			continue
		}
		t.Logf("%s: beside hostile clients of another yard %v", kind.name, beside.figures(i))
		if d.rate < 0.8*b.rate || d.p99 > 3*b.p99 {
			t.Errorf("%s: below four fifths of its rate, or more than three times its p99", kind.name)
		}
	}
}

// program is the yard as a process of its own. Others can reach it, so that its console is not open.
type program struct{ http, https, amqp, amqps, connection, key string }

// build builds the program.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "eventyard")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/eventyard/eventyard/cmd/eventyard").CombinedOutput()
	testkit.Must(t, err, "%s", out)
	return binary
}

func startProgram(t *testing.T) *program {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	process := exec.Command(build(t), "serve", "--data", data, "--allow-plaintext",
		"--http", "0.0.0.0:0", "--amqp", "127.0.0.1:0", "--amqps", "127.0.0.1:0", "--https", "127.0.0.1:0", "--log-level", "error")
	process.Stderr = os.Stderr
	stdout := testkit.Value(process.StdoutPipe())(t)
	testkit.Must(t, process.Start())
	t.Cleanup(func() {
		testkit.Check(t, process.Process.Signal(os.Interrupt))
		testkit.Check(t, process.Wait(), "the yard stops")
	})
	y, lines := &program{}, bufio.NewScanner(stdout)
	for _, listener := range []struct {
		name string
		at   *string
	}{{"amqp", &y.amqp}, {"amqps", &y.amqps}, {"http", &y.http}, {"https", &y.https}} {
		for *listener.at == "" && lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == listener.name {
				_, *listener.at, _ = strings.Cut(strings.Replace(fields[1], "0.0.0.0", "127.0.0.1", 1), "://")
			}
		}
		testkit.MustEqual(t, *listener.at != "", true, "the yard opens its listener %s", listener.name)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	text := testkit.Value(os.ReadFile(filepath.Join(data, "connection-string")))(t)
	y.key = testkit.Value(auth.ParseConnectionString(strings.TrimSpace(string(text))))(t).Key
	y.connection = fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		y.amqp, auth.RootPolicy, y.key)
	return y
}

func (y *program) request(client *http.Client, method, path, body string) (status int, err error) {
	request, err := http.NewRequest(method, "http://"+y.http+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.SetBasicAuth(auth.RootPolicy, y.key)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// goodKinds are what clients do who know their key, once in each period.
var goodKinds = []struct {
	name   string
	period time.Duration
	open   func(ctx context.Context, y *program) (send func() error, end func(), err error)
}{
	{"AMQP, connected", 10 * time.Millisecond, func(ctx context.Context, y *program) (func() error, func(), error) {
		client, err := hub.Dial(ctx, y.connection, hub.Config{})
		if err != nil {
			return nil, nil, err
		}
		orders := client.Hub("orders")
		return func() error { return orders.Send(ctx, event.Event{Body: []byte("an order")}) }, func() { _ = client.Close() }, nil
	}},
	{"AMQP, a connection each time", 200 * time.Millisecond, func(ctx context.Context, y *program) (func() error, func(), error) {
		return func() error {
			client, err := hub.Dial(ctx, y.connection, hub.Config{})
			if err != nil {
				return err
			}
			defer client.Close()
			return client.Hub("orders").Send(ctx, event.Event{Body: []byte("an order")})
		}, func() {}, nil
	}},
	{"HTTP, connected", 10 * time.Millisecond, func(_ context.Context, y *program) (func() error, func(), error) {
		client := &http.Client{Transport: &http.Transport{}}
		return func() error { return y.publish(client) }, client.CloseIdleConnections, nil
	}},
	{"HTTP, a connection each time", 200 * time.Millisecond, func(_ context.Context, y *program) (func() error, func(), error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return func() error { return y.publish(client) }, func() {}, nil
	}},
}

func (y *program) publish(client *http.Client) error {
	status, err := y.request(client, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"an order"}]}`)
	if err == nil && status != http.StatusCreated && status != http.StatusOK && status != http.StatusAccepted {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// goodClients are one of each kind.
type goodClients struct {
	stop func()

	mu    sync.Mutex
	took  [][]time.Duration // by kind, since the last measurement; guarded by mu
	acked int               // guarded by mu
}

func (y *program) serveGoodClients(t *testing.T) *goodClients {
	t.Helper()
	g := &goodClients{took: make([][]time.Duration, len(goodKinds))}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	g.stop = func() { cancel(); all.Wait() }
	t.Cleanup(g.stop)
	for i, kind := range goodKinds {
		send, end, err := kind.open(t.Context(), y)
		testkit.Must(t, err, "%s", kind.name)
		all.Go(func() {
			defer end()
			ticks := time.NewTicker(kind.period)
			defer ticks.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticks.C:
				}
				began := time.Now()
				if err := send(); err != nil {
					t.Logf("%s: %v", kind.name, err)
					continue
				}
				g.mu.Lock()
				g.took[i] = append(g.took[i], time.Since(began))
				g.acked++
				g.mu.Unlock()
			}
		})
	}
	return g
}

func (g *goodClients) total() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.acked
}

// served: each kind has been, since the last measurement.
func (g *goodClients) served() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !slices.ContainsFunc(g.took, func(took []time.Duration) bool { return len(took) == 0 })
}

// figures are of one kind of clients in a period.
type figures struct {
	rate float64
	p99  time.Duration
}

func (f figures) String() string { return fmt.Sprintf("%.1f a second, p99 %v", f.rate, f.p99) }

// spell is what was measured in all periods of one kind.
type spell struct {
	took [][]time.Duration // by kind of client
	time time.Duration
}

func (s *spell) figures(kind int) figures {
	took := slices.Sorted(slices.Values(s.took[kind]))
	return figures{rate: float64(len(took)) / s.time.Seconds(), p99: took[len(took)*99/100]}
}

// measure adds how the clients fare in a period, in which each kind is served at least once.
func (g *goodClients) measure(t *testing.T, period time.Duration, to *spell) {
	g.mu.Lock()
	g.took = make([][]time.Duration, len(goodKinds))
	g.mu.Unlock()
	began := time.Now()
	<-time.After(period)
	testkit.Eventually(t, "each kind of client is served", g.served)
	g.mu.Lock()
	defer g.mu.Unlock()
	to.time += time.Since(began)
	if to.took == nil {
		to.took = make([][]time.Duration, len(goodKinds))
	}
	for i, took := range g.took {
		to.took[i] = append(to.took[i], took...)
	}
}

// count is how many events the hub has taken.
func (y *program) count(t *testing.T) (n int) {
	t.Helper()
	client := testkit.Value(hub.Dial(t.Context(), y.connection, hub.Config{}))(t)
	defer client.Close()
	for id := range 4 {
		info := testkit.Value(client.Hub("orders").Partition(t.Context(), fmt.Sprint(id)))(t)
		n += int(info.Last + 1)
	}
	return n
}

// attack runs hostile clients in a process of their own, so many attacks a second; the function
// that it gives ends them and says how they fared. Hostile clients have machines of their own: here
// they get a tenth of the share of the processor that the yard and its good clients have.
func (y *program) attack(t *testing.T, aSecond int) (end func() string) {
	t.Helper()
	process := exec.Command("nice", "-n", strconv.Itoa(lessShare), os.Args[0])
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s %s %s", attackVariable, aSecond, y.amqp, y.amqps, y.http, y.https))
	process.Stderr = os.Stderr
	stdin := testkit.Value(process.StdinPipe())(t)
	stdout := testkit.Value(process.StdoutPipe())(t)
	testkit.Must(t, process.Start())
	// Where the kernel divides by session first, nice only counts within one.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", process.Process.Pid), []byte(strconv.Itoa(min(ownShare()+lessShare, 19))), 0)
	return sync.OnceValue(func() string {
		testkit.Must(t, stdin.Close())
		said := testkit.Value(io.ReadAll(stdout))(t)
		testkit.Must(t, process.Wait(), "the attackers")
		return string(said)
	})
}

// lessShare is how much nicer hostile clients are: each step is a quarter more for the others.
const lessShare = 10

// ownShare is how nice this session is to others.
func ownShare() (nice int) {
	said, _ := os.ReadFile("/proc/self/autogroup") // where there is none it is 0
	_, _ = fmt.Sscanf(string(said[bytes.LastIndexByte(said, ' ')+1:]), "%d", &nice)
	return nice
}

// countAttacks is how many were begun, by what the attackers say: lines that end in a number.
func countAttacks(said string) (n int) {
	for line := range strings.Lines(said) {
		kind, number, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if i := strings.LastIndex(number, ": "); kind != "none" && i >= 0 {
			one, _ := strconv.Atoi(number[i+2:])
			n += one
		}
	}
	return n
}
