package soak

import (
	"bufio"
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
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: clients who know their key are served while strangers do their worst, each kind of them from
// many addresses. Nothing that was acknowledged is missing. In the long run each kind of client
// keeps four fifths of its rate, and its 99th percentile within three times what it was. Hostile clients
// have machines of their own, but not here. So that percentile is compared with what it is while they
// attack another yard on this machine, where they and that yard only get what others leave of the
// processor: all that differs is whom they attack. Times of each kind take turns, so that what else the
// machine does falls on all of them.
func TestGoodClientsBesideHostileOnes(t *testing.T) {
	rounds, calmTime, stormTime, attacks := 1, time.Second, 3*time.Second, 60
	if *wanted {
		rounds = 10
		calmTime, stormTime, attacks = *soakFor/time.Duration(6*rounds), *soakFor*4/time.Duration(6*rounds), 400
	}
	y := startProgram(t, "env")
	status, err := y.request(http.DefaultClient, "POST", "/api/v1/hubs", `{"name":"orders","partitions":4}`)
	testkit.Must(t, err)
	testkit.MustEqual(t, status, http.StatusCreated, "status of a new hub")
	var other *program
	if *wanted {
		other = startProgram(t, atLeisure...)
	}
	good := y.serveGoodClients(t)
	var calm, during, beside spell
	begun, resident := 0, 0
	for range rounds {
		good.measure(t, calmTime, &calm)
		crowd := y.attack(t, attacks)
		good.measure(t, stormTime, &during)
		resident = max(resident, residentSize(t, y.pid))
		said := crowd()
		t.Logf("attacks, by kind and how they ended:\n%s", said)
		begun += countAttacks(said)
		if *wanted {
			crowd := other.attack(t, attacks)
			good.measure(t, calmTime, &beside)
			crowd()
		}
	}
	good.stop()
	t.Logf("resident beside hostile clients: %d MiB", resident)
	testkit.That(t, resident < mostResident, "%d MiB resident, want less than %d", resident, mostResident)
	if most := int(stormTime.Seconds()) * attacks * rounds; *wanted && begun < most*3/4 {
		t.Errorf("%d attacks were begun, of %d: the hostile clients had too little of the processor to prove anything", begun, most)
	}

	acknowledged, read := good.total(), y.count(t)
	if read < acknowledged {
		t.Errorf("%d events were acknowledged and %d are there", acknowledged, read)
	}
	for i, kind := range goodKinds {
		calm, during := calm.figures(i), during.figures(i)
		t.Logf("%s: %v; beside hostile clients %v", kind.name, calm, during)
		if !*wanted {
			continue
		}
		beside := beside.figures(i)
		t.Logf("%s: beside hostile clients of another yard %v", kind.name, beside)
		if during.rate < 0.8*calm.rate || during.p99 > 3*beside.p99 {
			t.Errorf("%s: below four fifths of its rate, or more than three times its p99", kind.name)
		}
	}
}

// program is the yard as a process of its own. Others can reach it, so that its console is not open.
type program struct {
	http, https, amqp, amqps, kafka, kafkas, connection, key string
	pid                                                      int
}

// mostResident is what a yard may have, in MiB, beside as many strangers as it lets in, who do their
// worst: each costs it up to a quarter of a MiB, and what is garbage as much again.
const mostResident = 640

// build builds the program.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "eventyard")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/eventyard/eventyard/cmd/eventyard").CombinedOutput()
	testkit.Must(t, err, "%s", out)
	return binary
}

func startProgram(t *testing.T, by ...string) *program {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	process := exec.Command(by[0], append(by[1:], build(t), "serve", "--data", data, "--allow-plaintext",
		"--http", "0.0.0.0:0", "--amqp", "127.0.0.1:0", "--amqps", "127.0.0.1:0", "--https", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--kafkas", "127.0.0.1:0", "--log-level", "error")...)
	process.Stderr = os.Stderr
	stdout := testkit.Value(process.StdoutPipe())(t)
	testkit.Must(t, process.Start())
	t.Cleanup(func() {
		testkit.Check(t, process.Process.Signal(os.Interrupt))
		testkit.Check(t, process.Wait(), "the yard stops")
	})
	y, lines := &program{pid: process.Process.Pid}, bufio.NewScanner(stdout)
	for _, listener := range []struct {
		name string
		at   *string
	}{{"amqp", &y.amqp}, {"amqps", &y.amqps}, {"http", &y.http}, {"https", &y.https}, {"kafka", &y.kafka}, {"kafkas", &y.kafkas}} {
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
	{"Kafka, connected", 10 * time.Millisecond, func(ctx context.Context, y *program) (func() error, func(), error) {
		client, err := kgo.NewClient(kgo.SeedBrokers(y.kafka), kgo.DefaultProduceTopic("orders"), kgo.ProducerLinger(0),
			kgo.SASL(plain.Auth{User: auth.RootPolicy, Pass: y.key}.AsMechanism()))
		if err != nil {
			return nil, nil, err
		}
		return func() error {
			return client.ProduceSync(ctx, &kgo.Record{Value: []byte("an order")}).FirstErr()
		}, client.Close, nil
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
	rate     float64
	p50, p99 time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("%.1f a second, p50 %v, p99 %v", f.rate, f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond))
}

// spell is what was measured in all periods of one kind.
type spell struct {
	took [][]time.Duration // by kind of client
	time time.Duration
}

func (s *spell) figures(kind int) figures {
	took := slices.Sorted(slices.Values(s.took[kind]))
	return figures{rate: float64(len(took)) / s.time.Seconds(), p50: took[len(took)/2], p99: took[len(took)*99/100]}
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
// they get what the yard and its good clients leave of the processor.
func (y *program) attack(t *testing.T, aSecond int) (end func() string) {
	t.Helper()
	process := exec.Command(atLeisure[0], append(atLeisure[1:], os.Args[0])...)
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s %s %s %s %s", attackVariable, aSecond, y.amqp, y.amqps, y.http, y.https, y.kafka, y.kafkas))
	process.Stderr = os.Stderr
	stdin := testkit.Value(process.StdinPipe())(t)
	stdout := testkit.Value(process.StdoutPipe())(t)
	testkit.Must(t, process.Start())
	return sync.OnceValue(func() string {
		testkit.Must(t, stdin.Close())
		said := testkit.Value(io.ReadAll(stdout))(t)
		testkit.Must(t, process.Wait(), "the attackers")
		return string(said)
	})
}

// atLeisure runs a program with what others leave of the processor.
var atLeisure = []string{"chrt", "--idle", "0"}

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
