package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// R5: a backup without the secret key holds no private key of the yard's certificates. Keys from
// before are sealed at the next start, and after a rotation anew, also by a start without TLS: the
// old secret key is needed no more then. Clients go on trusting the yard.
func TestPrivateKeysOfCertificatesAreSealed(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := everyListener(t)
	start(t, cfg).shutdown()
	dir, secret := filepath.Join(cfg.DataDir, CertificateDir), filepath.Join(cfg.DataDir, storage.SecretKeyFile)
	testkit.Must(t, os.RemoveAll(dir))
	testkit.Must(t, testkit.Err(certs.Open(certs.Config{Dir: dir, Log: cfg.Log}))) // as older versions have it, in clear
	ca := testkit.Value(os.ReadFile(filepath.Join(dir, "ca.pem")))(t)
	plain := cfg
	plain.AMQPS, plain.HTTPS, plain.Kafkas = Off, Off, Off
	for _, rotate := range []bool{false, true} {
		if rotate {
			testkit.Must(t, testkit.Err(Secrets{}.Rotate(cfg.DataDir)))
		}
		start(t, plain).shutdown()
		for _, name := range certs.OwnFiles() {
			text := testkit.Value(os.ReadFile(filepath.Join(dir, name)))(t)
			testkit.That(t, !bytes.Contains(text, []byte("PRIVATE KEY")), "%s is in clear: %s", name, text)
		}
		newest, _, _ := strings.Cut(string(testkit.Value(os.ReadFile(secret))(t)), "\n")
		testkit.Must(t, os.WriteFile(secret, []byte(newest+"\n"), 0o600))
		start(t, cfg).shutdown()
		testkit.Slices(t, testkit.Value(os.ReadFile(filepath.Join(dir, "ca.pem")))(t), ca, "the authority")
	}
}
