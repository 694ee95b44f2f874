//go:build linux

package interop

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// scriptTime bounds one script on a slow machine.
const scriptTime = 4 * time.Minute

// access is what a script is told: where the yard is, as the owner of everything, as
// one who may only listen, and as one who may only send.
func (y *yard) access(t *testing.T, connect func(policy string) string) map[string]string {
	t.Helper()
	return map[string]string{
		"YARD_CONNECTION": connect(rootPolicy), "YARD_LISTENER": connect("listener"), "YARD_SENDER": connect("sender"),
	}
}

// onPlain is access without TLS; a WebSocket's door is the one for HTTP.
func (y *yard) onPlain(t *testing.T, door, hub string) map[string]string {
	t.Helper()
	env := y.access(t, func(policy string) string {
		return y.connection(t, y.hostPort(t, door), policy, hub, "UseDevelopmentEmulator=true")
	})
	if door == "http" {
		env["YARD_WEBSOCKET"] = "1"
	}
	return env
}

// onTLS is access by the name of a namespace, as in Azure: with TLS, on Azure's ports.
func (y *yard) onTLS(t *testing.T, door, hub string) map[string]string {
	t.Helper()
	env := y.access(t, func(policy string) string { return y.connection(t, namespaceHost, policy, hub) })
	env["YARD_CA"] = y.authority(t)
	if door == "https" {
		env["YARD_WEBSOCKET"] = "1"
	}
	return env
}

func runPython(t *testing.T, interpreter, name string, env map[string]string) {
	t.Helper()
	cmd := exec.Command(interpreter, "-B", "-u", filepath.Join("testdata", "python", name))
	cmd.Env = environment(env)
	script(t, cmd, scriptTime)
}

// TestPython works with the official library for Python, blocking and asyncio, over
// plain TCP and plain WebSockets. // H2, H3, H4, H5, H6, H7, H8, H9, H10
func TestPython(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	y := startYard(t, layout{hubs: map[string]int{"tcp": 4, "ws": 4}})
	for hub, door := range map[string]string{"tcp": "amqp", "ws": "http"} {
		for _, name := range []string{"sync_client.py", "async_client.py"} {
			t.Run(hub+"/"+strings.TrimSuffix(name, "_client.py"), func(t *testing.T) {
				runPython(t, interpreter, name, y.onPlain(t, door, hub))
			})
		}
	}
}

// TestPythonTLS is TestPython with TLS, which the library speaks on Azure's ports
// only. // H8
func TestPythonTLS(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{hubs: map[string]int{"tls": 4, "wss": 4}})
		for hub, door := range map[string]string{"tls": "amqps", "wss": "https"} {
			for _, name := range []string{"sync_client.py", "async_client.py"} {
				t.Run(hub+"/"+strings.TrimSuffix(name, "_client.py"), func(t *testing.T) {
					runPython(t, interpreter, name, y.onTLS(t, door, hub))
				})
			}
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
	env["YARD_BLOBS"] = blobs.connection()
	runPython(t, interpreter, "checkpoint_client.py", env)
}

// TestProton works with an AMQP client that knows nothing of Event Hubs, over plain TCP
// and TLS. // H8, H9
func TestProton(t *testing.T) {
	t.Parallel()
	interpreter := protonPython(t)
	y := startYard(t, layout{hubs: map[string]int{"tcp": 4, "tls": 4}})
	for hub, door := range map[string]string{"tcp": "amqp", "tls": "amqps"} {
		t.Run(hub, func(t *testing.T) {
			env := map[string]string{
				"YARD_URL": door + "://" + y.hostPort(t, door), "YARD_HUB": hub,
				"YARD_USER": "manager", "YARD_PASSWORD": keyOf("manager"),
				"YARD_LISTENER_USER": "listener", "YARD_LISTENER_PASSWORD": keyOf("listener"),
			}
			if door == "amqps" {
				maps.Copy(env, map[string]string{"YARD_CA": y.authority(t)})
			}
			runPython(t, interpreter, "proton_client.py", env)
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(found); err != nil {
		t.Fatal(err)
	}
	return found
}
