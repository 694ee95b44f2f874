//go:build linux

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestJava works with the official library for Java: over plain TCP, and as in Azure
// over TLS and WebSockets, where its frames are small. // H2, H3, H4, H5, H7, H8, H9, H10
func TestJava(t *testing.T) {
	t.Parallel()
	jars := java(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{hubs: map[string]int{"tcp": 4, "tls": 4, "wss": 4}})
		store := trustStore(t, y.authority(t))
		for hub, env := range map[string]map[string]string{
			"tcp": y.onPlain(t, "amqp", "tcp"), "tls": y.onTLS(t, "amqps", "tls"), "wss": y.onTLS(t, "https", "wss"),
		} {
			t.Run(hub, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
					"-Djavax.net.ssl.trustStore="+store, "-Djavax.net.ssl.trustStorePassword=interop",
					"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
					"-cp", filepath.Join(jars, "lib", "*"), filepath.Join("testdata", "java", "Interop.java"))
				cmd.Env = environment(env)
				script(t, cmd, scriptTime)
			})
		}
	})
}

// trustStore puts the yard's authority where Java looks for those it trusts.
func trustStore(t *testing.T, authority string) string {
	t.Helper()
	store := filepath.Join(t.TempDir(), "trust.p12")
	out, err := exec.Command("keytool", "-importcert", "-noprompt", "-alias", "yard", "-file", authority,
		"-keystore", store, "-storetype", "PKCS12", "-storepass", "interop").CombinedOutput()
	if err != nil {
		t.Fatalf("keytool: %v\n%s", err, out)
	}
	return store
}
