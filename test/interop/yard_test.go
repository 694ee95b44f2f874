//go:build linux

package interop

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const (
	rootPolicy = "RootManageSharedAccessKey"
	rootKey    = "SAS_KEY_VALUE" // good on loopback, as with the official emulator
)

// readyEnd is the last line that a yard prints before it waits for clients.
const readyEnd = "Ctrl-C stops it."

// Policies that every yard of this suite has, beside the root policy.
var policies = map[string]string{"sender": "send", "listener": "listen", "worker": "send, listen", "manager": "manage"}

// keyOf is the key of one of the policies.
func keyOf(policy string) string {
	if policy == rootPolicy {
		return rootKey
	}
	return "interop-key-of-" + policy + "-0123456789"
}

// layout is what a yard is started with.
type layout struct {
	// hubs by name, with their numbers of partitions. Each has the group "readers".
	hubs map[string]int
	// settings are further lines of the configuration file.
	settings []string
	// address to listen at in the namespace; namespaceAddress if empty.
	address string
	// host is the yard's name in the namespace; namespaceHost if empty.
	host string
	// build is checkedBuild if nil.
	build *build
	// kafka opens the listeners for Kafka clients, too.
	kafka bool
	// outside has a listener that others can reach, so that everybody has to show a key of the yard's own.
	outside bool
}

// yard is a running program with all its listeners open: on free ports of 127.0.0.1, or
// with Azure's ports on namespaceAddress when this is the namespace. It may be one of several nodes; see
// startNodes.
type yard struct {
	*process
	addresses map[string]string // by listener, as it printed them; a balancer's if there are several nodes
	data      string            // empty if there are several nodes
	ca        string            // file of the yard's own certificate authority
	behind    []*yard           // the nodes behind the balancer; none if there is one node only
}

func startYard(t *testing.T, l layout) *yard {
	t.Helper()
	if l.build == nil {
		l.build = checkedBuild
	}
	if wantsNodes() {
		return startNodes(t, l)
	}
	data := t.TempDir()
	y := l.run(t, "data: "+data, l.listeners())
	y.data, y.ca = data, filepath.Join(data, "tls", "ca.pem")
	y.await(t)
	return y
}

// listeners are those that clients know, and where.
func (l layout) listeners() map[string]string {
	if inside() {
		at := cmp.Or(l.address, namespaceAddress)
		return map[string]string{"amqp": at + ":5672", "amqps": at + ":5671", "http": at + ":80", "https": at + ":443"}
	}
	all := map[string]string{"amqp": "127.0.0.1:0", "amqps": "127.0.0.1:0", "http": "127.0.0.1:0", "https": "127.0.0.1:0"}
	if l.kafka {
		all["kafka"], all["kafkas"] = "127.0.0.1:0", "127.0.0.1:0"
	}
	if l.outside {
		all["https"] = "0.0.0.0:0"
	}
	return all
}

// run starts the program, which await waits for, and stops it with the test.
func (l layout) run(t *testing.T, storage string, listeners map[string]string) *yard {
	t.Helper()
	y := l.launch(t, storage, listeners)
	t.Cleanup(func() { y.stop(t) })
	return y
}

// launch starts the program, for who kills it.
func (l layout) launch(t *testing.T, storage string, listeners map[string]string) *yard {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eventyard.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(l.config(storage, listeners)), 0o600))
	return &yard{process: launch(t, exec.Command(l.build.binary(t), "serve", "--config", file)), addresses: map[string]string{}}
}

// await waits until the yard serves, and reads where its listeners are.
func (y *yard) await(t *testing.T) {
	t.Helper()
	if !y.out.await(func(text string) bool { return strings.Contains(text, readyEnd) }) {
		t.Fatalf("the yard did not start:\n%s", y.out)
	}
	for line := range strings.Lines(y.out.String()) {
		if fields := strings.Fields(line); len(fields) == 2 && strings.HasPrefix(line, "  ") {
			y.addresses[fields[0]] = fields[1]
		}
	}
}

// config is the file that the program reads, with the lines that say where it stores.
func (l layout) config(storage string, listeners map[string]string) string {
	lines := append([]string{storage, "log: {level: info}"}, l.settings...)
	for listener, address := range listeners {
		lines = append(lines, fmt.Sprintf("%s: %q", listener, address))
	}
	if !l.kafka {
		lines = append(lines, "kafka: off", "kafkas: off") // yards that run beside each other cannot share the usual ports
	}
	if inside() {
		lines = append(lines, "host: "+cmp.Or(l.host, namespaceHost))
	}
	lines = append(lines, "hubs:")
	for hub, partitions := range l.hubs {
		lines = append(lines, fmt.Sprintf("  - {name: %s, partitions: %d, groups: [readers]}", hub, partitions))
	}
	lines = append(lines, "policies:")
	for name, right := range policies {
		lines = append(lines, fmt.Sprintf("  - {name: %s, rights: [%s], primaryKey: %s}", name, right, keyOf(name)))
	}
	return strings.Join(lines, "\n") + "\n"
}

// stop ends the yard politely and looks at what it leaves behind.
func (y *yard) stop(t *testing.T) {
	y.cmd.Process.Signal(syscall.SIGTERM)
	err := y.finish(t, time.Minute)
	text := y.out.String()
	testkit.Check(t, err, "the yard's end")
	for _, sign := range []string{"DATA RACE", "panic:", "goroutine "} {
		if strings.Contains(text, sign) {
			t.Errorf("the yard's output has %q", sign)
		}
	}
	if t.Failed() {
		t.Logf("the yard said:\n%s", parts.Tail(text, 20_000))
	}
}

// hostPort is where a listener is.
func (y *yard) hostPort(t *testing.T, listener string) string {
	t.Helper()
	address := y.addresses[listener]
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		t.Fatalf("listener %s is at %q: %v\n%s", listener, y.addresses[listener], err, y.out)
	}
	return address
}

// connection is a connection string as an Event Hubs library takes it, for a hub or,
// with an empty name, for the whole namespace.
func connection(endpoint, policy, hub string, more ...string) string {
	parts := []string{"Endpoint=sb://" + endpoint, "SharedAccessKeyName=" + policy, "SharedAccessKey=" + keyOf(policy)}
	if hub != "" {
		parts = append(parts, "EntityPath="+hub)
	}
	return strings.Join(append(parts, more...), ";")
}

// authority is the file of the yard's own certificate authority.
func (y *yard) authority(t *testing.T) string {
	t.Helper()
	testkit.Must(t, testkit.Err(os.Stat(y.ca)))
	return y.ca
}
