//go:build linux

package interop

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// scriptTime bounds one script on a slow machine: three of them beside three nodes and three servers
// take minutes there.
const scriptTime = 8 * time.Minute

// access is what a script is told: where the yard is, as the owner of everything, as
// one who may only listen, and as one who may only send.
func (y *yard) access(t *testing.T, connect func(policy string) string) map[string]string {
	t.Helper()
	return map[string]string{
		"YARD_CONNECTION": connect(rootPolicy), "YARD_LISTENER": connect("listener"), "YARD_SENDER": connect("sender"),
	}
}

// onPlain is access without TLS; a WebSocket's listener is the one for HTTP.
func (y *yard) onPlain(t *testing.T, listener, hub string) map[string]string {
	t.Helper()
	env := y.access(t, func(policy string) string {
		return connection(y.hostPort(t, listener), policy, hub, "UseDevelopmentEmulator=true")
	})
	if listener == "http" {
		env["YARD_WEBSOCKET"] = "1"
	}
	return env
}

// onTLS is access by the name of a namespace, as in Azure: with TLS, on Azure's ports.
func (y *yard) onTLS(t *testing.T, listener, hub string) map[string]string {
	t.Helper()
	env := y.access(t, func(policy string) string { return connection(namespaceHost, policy, hub) })
	env["YARD_CA"] = y.authority(t)
	if listener == "https" {
		env["YARD_WEBSOCKET"] = "1"
	}
	return env
}

// runPython runs a script, or only the parts of it that are named.
func runPython(t *testing.T, interpreter, name string, env map[string]string, parts ...string) {
	t.Helper()
	args := append([]string{"-B", "-u", filepath.Join("testdata", "python", name)}, parts...)
	cmd := exec.Command(interpreter, args...)
	cmd.Env = environment(env)
	script(t, cmd, scriptTime)
}

// The parts that another transport could break.
var (
	blockingTransport = []string{"sending", "large_batch", "latest", "fidelity", "epochs", "information", "rotation"}
	asyncioTransport  = []string{"sending", "latest", "epochs", "information"}
)

// TestPython works with the official library for Python, blocking and asyncio, over plain TCP; and
// blocking over plain WebSockets, which asyncio cannot do. H2, H3, H4, H5, H6, H7, H8, H9, H10
func TestPython(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	y := startYard(t, layout{hubs: map[string]int{"blocking": 4, "asyncio": 4, "websocket": 4}})
	t.Run("blocking", func(t *testing.T) {
		t.Parallel()
		runPython(t, interpreter, "sync_client.py", y.onPlain(t, "amqp", "blocking"))
	})
	t.Run("asyncio", func(t *testing.T) {
		t.Parallel()
		runPython(t, interpreter, "async_client.py", y.onPlain(t, "amqp", "asyncio"))
	})
	t.Run("websocket", func(t *testing.T) {
		t.Parallel()
		env := y.onPlain(t, "http", "websocket")
		env["YARD_ENDPOINT"] = "sb://" + y.hostPort(t, "http")
		runPython(t, interpreter, "sync_client.py", env, blockingTransport...)
	})
}

// TestPythonTLS is TestPython with TLS, which the library speaks on Azure's ports only. // H8
func TestPythonTLS(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{hubs: map[string]int{"blocking": 4, "asyncio": 4, "websocket": 4, "websocket-asyncio": 4}})
		for hub, run := range map[string]struct {
			name, listener string
			parts          []string
		}{
			"blocking":          {"sync_client.py", "amqps", blockingTransport},
			"asyncio":           {"async_client.py", "amqps", asyncioTransport},
			"websocket":         {"sync_client.py", "https", blockingTransport},
			"websocket-asyncio": {"async_client.py", "https", asyncioTransport},
		} {
			t.Run(hub, func(t *testing.T) {
				t.Parallel()
				runPython(t, interpreter, run.name, y.onTLS(t, run.listener, hub), run.parts...)
			})
		}
	})
}

// TestPythonCheckpoints shares partitions among consumers that may only listen, with
// their leases and checkpoints in a blob service. // H5, H9
func TestPythonCheckpoints(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	blobs := startAzurite(t)
	y := startYard(t, layout{hubs: map[string]int{"shared": 4}})
	env := y.onPlain(t, "amqp", "shared")
	env["YARD_BLOBS"] = blobs.Connection()
	runPython(t, interpreter, "checkpoint_client.py", env)
}

// TestProton works with an AMQP client that knows nothing of Event Hubs, over plain TCP
// and TLS. // H8, H9
func TestProton(t *testing.T) {
	t.Parallel()
	interpreter := protonPython(t)
	y := startYard(t, layout{hubs: map[string]int{"tcp": 4, "tls": 4}})
	for hub, listener := range map[string]string{"tcp": "amqp", "tls": "amqps"} {
		t.Run(hub, func(t *testing.T) {
			env := map[string]string{
				"YARD_URL": listener + "://" + y.hostPort(t, listener), "YARD_HUB": hub,
				"YARD_USER": "manager", "YARD_PASSWORD": keyOf("manager"),
				"YARD_LISTENER_USER": "listener", "YARD_LISTENER_PASSWORD": keyOf("listener"),
			}
			if listener == "amqps" {
				maps.Copy(env, map[string]string{"YARD_CA": y.authority(t)})
			}
			runPython(t, interpreter, "proton_client.py", env)
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(path)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(os.Stat(found)))
	return found
}
