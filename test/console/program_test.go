package console

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// program is a yard, or a node of one, as a process of its own: it can be killed, and its cost measured.
type program struct {
	*parts.Program
	base       string // URL of its HTTP listener
	connection string // connection string
}

// startProgram runs a program until it has said something, and has it end with the test.
func startProgram(t *testing.T, ready string, args ...string) *parts.Program {
	t.Helper()
	p := parts.NewProgram(testkit.Value(os.MkdirTemp("", "eventyard-console-"))(t), args...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(parts.Tail(p.Printed(), 10_000))
		}
		testkit.Check(t, p.Remove())
	})
	testkit.Must(t, p.Start(func(printed string) bool { return strings.Contains(printed, ready) }))
	return p
}

// serve runs `eventyard serve` on ports of loopback that are free.
func serve(t *testing.T, storage ...string) *program {
	t.Helper()
	args := append([]string{eventyard(t), "serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--https", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off"}, storage...)
	p := &program{Program: startProgram(t, serves, args...)}
	p.read(t)
	return p
}

// serves is what a yard prints when it does.
const serves = "Ctrl-C stops it."

// again starts a yard that was ended, on other ports.
func (p *program) again(t *testing.T) {
	t.Helper()
	testkit.Must(t, p.Start(func(printed string) bool { return strings.Contains(printed, serves) }))
	p.read(t)
}

// read reads where it listens.
func (p *program) read(t *testing.T) {
	t.Helper()
	printed := p.Printed()
	p.base, p.connection = found(t, printed, httpLine), found(t, printed, connectionLine)
}

var (
	httpLine       = regexp.MustCompile(`(?m)^  http +(\S+)$`)
	connectionLine = regexp.MustCompile(`(?m)^  (Endpoint=\S+)$`)
)

// found is what an expression has in its parentheses.
func found(t *testing.T, in string, expression *regexp.Regexp) string {
	t.Helper()
	m := expression.FindStringSubmatch(in)
	testkit.MustThat(t, m != nil, "there is no %s in %s", expression, in)
	return m[1]
}

// admin is a client with all rights.
func (p *program) admin(t *testing.T) *admin.Client {
	t.Helper()
	client := testkit.Value(admin.New(admin.Config{Server: p.base, ConnectionString: p.connection}))(t)
	t.Cleanup(client.Close)
	return client
}

var processorLine = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// used is how much of a processor's time the process has taken since it began, by its own word.
func (p *program) used(t *testing.T) time.Duration {
	t.Helper()
	request := testkit.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+"/metrics", nil))(t)
	request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
	answer := testkit.Value(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	text := testkit.Value(io.ReadAll(answer.Body))(t)
	seconds := testkit.Value(strconv.ParseFloat(found(t, string(text), processorLine), 64))(t)
	return time.Duration(seconds * float64(time.Second))
}
