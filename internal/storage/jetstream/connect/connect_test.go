package connect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The seed of an nkey, and what servers know of it.
const (
	seed   = "SUADDPAMMENYZYCNB75KMWGAFTE5FW2B6DWS2CITPYYGWJ6EPFK6WFFAVU"
	public = "UCVRLEP25FG2AQIBDFHRHQZNQQZZTFWS5HU4B6FX4MHO6PIN64AZ2U5Q"
)

// server is one with good settings, and more lines.
func server(t *testing.T, more string) (url string) {
	t.Helper()
	return natstest.StartAs(t, func(listen, folder string) string {
		return fmt.Sprintf("server_name: n0\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\n%s", listen, folder, more)
	})
}

func config(t *testing.T, url string) Config {
	t.Helper()
	s, err := Parse(url)
	testkit.Must(t, err)
	return Config{Settings: s, Node: "test", Log: testkit.Quiet()}
}

// dial connects until the test ends.
func dial(t *testing.T, cfg Config) *Conns {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// as puts credentials into a URL.
func as(url, who string) string { return strings.Replace(url, "://", "://"+who+"@", 1) }

// C8: each way to be let in, and that none other does. Who is refused is told so at once.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	nkey := filepath.Join(dir, "seed")
	testkit.Must(t, os.WriteFile(nkey, []byte(seed), 0o600))
	operated, member, stranger := operated(t, dir)
	for name, tt := range map[string]struct {
		lines     string
		good, bad func(url string) string
	}{
		"password": {"authorization { user: yard, password: pw }", func(u string) string { return as(u, "yard:pw") }, func(u string) string { return as(u, "yard:no") }},
		"token":    {"authorization { token: t0ken }", func(u string) string { return as(u, "t0ken") }, func(u string) string { return u }},
		"nkey": {"authorization { users: [ { nkey: " + public + " } ] }",
			func(u string) string { return u + "?nkey=" + nkey }, func(u string) string { return u + "?nkey=" + nkey + ".gone" }},
		"a JWT": {operated, func(u string) string { return u + "?creds=" + member }, func(u string) string { return u + "?creds=" + stranger }},
		"no file with a JWT": {operated, func(u string) string { return u + "?creds=" + member },
			func(u string) string { return u + "?creds=" + member + ".gone" }},
	} {
		t.Run(name, func(t *testing.T) {
			url := server(t, tt.lines)
			c := dial(t, config(t, tt.good(url)))
			testkit.That(t, c.Publish != c.Read && c.Read != c.Control, "connections are shared")
			cfg := config(t, tt.good(url))
			cfg.Replicas = 1
			report, err := c.Check(t.Context(), cfg)
			testkit.Must(t, err)
			testkit.That(t, report.Local, "servers on loopback are taken for others")
			_, err = Dial(t.Context(), config(t, tt.bad(url)))
			testkit.That(t, err != nil, "it was let in")
		})
	}
}

// C8: with certificates of one's own, on both sides.
func TestTLS(t *testing.T) {
	var ca, cert, key string
	url := natstest.StartAs(t, func(listen, _ string) string {
		ca, cert, key = makeCertificate(t, t.TempDir(), listen)
		return fmt.Sprintf("server_name: n0\nlisten: %q\ntls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", listen, cert, key, ca)
	})
	url = strings.Replace(url, "nats://", "tls://", 1)
	c := dial(t, config(t, url+"?ca="+ca+"&cert="+cert+"&key="+key))
	state, err := c.Control.TLSConnectionState()
	testkit.Must(t, err)
	testkit.That(t, state.HandshakeComplete, "there is no TLS")
	var untrusted *tls.CertificateVerificationError
	_, err = Dial(t.Context(), config(t, url))
	testkit.That(t, errors.As(err, &untrusted), "without the authority: %v", err)
	testkit.That(t, testkit.Err(Dial(t.Context(), config(t, url+"?ca="+ca+".gone"))) != nil, "without the file")
	_, err = Dial(t.Context(), config(t, strings.Replace(server(t, ""), "nats://", "tls://", 1)))
	testkit.ErrorIs(t, err, nats.ErrSecureConnWanted, "a server without TLS")
}

// makeCertificate makes one for an address that is its own authority, in PEM files.
func makeCertificate(t *testing.T, dir, address string) (ca, cert, key string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	testkit.Must(t, err)
	private := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "n0"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(host)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secret := testkit.Value(x509.MarshalPKCS8PrivateKey(private))(t)
	testkit.Must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	testkit.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, cert, key
}

// C5: a node that starts before the servers waits for them, says so, and stops waiting when told to.
func TestDialWaitsForServers(t *testing.T) {
	listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	testkit.Must(t, listener.Close()) // nobody is there
	var log testkit.Buffer
	cfg := config(t, "nats://"+address)
	cfg.sayEvery, cfg.Log = time.Nanosecond, slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, cfg)
		ended <- err
	}()
	testkit.Eventually(t, "it does not say that it waits", func() bool { return strings.Contains(log.String(), "waiting") })
	cancel()
	err := <-ended
	testkit.ErrorIs(t, err, context.Canceled)
	testkit.ErrorIs(t, err, nats.ErrNoServers)
}

// C8: good servers pass, and each bad setting is refused with the line to write.
func TestCheck(t *testing.T) {
	monitored := func(t *testing.T, lines string) (url, monitor string) {
		listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		monitor = listener.Addr().String()
		testkit.Must(t, listener.Close())
		return natstest.StartAs(t, func(listen, folder string) string {
			return fmt.Sprintf("server_name: n0\nlisten: %q\nhttp: %q\n", listen, monitor) + strings.ReplaceAll(lines, "FOLDER", fmt.Sprintf("%q", folder))
		}), "&monitor=http://" + monitor
	}
	for name, tt := range map[string]struct {
		lines, query string
		unsafe       bool
		says         string // empty: it passes
		warns        string
	}{
		"good":                 {lines: "max_payload: 8MB\njetstream { store_dir: FOLDER, sync_interval: always }"},
		"syncs later":          {lines: "max_payload: 8MB\njetstream { store_dir: FOLDER }", says: "sync_interval: always"},
		"syncs later, unsafe":  {lines: "max_payload: 8MB\njetstream { store_dir: FOLDER }", unsafe: true, warns: "sync_interval: always"},
		"small messages":       {lines: "jetstream { store_dir: FOLDER, sync_interval: always }", unsafe: true, says: "max_payload: 8MB"},
		"no JetStream":         {lines: "max_payload: 8MB", unsafe: true, says: "jetstream {"},
		"too many replicas":    {lines: "max_payload: 8MB\njetstream { store_dir: FOLDER, sync_interval: always }", query: "&replicas=3", unsafe: true, says: "replicas=1"},
		"not for this account": {lines: "max_payload: 8MB\njetstream { store_dir: FOLDER, sync_interval: always }\naccounts { A { users: [ { user: a, password: b } ] } }\nno_auth_user: a", says: "jetstream {"},
	} {
		t.Run(name, func(t *testing.T) {
			url, monitor := monitored(t, tt.lines)
			query := tt.query
			if query == "" {
				query = "&replicas=1"
			}
			cfg := config(t, url+"?yard=check"+query+monitor)
			cfg.Unsafe = tt.unsafe
			report, err := dial(t, cfg).Check(t.Context(), cfg)
			if tt.says == "" {
				testkit.Must(t, err)
			} else {
				testkit.That(t, errors.Is(err, ErrUnfit) && strings.Contains(err.Error(), tt.says), "it says %v", err)
			}
			testkit.That(t, strings.Contains(strings.Join(report.Warnings, "\n"), tt.warns), "it warns of %q", report.Warnings)
			testkit.That(t, len(report.Servers) == 1 && report.Servers[0].Name == "n0" && report.Local, "found %+v", report)
		})
	}
}

// C8: three servers have three replicas and not five; what cannot be found out is said.
func TestCheckOfACluster(t *testing.T) {
	servers := natstest.Shared(t, 3)
	for replicas, fits := range map[int]bool{1: true, 3: true, 5: false} {
		cfg := config(t, fmt.Sprintf("%s?yard=check&replicas=%d", servers.URL(), replicas))
		c := dial(t, cfg)
		report, err := c.Check(t.Context(), cfg)
		testkit.Equal(t, err == nil, fits, "%d replicas: %v", replicas, err)
		testkit.That(t, replicas != 3 || report.known == 3, "by a stream on all three %d servers are known", report.known)
		testkit.That(t, strings.Contains(strings.Join(report.Warnings, "\n"), "could not be found out"), "%d replicas: it warns of %q", replicas, report.Warnings)
	}
	conn := servers.Dial(t, 0)
	left := testkit.Value(conn.Request("$JS.API.STREAM.NAMES", nil, 10*time.Second))(t)
	testkit.That(t, !strings.Contains(string(left.Data), "_check_"), "a stream is left: %s", left.Data)
}

// C6: servers without monitoring are asked through the system account, all of them, and refused where one
// syncs late. A user who may not ask is said.
func TestCheckThroughTheSystemAccount(t *testing.T) {
	for name, tt := range map[string]struct{ jetstream, system, says, warns string }{
		"good":                {jetstream: "sync_interval: always", system: "admin:secret"},
		"syncs later":         {jetstream: "sync_interval: 10s", system: "admin:secret", says: "sync_interval: always"},
		"nobody is asked":     {jetstream: "sync_interval: 10s", warns: "could not be found out"},
		"wrong password":      {jetstream: "sync_interval: always", system: "admin:wrong", warns: "cannot be asked through the system account"},
		"no user of system":   {jetstream: "sync_interval: always", system: "yard:secret", warns: "is that a user of the system account?"},
		"good, and a monitor": {jetstream: "sync_interval: always", system: "admin:secret&monitor=http://127.0.0.1:1", warns: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			url := natstest.StartAs(t, func(listen, folder string) string {
				return fmt.Sprintf("server_name: n0\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, %s }\n"+
					"accounts { $SYS { users: [{ user: admin, password: secret }] }, YARD { jetstream: enabled, users: [{ user: yard, password: secret }] } }", listen, folder, tt.jetstream)
			})
			query := "?yard=check&replicas=1"
			if tt.system != "" {
				query += "&system=" + tt.system
			}
			cfg := config(t, strings.Replace(url, "nats://", "nats://yard:secret@", 1)+query)
			report, err := dial(t, cfg).Check(t.Context(), cfg)
			if tt.says == "" {
				testkit.Must(t, err)
			} else {
				testkit.That(t, errors.Is(err, ErrUnfit) && strings.Contains(err.Error(), tt.says), "it says %v", err)
			}
			warnings := strings.Join(report.Warnings, "\n")
			testkit.That(t, strings.Contains(warnings, tt.warns) && !strings.Contains(warnings, "secret"), "it warns of %q", warnings)
			testkit.Equal(t, strings.Contains(warnings, "could not be found out"), !strings.HasPrefix(name, "good") && tt.says == "", "whether it is unknown: %s", warnings)
		})
	}
}

// C6: all servers of a cluster answer.
func TestTheSystemAccountOfACluster(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := config(t, servers.URL()+"?replicas=3&system="+natstest.SystemUser)
	report, err := dial(t, cfg).Check(t.Context(), cfg)
	testkit.Must(t, err)
	testkit.Equal(t, len(report.Servers), 3, "servers")
	testkit.Slices(t, report.Warnings, nil, "warnings")
	for _, s := range report.Servers {
		testkit.That(t, s.Sync && s.SyncKnown, "found %+v", s)
	}
}

// C6: a server that is slow to answer is waited for, and one that does not is missed.
func TestTheSystemAccountWaitsForAllServers(t *testing.T) {
	servers := natstest.Start(t, 3)
	cfg := config(t, servers.URL()+"?replicas=3&system="+natstest.SystemUser)
	cfg.Servers = cfg.Servers[:1] // which goes on
	servers.Freeze(t, 2)
	var thawing sync.WaitGroup
	thawing.Go(func() {
		time.Sleep(3 * quiet) // it is slow
		servers.Thaw(t, 2)
	})
	all, err := cfg.askSystem(t.Context())
	thawing.Wait()
	testkit.Must(t, err)
	testkit.Equal(t, len(all), 3, "servers")

	servers.Freeze(t, 2)
	defer servers.Thaw(t, 2)
	all, err = cfg.askSystem(t.Context())
	testkit.Equal(t, len(all), 2, "servers")
	testkit.That(t, err != nil && strings.Contains(err.Error(), "only 2 of 3 have answered"), "it says %v", err)
}

// C5: without an answer the check says that the servers are out of reach, not that they are unfit.
func TestCheckWithoutServers(t *testing.T) {
	servers := natstest.Start(t, 1)
	cfg := config(t, servers.URL()+"?replicas=1&monitor=http://127.0.0.1:1")
	c := dial(t, cfg)
	servers.Freeze(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Check(ctx, cfg)
	testkit.ErrorIs(t, err, ErrUnavailable)
	servers.Thaw(t, 0)
	report, err := c.Check(t.Context(), cfg)
	testkit.Must(t, err)
	testkit.That(t, strings.Contains(strings.Join(report.Warnings, "\n"), "cannot be read"), "it warns of %q", report.Warnings)
}

// C5: connections come back by themselves, and what is sent meanwhile is refused and not sent later.
func TestConnectionsComeBack(t *testing.T) {
	servers := natstest.Start(t, 1)
	c := dial(t, config(t, servers.URL()))
	heard := testkit.Value(c.Read.SubscribeSync("heard"))(t)
	testkit.Must(t, c.Read.Flush())
	servers.Kill(t, 0)
	testkit.Eventually(t, "the connection is not lost", func() bool { return c.Publish.IsReconnecting() && c.Read.IsReconnecting() })
	testkit.That(t, c.Publish.Publish("heard", []byte("lost")) != nil, "what cannot be sent is taken")
	servers.Restart(t, 0)
	testkit.Eventually(t, "the connections do not come back", func() bool {
		return c.Publish.IsConnected() && c.Read.IsConnected() && c.Control.IsConnected()
	})
	testkit.Must(t, c.Read.Flush())
	testkit.Must(t, c.Publish.Publish("heard", []byte("sent")))
	msg, err := heard.NextMsg(time.Minute)
	testkit.Must(t, err)
	testkit.Equal(t, string(msg.Data), "sent", "the first message")
}

// C5: every connection has what all have in common: a frozen server holds nobody up for long, and nothing
// is kept to be sent when nobody waits for it.
func TestOptionsOfAllConnections(t *testing.T) {
	usual := nats.GetDefaultOptions()
	for _, option := range Options() {
		testkit.Must(t, option(&usual))
	}
	for _, what := range []string{"publish", "read", "control"} {
		o := testkit.Value(config(t, "nats://a").options(what))(t)
		for name, of := range map[string]func(*nats.Options) any{
			"how long a write may take":         func(o *nats.Options) any { return o.FlusherTimeout },
			"what is kept to be sent later":     func(o *nats.Options) any { return o.ReconnectBufSize },
			"how often the server is asked":     func(o *nats.Options) any { return o.PingInterval },
			"how many answers may be missing":   func(o *nats.Options) any { return o.MaxPingsOut },
			"how often it connects":             func(o *nats.Options) any { return o.MaxReconnect },
			"the pause after a round of errors": func(o *nats.Options) any { return o.CustomReconnectDelayCB(7) },
		} {
			testkit.Equal(t, of(&o), of(&usual), "%s: %s", what, name)
		}
		testkit.That(t, o.FlusherTimeout == WriteTime && o.ReconnectBufSize < 0 && o.MaxReconnect < 0, "%s: %+v", what, o)
	}
}
