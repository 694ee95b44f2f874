//go:build linux

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func runNode(t *testing.T, name string, env map[string]string) {
	t.Helper()
	cmd := exec.Command("node", absolute(t, filepath.Join("testdata", "js", name)))
	env["NODE_PATH"] = filepath.Join(node(t), "node_modules")
	cmd.Env = environment(env)
	script(t, cmd, scriptTime)
}

// TestJavaScript works with the official library for JavaScript over plain TCP, TLS and
// WebSockets with TLS, the only ones it speaks. // H2, H3, H4, H5, H7, H8, H9, H10
func TestJavaScript(t *testing.T) {
	t.Parallel()
	node(t)
	y := startYard(t, layout{hubs: map[string]int{"tcp": 4, "tls": 4, "wss": 4}})
	for hub, listener := range map[string]string{"tcp": "amqp", "tls": "amqps", "wss": "https"} {
		t.Run(hub, func(t *testing.T) {
			t.Parallel()
			if listener == "amqp" {
				runNode(t, "client.js", y.onPlain(t, listener, hub))
				return
			}
			env := y.access(t, func(policy string) string { return connection(y.hostPort(t, listener), policy, hub) })
			env["NODE_EXTRA_CA_CERTS"] = y.authority(t)
			if listener == "https" {
				env["YARD_WEBSOCKET"] = "1"
			}
			runNode(t, "client.js", env)
		})
	}
}

// TestJavaScriptCheckpoints shares partitions among consumers that may only listen,
// with their leases and checkpoints in a blob service. // H5, H9
func TestJavaScriptCheckpoints(t *testing.T) {
	t.Parallel()
	blobs := startAzurite(t)
	y := startYard(t, layout{hubs: map[string]int{"shared": 4}})
	env := y.onPlain(t, "amqp", "shared")
	env["YARD_BLOBS"] = blobs.Connection()
	runNode(t, "checkpoint.js", env)
}
