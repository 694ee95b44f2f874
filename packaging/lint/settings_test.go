package lint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// built is a folder of the tests, until all have ended.
var built string

// program is the yard of this tree, which judges the settings that the chart writes.
var program = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "eventyard")
	build := exec.Command("go", "build", "-o", file, "./cmd/eventyard")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return file, err
})

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "eventyard-lint-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// checkSettings has the program judge settings. A certificate that is mounted in a pod is one that is here.
func checkSettings(t *testing.T, text string) {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if strings.Contains(text, tlsFolder) {
		writeCertificate(t, folder)
		text = strings.ReplaceAll(text, tlsFolder, folder)
	}
	settings := filepath.Join(folder, "eventyard.yaml")
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.Command(file, "config", "check", settings)
	check.Dir, check.Env = folder, []string{"HOME=" + folder, "NO_COLOR=1"}
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), " is right: ") {
		t.Errorf("config check: %v\n%s\nof\n%s", err, out, text)
	}
}

// tlsFolder is where the chart mounts the Secret with a certificate.
const tlsFolder = "/etc/eventyard-tls"

func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"yard.example.com"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
