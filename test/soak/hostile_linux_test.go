package soak

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
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
	"github.com/eventyard/eventyard/test/parts"
)

// R2: clients who know their key are served while strangers do their worst, each kind of them from
// many addresses, and thieves with a key that may listen do theirs. Nothing that was acknowledged is missing. Each kind
// of client has half of what it sends acknowledged at least, however slow this machine is. In the long run each kind of client keeps four fifths of its rate, and its 99th percentile within three times what it was.
// Hostile clients have machines of their own, but not here. So that percentile is compared with what it is while they
// attack another yard on this machine, where they and that yard only get what others leave of the
// processor: all that differs is whom they attack. Times of each kind take turns, so that what else the
// machine does falls on all of them.
func TestGoodClientsBesideHostileOnes(t *testing.T) {
	rounds, calmTime, stormTime, attacks := 1, time.Second, 3*time.Second, 60
	if *wanted {
		rounds = 10
		calmTime, stormTime, attacks = *soakFor/time.Duration(6*rounds), *soakFor*4/time.Duration(6*rounds), 400
	}
	binary, site := build(t), siteOfAttackers(t)
	y := startProgram(t, binary, site, "env")
	var other *program
	if *wanted {
		other = startProgram(t, binary, site, atLeisure...)
	}
	good := y.serveGoodClients(t)
	var calm, during, beside spell
	begun := 0
	for range rounds {
		good.measure(t, calmTime, &calm)
		crowd := y.attack(t, site, attacks)
		good.measure(t, stormTime, &during)
		said := crowd()
		t.Logf("attacks, by kind and how they ended:\n%s", said)
		begun += countAttacks(said)
		if *wanted {
			crowd := other.attack(t, site, attacks)
			good.measure(t, calmTime, &beside)
			crowd()
		}
	}
	good.stop()
	resident := mostResidentSize(t, y.pid)
	t.Logf("resident at most: %d MiB", resident)
	testkit.That(t, resident < mostResident, "%d MiB resident at most, want less than %d", resident, mostResident)
	if most := int(stormTime.Seconds()) * attacks * rounds; *wanted && begun < most*3/4 {
		t.Errorf("%d attacks were begun, of %d: the hostile clients had too little of the processor to prove anything", begun, most)
	}

	acknowledged, read := good.total(), y.count(t)
	if read < acknowledged {
		t.Errorf("%d events were acknowledged and %d are there", acknowledged, read)
	}
	for i, kind := range goodKinds {
		calm, during := calm.figures(i), during.figures(i)
		t.Logf("%s: %v; beside hostile clients %v, %s", kind.name, calm, during, during.than(calm))
		testkit.That(t, during.due > 0 && 2*during.failed <= during.due,
			"%s: of %d that were due beside hostile clients %d failed", kind.name, during.due, during.failed)
		if !*wanted {
			continue
		}
		beside := beside.figures(i)
		t.Logf("%s: beside hostile clients of another yard %v, which is exceeded %s", kind.name, beside, during.than(beside))
		if during.rate < 0.8*calm.rate || during.p99 > 3*beside.p99 {
			t.Errorf("%s: below four fifths of its rate, or more than three times its p99", kind.name)
		}
	}
}

// program is the yard as a process of its own. Others can reach it, so that its console is not open.
type program struct {
	http, https, amqp, amqps, kafka, kafkas, connection, key string
	trust                                                    *x509.CertPool
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

// startProgram starts a yard that others can reach, with what good clients and thieves use.
func startProgram(t *testing.T, binary string, site site, by ...string) *program {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	at := site.yard + ":0"
	process := exec.Command(by[0], append(by[1:], binary, "serve", "--data", data, "--allow-plaintext", "--host", site.yard,
		"--http", "0.0.0.0:0", "--amqp", at, "--amqps", at, "--https", at, "--kafka", at, "--kafkas", at, "--log-level", "error")...)
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
				_, port, err := net.SplitHostPort(fields[1][strings.Index(fields[1], "://")+3:])
				testkit.Must(t, err, "%s", fields[1])
				*listener.at = net.JoinHostPort(site.yard, port)
			}
		}
		testkit.MustEqual(t, *listener.at != "", true, "the yard opens its listener %s", listener.name)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	text := testkit.Value(os.ReadFile(filepath.Join(data, "connection-string")))(t)
	y.key = testkit.Value(auth.ParseConnectionString(strings.TrimSpace(string(text))))(t).Key
	y.connection = fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		y.amqp, auth.RootPolicy, y.key)
	y.trust = x509.NewCertPool()
	testkit.MustEqual(t, y.trust.AppendCertsFromPEM(testkit.Value(os.ReadFile(filepath.Join(data, "tls", "ca.pem")))(t)), true, "the yard has an authority")
	y.furnish(t)
	return y
}

// furnish makes what clients use: a hub of those who are good, one of many partitions for thieves to read, and
// their policy.
func (y *program) furnish(t *testing.T) {
	t.Helper()
	want := func(path, body string) {
		status, err := y.request(http.DefaultClient, "POST", path, body)
		testkit.Must(t, err)
		testkit.MustEqual(t, status, http.StatusCreated, "POST %s", path)
	}
	want("/api/v1/hubs", `{"name":"orders","partitions":4}`)
	want("/api/v1/hubs", fmt.Sprintf(`{"name":"archive","partitions":%d}`, partitionsOfHub))
	batch := `{"events":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"body":"%s"},`, strings.Repeat("x", 1000)), 64), ",") + `]}`
	for range 16 { // each to the partition that is next in turn
		want("/api/v1/hubs/archive/events", batch)
	}
	want("/api/v1/policies", fmt.Sprintf(`{"name":"%s","rights":["Listen"],"primaryKey":"%s"}`, stolenPolicy, stolenKey))
}

func (y *program) request(client *http.Client, method, path, body string) (status int, err error) {
	return y.requestAt(client, method, "http://"+y.http+path, body)
}

func (y *program) requestAt(client *http.Client, method, url, body string) (status int, err error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
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
		return func() error { return y.publish(client, "http://"+y.http) }, client.CloseIdleConnections, nil
	}},
	{"HTTP, a connection each time", 200 * time.Millisecond, func(_ context.Context, y *program) (func() error, func(), error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return func() error { return y.publish(client, "http://"+y.http) }, func() {}, nil
	}},
	{"HTTPS, a connection each time", 200 * time.Millisecond, func(_ context.Context, y *program) (func() error, func(), error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: y.trust}}}
		return func() error { return y.publish(client, "https://"+y.https) }, func() {}, nil
	}},
	{"Kafka, connected", 10 * time.Millisecond, func(ctx context.Context, y *program) (func() error, func(), error) {
		client, err := y.produceTo(y.kafka)
		if err != nil {
			return nil, nil, err
		}
		return func() error { return produce(ctx, client) }, client.Close, nil
	}},
	{"Kafka with TLS, a connection each time", 500 * time.Millisecond, func(ctx context.Context, y *program) (func() error, func(), error) {
		return func() error {
			client, err := y.produceTo(y.kafkas, kgo.DialTLSConfig(&tls.Config{RootCAs: y.trust}))
			if err != nil {
				return err
			}
			defer client.Close()
			return produce(ctx, client)
		}, func() {}, nil
	}},
}

func (y *program) produceTo(address string, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(address), kgo.DefaultProduceTopic("orders"), kgo.ProducerLinger(0),
		kgo.SASL(plain.Auth{User: auth.RootPolicy, Pass: y.key}.AsMechanism()))...)
}

func produce(ctx context.Context, client *kgo.Client) error {
	return client.ProduceSync(ctx, &kgo.Record{Value: []byte("an order")}).FirstErr()
}

func (y *program) publish(client *http.Client, at string) error {
	status, err := y.requestAt(client, "POST", at+"/api/v1/hubs/orders/events", `{"events":[{"body":"an order"}]}`)
	if err == nil && status != http.StatusCreated && status != http.StatusOK && status != http.StatusAccepted {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// goodClients are one of each kind.
type goodClients struct {
	stop func()

	mu    sync.Mutex
	sent  [][]sending // by kind, since the last measurement; guarded by mu
	next  []time.Time // by kind: when the next is due that has not been sent; guarded by mu
	acked int         // guarded by mu
}

// sending is one of a good client. It takes the time from when it was due: what waits behind a slow one is slow, too.
type sending struct {
	due    time.Time
	took   time.Duration
	failed bool
}

func (y *program) serveGoodClients(t *testing.T) *goodClients {
	t.Helper()
	g := &goodClients{sent: make([][]sending, len(goodKinds)), next: make([]time.Time, len(goodKinds))}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	g.stop = func() { cancel(); all.Wait() }
	t.Cleanup(g.stop)
	for i, kind := range goodKinds {
		send, end, err := kind.open(t.Context(), y)
		testkit.Must(t, err, "%s", kind.name)
		first, period := time.Now(), kind.period
		if !*wanted { // no machine is too slow for that
			period = max(period, 50*time.Millisecond)
		}
		g.next[i] = first
		all.Go(func() {
			defer end()
			for due := first; sleepUntil(ctx, due); due = due.Add(period) {
				err := send()
				g.note(i, sending{due: due, took: time.Since(due), failed: err != nil}, due.Add(period))
				if err != nil {
					t.Logf("%s: %v", kind.name, err)
				}
			}
		})
	}
	return g
}

// sleepUntil waits for a time that may have passed, and tells whether the context goes on.
func sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(at)):
		return ctx.Err() == nil
	}
}

func (g *goodClients) note(kind int, s sending, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent[kind] = append(g.sent[kind], s)
	g.next[kind] = next
	if !s.failed {
		g.acked++
	}
}

func (g *goodClients) total() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.acked
}

// sentUntil: each kind has sent all that was due before a time.
func (g *goodClients) sentUntil(end time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !slices.ContainsFunc(g.next, func(next time.Time) bool { return next.Before(end) })
}

// figures are of one kind of clients in a period.
type figures struct {
	rate        float64 // of what was acknowledged in time
	due, failed int
	p50, p99    time.Duration
}

func (f figures) String() string {
	text := fmt.Sprintf("%.1f a second, p50 %v, p99 %v", f.rate, f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond))
	if f.failed > 0 {
		text += fmt.Sprintf(", %d failed", f.failed)
	}
	return text
}

// than compares the slowest with those of another period.
func (f figures) than(other figures) string {
	return fmt.Sprintf("%.1f times in p99", f.p99.Seconds()/other.p99.Seconds())
}

// spell is what was measured in all periods of one kind.
type spell struct {
	took          [][]time.Duration // by kind of client; what failed took the whole period at least
	inTime, wrong []int             // by kind: what was acknowledged before its period was over, and what failed
	time          time.Duration
}

func (s *spell) figures(kind int) figures {
	f := figures{rate: float64(s.inTime[kind]) / s.time.Seconds(), due: len(s.took[kind]), failed: s.wrong[kind]}
	if took := slices.Sorted(slices.Values(s.took[kind])); f.due > 0 {
		f.p50, f.p99 = took[f.due/2], took[f.due*99/100]
	}
	return f
}

// measure adds how the clients fare with what is due in a period. It waits for the answers to all of that.
func (g *goodClients) measure(t *testing.T, period time.Duration, to *spell) {
	g.mu.Lock()
	g.sent = make([][]sending, len(goodKinds))
	g.mu.Unlock()
	began := time.Now()
	<-time.After(period)
	end := time.Now()
	testkit.Eventually(t, "each kind of client sends what was due", func() bool { return g.sentUntil(end) })
	g.mu.Lock()
	defer g.mu.Unlock()
	to.add(g.sent, began, end)
}

// add adds what was due in a period, and what was acknowledged before that was over to the rate.
func (s *spell) add(sent [][]sending, began, end time.Time) {
	s.time += end.Sub(began)
	if s.took == nil {
		s.took, s.inTime, s.wrong = make([][]time.Duration, len(sent)), make([]int, len(sent)), make([]int, len(sent))
	}
	for i, sent := range sent {
		for _, one := range sent {
			if one.due.Before(began) || !one.due.Before(end) {
				continue
			}
			if one.failed {
				one.took = max(one.took, end.Sub(began)) // whoever is refused at once was not served any sooner
			}
			s.took[i] = append(s.took[i], one.took)
			switch {
			case one.failed:
				s.wrong[i]++
			case !one.due.Add(one.took).After(end):
				s.inTime[i]++
			}
		}
	}
}

// R2: what failed counts among the slowest, however fast it did, what waited for its turn has waited, and what is due in another period
// counts there.
func TestFiguresOfGoodClients(t *testing.T) {
	began := time.Now()
	end := began.Add(10 * time.Second)
	at := func(due, took time.Duration, failed bool) sending { return sending{began.Add(due), took, failed} }
	sent := []sending{at(-time.Second, time.Hour, false), at(11*time.Second, time.Hour, false)} // of others
	for i := range 96 {
		sent = append(sent, at(time.Duration(i)*time.Millisecond, time.Millisecond, false))
	}
	sent = append(sent, at(time.Second, time.Millisecond, true), at(time.Second, 5*time.Second, false),
		at(9*time.Second, 2*time.Second, false), at(0, 7*time.Second, true))
	var s spell
	s.add([][]sending{sent}, began, end)
	testkit.Equal(t, s.figures(0), figures{rate: 9.7, due: 100, failed: 2, p50: time.Millisecond, p99: 10 * time.Second}, "two failed, one of them at once")
	testkit.Equal(t, (&spell{took: make([][]time.Duration, 1), inTime: []int{0}, wrong: []int{0}, time: time.Second}).figures(0), figures{})
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

// site is where a yard is and from where hostile clients come: all addresses of a network by their last byte. Who
// comes from loopback has the turns of clients at handshakes of TLS, so that strangers come from elsewhere.
type site struct {
	yard, crowd string   // an address, and one without its last byte
	by          []string // what runs a program there
}

// siteOfAttackers is a host of its own, or loopback where this machine refuses that.
func siteOfAttackers(t *testing.T) site {
	t.Helper()
	network := parts.AnyNetwork(t, 1)
	if network == nil || network.Loopback() {
		t.Log("hostile clients come from loopback: their handshakes of TLS have the same turns as those of good clients")
		return site{yard: "127.0.0.1", crowd: "127.0.1."}
	}
	host := network.Host(0)
	p := site{yard: network.Address, crowd: host.Address[:strings.LastIndex(host.Address, ".")+1], by: host.Args()}
	var commands strings.Builder
	for i := range addresses + thieves {
		fmt.Fprintf(&commands, "addr add %s%d/24 dev net0\n", p.crowd, firstAddress+i)
	}
	args := host.Args("ip", "-batch", "-")
	add := exec.Command(args[0], args[1:]...)
	add.Stdin = strings.NewReader(commands.String())
	out, err := add.CombinedOutput()
	testkit.Must(t, err, "%s", out)
	return p
}

// attack runs hostile clients in a process of their own, so many attacks a second; the function
// that it gives ends them and says how they fared. Hostile clients have machines of their own: here
// they get what the yard and its good clients leave of the processor.
func (y *program) attack(t *testing.T, site site, aSecond int) (end func() string) {
	t.Helper()
	args := slices.Concat(atLeisure, site.by, []string{os.Args[0]})
	process := exec.Command(args[0], args[1:]...)
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s %s %s %s %s %s", attackVariable, aSecond, site.crowd, y.amqp, y.amqps, y.http, y.https, y.kafka, y.kafkas))
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

// countAttacks is how many were begun, by what the attackers say: lines that end in a number. Without a connection
// there was none.
func countAttacks(said string) (n int) {
	for line := range strings.Lines(said) {
		kind, number, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if i := strings.LastIndex(number, ": "); kind != "none" && i >= 0 && number[:i] != noConnection {
			one, _ := strconv.Atoi(number[i+2:])
			n += one
		}
	}
	return n
}
