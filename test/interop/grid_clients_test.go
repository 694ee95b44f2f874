//go:build linux

package interop

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// gridEnvironment makes topics, each with a schema, and tells a script of them.
func (y *yard) gridEnvironment(t *testing.T, schemas map[string]string) map[string]string {
	t.Helper()
	topics := map[string]admin.Topic{}
	for name, schema := range schemas {
		topics[name] = y.topic(t, name, schema)
	}
	text, err := json.Marshal(topics)
	testkit.Must(t, err)
	env := y.onPlain(t, "amqp", "")
	maps.Copy(env, map[string]string{
		"YARD_TOPICS": string(text), "YARD_SERVER": "http://" + y.hostPort(t, "http"),
		// Where each library looks for those it trusts; that for Python passes on no such argument.
		"REQUESTS_CA_BUNDLE": y.authority(t), "SSL_CERT_FILE": y.authority(t), "NODE_EXTRA_CA_CERTS": y.authority(t),
	})
	return env
}

// TestGridPython works with the official library for Python, blocking and asyncio. // G9, G11, G12
func TestGridPython(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	env := y.gridEnvironment(t, map[string]string{
		"grid": "eventgrid", "clouds": "cloudevents", "pulled-blocking": "cloudevents", "pulled-asyncio": "cloudevents",
	})
	for _, form := range []string{"blocking", "asyncio"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			runPython(t, interpreter, "grid_client.py", env, form)
		})
	}
}

// TestGridJavaScript works with the official libraries for JavaScript. // G2, G9, G11, G12
func TestGridJavaScript(t *testing.T) {
	t.Parallel()
	node(t)
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	runNode(t, "grid.js", y.gridEnvironment(t, map[string]string{
		"grid": "eventgrid", "clouds": "cloudevents", "custom": "custom", "pulled": "cloudevents",
	}))
}

// TestGridJava works with the official library for Java. // G2, G9, G11, G12
func TestGridJava(t *testing.T) {
	t.Parallel()
	jars := java(t)
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	env := map[string]string{"YARD_SERVER": "http://" + y.hostPort(t, "http"), "YARD_LOGIN": rootPolicy + ":" + rootKey}
	for name, schema := range map[string]string{"grid": "eventgrid", "clouds": "cloudevents", "custom": "custom"} {
		topic := y.topic(t, name, schema)
		env["YARD_TOPIC_"+name] = topic.SecureEndpoint + " " + topic.Keys.Key1
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-Djavax.net.ssl.trustStore="+trustStore(t, y.authority(t)), "-Djavax.net.ssl.trustStorePassword=interop",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(jars, "lib", "*"), filepath.Join("testdata", "java", "Grid.java"))
	cmd.Env = environment(env)
	script(t, cmd, scriptTime)
}
