//go:build linux

package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// blobs is the connection string of the yard's own blob endpoint, as its user gets it.
func (y *yard) blobs(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(checkedBuild.binary(t), "connection-string", "--blob", "--server", "http://"+y.hostPort(t, "http"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("connection-string --blob: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestPythonBlobs is TestPythonCheckpoints with one program only: the yard has the blobs,
// too. // P8
func TestPythonBlobs(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	y := startYard(t, layout{hubs: map[string]int{"shared": 4}})
	env := y.onPlain(t, "amqp", "shared")
	env["YARD_BLOBS"] = y.blobs(t)
	runPython(t, interpreter, "checkpoint_client.py", env)
}

// TestJavaScriptBlobs is TestJavaScriptCheckpoints with one program only, and then works
// with the blobs alone. // P8
func TestJavaScriptBlobs(t *testing.T) {
	t.Parallel()
	node(t)
	y := startYard(t, layout{hubs: map[string]int{"shared": 4}})
	env := y.onPlain(t, "amqp", "shared")
	env["YARD_BLOBS"] = y.blobs(t)
	runNode(t, "checkpoint.js", env)
	runNode(t, "blob.js", env)
}

// TestJavaScriptDevelopmentStorage works with blobs of a yard in the place of the official storage
// emulator, which the client finds by itself. // P8
func TestJavaScriptDevelopmentStorage(t *testing.T) {
	onOneMachine(t, "all would have the same address in the place of the emulator")
	t.Parallel()
	node(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{hubs: map[string]int{"shared": 1}, settings: []string{`devStorage: "127.0.0.1:10000"`}})
		env := y.onPlain(t, "amqp", "shared")
		env["YARD_BLOBS"] = "UseDevelopmentStorage=true"
		runNode(t, "blob.js", env)
	})
}

// TestJavaBlobs has a processor of the official library for Java keep its checkpoints in the
// yard. The library takes the account out of the URL that it was given, and puts the
// container in its place. // P8
func TestJavaBlobs(t *testing.T) {
	t.Parallel()
	jars := java(t)
	y := startYard(t, layout{hubs: map[string]int{"shared": 4}})
	env := y.onPlain(t, "amqp", "shared")
	env["YARD_BLOBS"] = y.blobs(t)
	cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", filepath.Join(jars, "lib", "*"), filepath.Join("testdata", "java", "Checkpoints.java"))
	cmd.Env = environment(env)
	script(t, cmd, scriptTime)
}

// TestGoSDKBlobs runs the official Go library's own tests of its processor and of its checkpoint
// store, unchanged, with one program only: over TLS, and with a bearer token for the blobs. // P8
func TestGoSDKBlobs(t *testing.T) {
	t.Parallel()
	sdk := goSDKTests(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{
			hubs:     map[string]int{"eh": 4, "links": 1},
			settings: []string{"acceptAnyJwt: true"},
		})
		env := goSDKEnvironmentWith("https://"+namespaceHost+"/blob/eventyard/", joinFiles(t, y.authority(t)))
		var processor []string
		for _, name := range goSDKLive["."] {
			if strings.HasPrefix(name, "TestProcessor_") {
				processor = append(processor, name)
			}
		}
		t.Run("processor", func(t *testing.T) { runGoSDKPackage(t, sdk, env, "^TestProcessor_", processor) })
		t.Run("checkpoints", func(t *testing.T) {
			runGoSDKPackage(t, filepath.Join(sdk, "checkpoints"), env, "^TestBlobStore", goSDKLive["checkpoints"])
		})
	})
}
