package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// H9: a new yard has certificates at once, good for every name of this machine's.
func TestFirstOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "certs")
	s := open(t, Config{Dir: dir, Host: "Yard.Example.net", Addresses: []string{"127.0.0.2:5671", "[::1]:8443", "doors.example.net", "10.1.2.3"}})
	host := testkit.Value(os.Hostname())(t)
	for _, name := range []string{
		"localhost", "ns.localhost", "127.0.0.1", "::1", "127.0.0.2", "10.1.2.3", "yard.example.net", "doors.example.net", host,
	} {
		testkit.Check(t, testkit.Err3(handshake(t, s, trusting(t, s, name))), "%s", name)
	}
	for _, name := range []string{"example.net", "127.0.0.3", "a.b.localhost"} {
		if _, _, err := handshake(t, s, trusting(t, s, name)); err == nil {
			t.Errorf("%s is trusted", name)
		}
	}
	if _, _, err := handshake(t, s, &tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()}); err == nil {
		t.Error("it is trusted without its authority")
	}
}

func TestFilesAndTheirModes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	entries := testkit.Value(os.ReadDir(dir))(t)
	want := map[string]fs.FileMode{"ca.pem": 0o644, "ca-key.pem": 0o600, "cert.pem": 0o644, "key.pem": 0o600}
	for _, e := range entries {
		mode, ok := want[e.Name()]
		testkit.Equal(t, ok, true, "%s is there", e.Name())
		delete(want, e.Name())
		if info, err := e.Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	testkit.Equal(t, len(want), 0, "missing: %v", want)
	testkit.Equal(t, s.CAFile(), filepath.Join(dir, "ca.pem"), "authority")
}

func TestFormOfTheCertificates(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	ca := testkit.Value(readCert(s.CAFile()))(t)
	cert := leaf(t, s)
	if !ca.IsCA || !ca.MaxPathLenZero || cert.IsCA || ca.KeyUsage&x509.KeyUsageCertSign == 0 {
		t.Error("the authority is none, or the certificate is one")
	}
	if years := ca.NotAfter.Sub(ca.NotBefore).Hours() / 24 / 365; years < 9.9 || years > 10.1 {
		t.Errorf("the authority lives %f years", years)
	}
	if days := cert.NotAfter.Sub(cert.NotBefore).Hours() / 24; days < 300 || days > 825 {
		t.Errorf("the certificate lives %f days", days)
	}
	for _, c := range []*x509.Certificate{ca, cert} {
		if key, ok := c.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
			t.Errorf("key of type %T", c.PublicKey)
		}
		if c.NotBefore.After(time.Now().Add(-clockSkew)) || c.SerialNumber.Sign() <= 0 {
			t.Errorf("good from %v, number %v", c.NotBefore, c.SerialNumber)
		}
	}
	if want := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}; !slices.Equal(ca.ExtKeyUsage, want) {
		t.Errorf("the authority's usage is %v", ca.ExtKeyUsage)
	}
	testkit.MustEqual(t, len(cert.ExtKeyUsage), 1, "usage %v", cert.ExtKeyUsage)
	testkit.Equal(t, cert.ExtKeyUsage[0], x509.ExtKeyUsageServerAuth, "usage %v", cert.ExtKeyUsage)
}

func TestOldProtocolsAreRefused(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		client := trusting(t, s, "localhost")
		client.MinVersion, client.MaxVersion = tls.VersionTLS10, version
		if _, _, err := handshake(t, s, client); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// What was made stays as it is, as long as it can.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	first := leaf(t, open(t, Config{Dir: dir, Addresses: []string{"127.0.0.9"}}))
	ca := read(t, filepath.Join(dir, "ca.pem"))
	if again := leaf(t, open(t, Config{Dir: dir, Addresses: []string{"127.0.0.9"}})); !again.Equal(first) {
		t.Error("the certificate was made anew without need")
	}
	if fewer := leaf(t, open(t, Config{Dir: dir})); !fewer.Equal(first) {
		t.Error("it was made anew for a name that is not wanted any more")
	}
	more := leaf(t, open(t, Config{Dir: dir, Host: "new.example.net"}))
	if more.Equal(first) || more.VerifyHostname("new.example.net") != nil {
		t.Error("it was not made anew for a new name")
	}
	testkit.Slices(t, ca, read(t, filepath.Join(dir, "ca.pem")), "the authority changed")
}

// Whatever is missing or does not fit is made anew; the authority only if it is gone.
func TestDamage(t *testing.T) {
	other := t.TempDir()
	open(t, Config{Dir: other})
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				testkit.Must(t, os.Remove(filepath.Join(dir, name)))
			}
		}
	}
	take := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				write(t, filepath.Join(dir, name), string(read(t, filepath.Join(other, name))))
			}
		}
	}
	fill := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), text) }
	}
	spoil := func(name string) func(*testing.T, string) { return fill(name, "nonsense") }
	const noKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	noCert := strings.ReplaceAll(noKey, "PRIVATE KEY", "CERTIFICATE")
	bare := func(t *testing.T, dir string) { // as it was kept before
		file := filepath.Join(dir, "ca-key.pem")
		key := testkit.Value(readKey(file, nil))(t)
		testkit.Must(t, writeKey(file, nil, key))
	}
	both := func(first, second func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			first(t, dir)
			second(t, dir)
		}
	}
	tests := []struct {
		what           string
		damage         func(t *testing.T, dir string)
		newCA, newLeaf bool
		refused        string
	}{
		{"no certificate", remove("cert.pem"), false, true, ""},
		{"no key", remove("key.pem"), false, true, ""},
		{"a certificate that cannot be read", spoil("cert.pem"), false, true, ""},
		{"a key that cannot be read", spoil("key.pem"), false, true, ""},
		{"a new key and no certificate yet, as after a crash", take("key.pem"), false, true, ""},
		{"a certificate of another authority", take("key.pem", "cert.pem"), false, true, ""},
		{"no authority", remove("ca.pem", "ca-key.pem"), true, true, ""},
		{"no copy of the authority, as after a crash", remove("ca.pem"), false, false, ""},
		{"a copy that cannot be read", spoil("ca.pem"), false, false, ""},
		{"a copy of what is no authority", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "ca.pem"), string(read(t, filepath.Join(dir, "cert.pem"))))
		}, false, false, ""},
		{"a copy of another authority", take("ca.pem"), false, false, ""},
		{"a new authority, and the copy of the old, as after a crash", take("ca-key.pem"), true, true, ""},
		{"another authority", take("ca.pem", "ca-key.pem"), true, true, ""},
		{"an authority's key alone, which belongs to the copy", bare, false, false, ""},
		{"an authority's key alone, as after a crash long ago", both(bare, remove("ca.pem")), true, true, ""},
		{"the key of the authority kept elsewhere", remove("ca-key.pem"), false, false, ""},
		{"and needed", remove("ca-key.pem", "cert.pem"), false, false, "ca-key.pem"},
		{"an authority that cannot be read", both(bare, spoil("ca.pem")), false, false, "ca.pem"},
		{"an authority's key that cannot be read", spoil("ca-key.pem"), false, false, "ca-key.pem"},
		{"an authority's key that is none", fill("ca-key.pem", noKey), false, false, "ca-key.pem"},
		{"an authority whose certificate is none", both(bare, fill("ca.pem", noCert)), false, false, "ca.pem"},
		{"an authority's key alone that is another's", both(bare, take("ca.pem")), false, false, "ca-key.pem"},
		{"an authority that is none", both(bare, func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "ca.pem"), string(read(t, filepath.Join(dir, "cert.pem"))))
		}), false, false, "ca.pem"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			dir := t.TempDir()
			before := leaf(t, open(t, Config{Dir: dir}))
			ca := read(t, filepath.Join(dir, "ca.pem"))
			tt.damage(t, dir)
			s, err := Open(Config{Dir: dir, Log: new(journal).logger()})
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			testkit.Must(t, err)
			testkit.Equal(t, !leaf(t, s).Equal(before), tt.newLeaf, "new certificate")
			testkit.Equal(t, !bytes.Equal(ca, read(t, filepath.Join(dir, "ca.pem"))), tt.newCA, "new authority")
		})
	}
}

// H9: a yard that runs for years has a good certificate all the time.
func TestRenewalWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir})
		first := leaf(t, s)
		time.Sleep(leafLife - renewBefore - time.Hour)
		testkit.Equal(t, leaf(t, s).Equal(first), true, "it was renewed too early")
		time.Sleep(2 * time.Hour)
		second := leaf(t, s)
		if second.Equal(first) || second.NotAfter.Sub(time.Now().Add(leafLife)).Abs() > time.Minute {
			t.Errorf("not renewed: good until %v", second.NotAfter)
		}
		if again := leaf(t, open(t, Config{Dir: dir})); !again.Equal(second) {
			t.Error("the renewed one was not kept")
		}
	})
}

// The authority ends once. Until then its certificates do not outlive it; then there is
// another, and a warning.
func TestEndOfTheAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Log: log.logger()})
		ca := read(t, s.CAFile())
		time.Sleep(caLife - renewBefore - 24*time.Hour)
		last := leaf(t, s)
		if !bytes.Equal(ca, read(t, s.CAFile())) || last.NotAfter.After(time.Now().Add(renewBefore+48*time.Hour)) {
			t.Errorf("before the end: good until %v", last.NotAfter)
		}
		testkit.Equal(t, log.count("made anew"), 0, "a warning too early")
		time.Sleep(48 * time.Hour)
		s.certificate() // brings the new authority, which clients have to be given
		if next := leaf(t, s); bytes.Equal(ca, read(t, s.CAFile())) || next.NotAfter.Before(last.NotAfter.Add(time.Hour)) {
			t.Errorf("after the end: good until %v", next.NotAfter)
		}
		testkit.Equal(t, log.count("made anew"), 1, "no warning")
	})
}

// A power cut at any moment while the authority is made anew leaves files that the next
// start can use: the old authority to be made anew, or the new one.
func TestPowerCutAtTheEndOfTheAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open(t, Config{Dir: dir})
		time.Sleep(caLife - renewBefore + time.Hour)
		old := contents(t, dir)
		open(t, Config{Dir: dir})
		made := contents(t, dir)
		order := []string{"ca-key.pem", "ca.pem", "key.pem", "cert.pem"}
		for written := range len(order) + 1 {
			dir := t.TempDir()
			for i, name := range order {
				text := old[name]
				if i < written {
					text = made[name]
				}
				write(t, filepath.Join(dir, name), text)
			}
			leaf(t, open(t, Config{Dir: dir})) // which trusts ca.pem
			now := contents(t, dir)
			if kept := now["ca.pem"] == made["ca.pem"] && now["ca-key.pem"] == made["ca-key.pem"]; kept != (written > 0) {
				t.Errorf("after %d files the new authority is kept: %t", written, kept)
			}
		}
	})
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"ca-key.pem", "ca.pem", "key.pem", "cert.pem"} {
		files[name] = string(read(t, filepath.Join(dir, name)))
	}
	return files
}

// Without the authority's key a certificate serves to its end, and that is said once.
func TestWithoutTheKeyOfTheAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		dir := t.TempDir()
		first := leaf(t, open(t, Config{Dir: dir}))
		testkit.Must(t, os.Remove(filepath.Join(dir, "ca-key.pem")))
		s := open(t, Config{Dir: dir, Host: "new.example.net", Log: log.logger()})
		for range 3 {
			time.Sleep(checkEvery)
			testkit.Equal(t, leaf(t, s).Equal(first), true, "it is another")
		}
		testkit.Equal(t, log.count("cannot be made anew"), 1, "said times")
		time.Sleep(leafLife - renewBefore/2)
		leaf(t, s)
		testkit.Equal(t, log.count("nears its end"), 1, "its end is said")
	})
}

// A certificate put into the folder by hand is taken up, or replaced if it is no good.
func TestOwnFilesChangedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir})
		first := leaf(t, s)
		testkit.Must(t, os.Remove(filepath.Join(dir, "cert.pem")))
		testkit.Equal(t, leaf(t, s).Equal(first), true, "looked at too often")
		time.Sleep(checkEvery)
		second := leaf(t, s)
		testkit.Equal(t, second.Equal(first), false, "not made anew")
		time.Sleep(checkEvery)
		testkit.Equal(t, leaf(t, s).Equal(second), true, "made anew again and again")
	})
}

// Handshakes at the time of a renewal all get a good certificate.
func TestManyHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: t.TempDir()})
		client := trusting(t, s, "localhost")
		for range 3 {
			time.Sleep(leafLife - renewBefore/2)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					testkit.Check(t, testkit.Err3(handshake(t, s, client.Clone())))
				})
			}
			all.Wait()
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	for what, cfg := range map[string]Config{
		"no folder":                {},
		"a folder that is a file":  {Dir: file},
		"a host that is none":      {Dir: t.TempDir(), Host: "two words"},
		"a host beyond ASCII":      {Dir: t.TempDir(), Host: "größe.example"},
		"an address that is none":  {Dir: t.TempDir(), Addresses: []string{"two words:1"}},
		"clients' authority gone":  {Dir: t.TempDir(), ClientCAFile: file + "-none"},
		"clients' authority empty": {Dir: t.TempDir(), ClientCAFile: file},
	} {
		t.Run(what, func(t *testing.T) {
			if s, err := Open(cfg); err == nil || s != nil {
				t.Errorf("%s: %v, %v", what, s, err)
			}
		})
	}
}
