package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	goamqp "github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// saslHeader is how clients begin.
const saslHeader = "AMQP\x03\x01\x00\x00"

// everyListener is a yard with all its listeners, each on a port of its own.
func everyListener(t *testing.T) Config {
	cfg := quick(t)
	cfg.AMQP, cfg.AMQPS, cfg.HTTPS, cfg.Kafka, cfg.Kafkas = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

// host is a listener's address without its scheme.
func (r *running) host(listener string) string {
	r.t.Helper()
	scheme, host, ok := strings.Cut(r.Addresses()[listener], "://")
	if !ok || scheme != listener {
		r.t.Fatalf("the %s listener is at %q", listener, r.Addresses()[listener])
	}
	return host
}

// trust is what a client needs who trusts the yard's own authority and nobody else.
func (r *running) trust() *tls.Config {
	r.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(r.want(http.StatusOK, "GET", "/api/v1/ca.pem", ""))) {
		r.t.Fatal("no certificate in ca.pem")
	}
	return &tls.Config{RootCAs: pool}
}

// client is an HTTP client that trusts the yard.
func (r *running) client() *http.Client {
	transport := &http.Transport{TLSClientConfig: r.trust(), ForceAttemptHTTP2: true}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dial opens a connection for AMQP by each of the four ways.
func (r *running) dial(way string) net.Conn {
	r.t.Helper()
	var conn net.Conn
	var err error
	switch way {
	case "amqp":
		conn, err = net.Dial("tcp", r.host("amqp"))
	case "amqps":
		conn, err = tls.Dial("tcp", r.host("amqps"), r.trust())
	case "http":
		conn, err = dialWebSocket(http.DefaultClient, "ws://"+r.host("http")+"/$servicebus/websocket")
	case "https":
		conn, err = dialWebSocket(r.client(), "wss://"+r.host("https")+"/$servicebus/websocket/")
	}
	testkit.Must(r.t, err, "%s", way)
	return conn
}

func dialWebSocket(client *http.Client, url string) (net.Conn, error) {
	socket, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{
		HTTPClient: client, Subprotocols: []string{"AMQPWSB10"},
	})
	if err != nil {
		return nil, err
	}
	return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
}

// session speaks AMQP by one of the ways, as the holder of a policy's key.
func (r *running) session(way, policy, key string) *goamqp.Session {
	r.t.Helper()
	conn, err := goamqp.NewConn(r.t.Context(), r.dial(way), &goamqp.ConnOptions{
		HostName: "localhost", SASLType: goamqp.SASLTypePlain(policy, key),
	})
	testkit.Must(r.t, err, "%s", way)
	r.t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(r.t.Context(), nil)
	testkit.Must(r.t, err, "%s", way)
	return session
}

func send(ctx context.Context, session *goamqp.Session, to, text string) error {
	sender, err := session.NewSender(ctx, to, nil)
	if err != nil {
		return err
	}
	return sender.Send(ctx, goamqp.NewMessage([]byte(text)), nil)
}

var ways = []string{"amqp", "amqps", "http", "https"}

// H8: what is sent by any way is read by every other.
func TestAMQPByEveryWay(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	for _, way := range ways {
		if err := send(t.Context(), r.session(way, auth.RootPolicy, auth.DevelopmentKey), "h", "by "+way); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
	}
	for _, way := range ways {
		session := r.session(way, auth.RootPolicy, auth.DevelopmentKey)
		receiver, err := session.NewReceiver(t.Context(), "h/ConsumerGroups/$Default/Partitions/0", nil)
		testkit.Must(t, err, "%s", way)
		for _, sent := range ways {
			message, err := receiver.Receive(t.Context(), nil)
			if err != nil || string(message.GetData()) != "by "+sent {
				t.Fatalf("%s received %v, %v", way, message, err)
			}
		}
	}
	if events := r.want(200, "GET", "/api/v1/hubs/h/partitions/0/events", ""); strings.Count(events, `"by `) != 4 {
		t.Errorf("HTTP reads %s", events)
	}
	r.shutdown()
}

func TestHTTPSServesWhatHTTPDoes(t *testing.T) {
	r := start(t, everyListener(t))
	trusting := r.client()
	r.url = r.Addresses()["https"]
	response, err := trusting.Do(r.request("GET", "/api/v1/hubs", nil))
	testkit.Must(t, err)
	response.Body.Close()
	if response.StatusCode != 200 || response.ProtoMajor != 2 {
		t.Errorf("answered %s over %s", response.Status, response.Proto)
	}
	if _, err := http.Get(r.url + "/readyz"); err == nil {
		t.Error("who does not know the authority trusts the yard")
	}
	r.shutdown()
}

// A web page may not use the yard of whoever looks at it; programs may, by any name.
func TestWhoMayOpenAWebSocket(t *testing.T) {
	cfg := everyListener(t)
	cfg.Host = "own.example.com"
	r := start(t, cfg)
	for name, test := range map[string]struct {
		host, origin string
		want         int
	}{
		"a program":                  {"yard.example.com", "", http.StatusSwitchingProtocols},
		"a program that names us":    {"localhost", "http://localhost", http.StatusSwitchingProtocols},
		"a program by our own name":  {"own.example.com", "https://own.example.com", http.StatusSwitchingProtocols},
		"a page of another origin":   {"127.0.0.1", "http://evil.example.com", http.StatusForbidden},
		"a page that rebinds a name": {"evil.example.com", "http://evil.example.com", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := r.request("GET", webSocketPath, nil)
			request.Host = test.host
			for key, value := range map[string]string{
				"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
				"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "amqp", "Origin": test.origin,
			} {
				if value != "" {
					request.Header.Set(key, value)
				}
			}
			response, err := http.DefaultClient.Do(request)
			testkit.Must(t, err)
			response.Body.Close()
			testkit.Equal(t, response.StatusCode, test.want, "it is answered %s", response.Status)
		})
	}
	r.shutdown()
}

// H9: nobody is let in without a token, by any listener.
func TestNobodyIsLetInWithoutAToken(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	response, err := http.Get(r.url + "/api/v1/hubs")
	testkit.Must(t, err)
	response.Body.Close()
	testkit.Equal(t, response.StatusCode, http.StatusUnauthorized, "HTTP answers %s", response.Status)
	for _, way := range ways {
		_, err := goamqp.NewConn(t.Context(), r.dial(way), &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, "wrong")})
		if err == nil {
			t.Errorf("a wrong key is good at %s", way)
		}
		conn, err := goamqp.NewConn(t.Context(), r.dial(way), &goamqp.ConnOptions{SASLType: goamqp.SASLTypeAnonymous()})
		testkit.Must(t, err)
		session, err := conn.NewSession(t.Context(), nil)
		testkit.Must(t, err)
		var refused *goamqp.Error
		if err := send(t.Context(), session, "h", "x"); !errors.As(err, &refused) || refused.Condition != goamqp.ErrCondUnauthorizedAccess {
			t.Errorf("%s without a token: %v", way, err)
		}
		_ = conn.Close()
	}
	r.shutdown()
}

// A listener that cannot be opened is named, each one of them, and nothing is touched.
func TestTwoYardsCannotShareAddresses(t *testing.T) {
	first := start(t, everyListener(t))
	cfg := everyListener(t)
	cfg.AMQP, cfg.AMQPS, cfg.HTTP, cfg.HTTPS = first.host("amqp"), first.host("amqps"), first.host("http"), first.host("https")
	other := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer other.Close()
	cfg.Kafka, cfg.Kafkas, cfg.DevStorage = first.host("kafka"), first.host("kafkas"), other.Addr().String()
	s, err := New(cfg)
	testkit.Must(t, err)
	err = s.Run(t.Context())
	var listener *ListenerError
	if !errors.As(err, &listener) || listener.Listener != "amqp" || listener.Address != cfg.AMQP || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error is %v", err)
	}
	for _, listener := range cfg.listeners() {
		if want := "open the " + listener.Name + " listener at " + listener.Address + ": "; !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	testkit.ErrorIs(t, testkit.Err(os.Stat(cfg.DataDir)), os.ErrNotExist, "the data folder was touched")
	first.shutdown()
}

// One listener in use keeps the others from being opened: half a yard would be a surprise.
func TestOneAddressIsTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer other.Close()
	cfg := everyListener(t)
	cfg.HTTPS = other.Addr().String()
	s, err := New(onEngine(t, cfg))
	testkit.Must(t, err)
	var listener *ListenerError
	if err := s.Run(t.Context()); !errors.As(err, &listener) || listener.Listener != "https" {
		t.Errorf("error is %v", err)
	}
}

// The operator's own certificate is shown at every listener with TLS.
func TestTheOperatorsCertificate(t *testing.T) {
	cfg, dir := everyListener(t), t.TempDir()
	testkit.Must(t, testkit.Err(certs.Open(certs.Config{Dir: dir, Log: cfg.Log}))) // to have a certificate of somebody's
	cfg.TLS = TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	r := start(t, cfg)
	trusted := &tls.Config{RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AppendCertsFromPEM(testkit.Value(os.ReadFile(filepath.Join(dir, "ca.pem")))(t))
	for _, listener := range []string{"amqps", "https", "kafkas"} {
		conn, err := tls.Dial("tcp", r.host(listener), trusted)
		testkit.Must(t, err, "%s", listener)
		_ = conn.Close()
	}
	// V5: another one is taken into use when the server is told to look, as by SIGHUP, and that is noted.
	second := t.TempDir()
	testkit.Must(t, testkit.Err(certs.Open(certs.Config{Dir: second, Log: cfg.Log})))
	for _, file := range []string{"cert.pem", "key.pem"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, file), testkit.Value(os.ReadFile(filepath.Join(second, file)))(t), 0o600))
	}
	testkit.Must(t, r.Reload())
	noted := r.activity(r.admin(), "certificate.replaced", "")
	testkit.That(t, strings.HasPrefix(noted.Object, "nodes/") && strings.Contains(noted.Detail, ", until "), "noted is %+v", noted)
	r.shutdown()
}

// A client that is connected hears of the end, whatever way it came.
func TestStoppingClosesAMQPConnectionsWithAReason(t *testing.T) {
	r := start(t, everyListener(t))
	var all []*goamqp.Conn
	for _, way := range ways {
		conn, err := goamqp.NewConn(t.Context(), r.dial(way), nil)
		testkit.Must(t, err, "%s", way)
		all = append(all, conn)
	}
	r.shutdown()
	for i, conn := range all {
		<-conn.Done()
		var ended *goamqp.ConnError
		if err := conn.Err(); !errors.As(err, &ended) || ended.RemoteErr == nil || ended.RemoteErr.Condition != goamqp.ErrCondConnectionForced {
			t.Errorf("%s ended with %v", ways[i], err)
		}
	}
}

// Connections that nobody speaks on do not outlive the grace period.
func TestStoppingCutsOffSilentConnections(t *testing.T) {
	cfg := everyListener(t)
	cfg.Grace = 1 // a nanosecond
	r := start(t, cfg)
	for _, way := range ways {
		conn := r.dial(way)
		defer conn.Close()
		testkit.Must(t, testkit.Err(io.WriteString(conn, saslHeader)))
		testkit.Must(t, testkit.Err(io.ReadFull(conn, make([]byte, 8))), "%s", way)
	}
	r.shutdown()
}
