package embedded

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// cluster is three peers at ports of this machine that nobody has.
func cluster(t *testing.T) []bundle.Bundle {
	t.Helper()
	var peers []bundle.Peer
	for _, name := range []string{"a", "b", "c"} {
		l := testkit.Value(net.Listen("tcp", net.JoinHostPort(parts.OwnLoopback(), "0")))(t)
		defer l.Close() // all are open at once, so that they differ
		peers = append(peers, bundle.Peer{Name: name, Address: l.Addr().String()})
	}
	return testkit.Value(bundle.Make("shop", peers, time.Now()))(t)
}

func config(t *testing.T, b bundle.Bundle) Config {
	t.Helper()
	cfg := Config{
		Name: b.Node, Cluster: b.Cluster, Listen: b.Self().Address, Address: b.Self().Address, TLS: testkit.Value(b.TLS())(t),
		Dir: t.TempDir(), MaxStoreBytes: 1 << 30, MaxMemoryBytes: 1 << 20, Log: testkit.Quiet(),
	}
	for _, p := range b.Peers {
		cfg.Routes = append(cfg.Routes, p.Address)
	}
	return cfg
}

// start runs the first peer's server alone, until the test ends.
func start(t *testing.T, b bundle.Bundle) *Server {
	t.Helper()
	s := testkit.Value(Open(t.Context(), config(t, b)))(t)
	t.Cleanup(s.Close)
	return s
}

// C8, R2: who shows no certificate of the cluster is let in nowhere and is told nothing at the address
// for other servers; the process itself needs none.
func TestStrangersAreNotLetIn(t *testing.T) {
	here, elsewhere := cluster(t), cluster(t)
	s := start(t, here[0])
	peer, other := testkit.Value(here[1].TLS())(t), testkit.Value(elsewhere[1].TLS())(t)
	other.InsecureSkipVerify = true
	bare := &tls.Config{InsecureSkipVerify: true}
	for name, tt := range map[string]struct {
		config *tls.Config
		want   bool
	}{
		"a peer": {peer, true}, "a peer of another cluster": {other, false}, "nobody": {bare, false},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, isRouted(t, here[0].Self().Address, tt.config), tt.want, "greeted as a server")
			named := tt.config.Clone()
			named.ServerName, _, _ = net.SplitHostPort(here[0].Self().Address) // the port is elsewhere than its certificate says
			conn, err := nats.Connect("tls://"+s.Client(), nats.Secure(named), nats.NoReconnect())
			testkit.Equal(t, err == nil, tt.want, "let in as a client (%v)", err)
			if err == nil {
				conn.Close()
			}
		})
	}
	_, err := nats.Connect("nats://"+s.Client(), nats.NoReconnect())
	testkit.That(t, err != nil, "let in without TLS")
	inside := testkit.Value(nats.Connect("", nats.InProcessServer(s)))(t)
	defer inside.Close()
	testkit.Equal(t, inside.ConnectedServerName(), "a", "the server inside")
	testkit.Equal(t, inside.MaxPayload(), int64(MaxPayload), "the largest message")
}

// isRouted tells whether the server greets who connects as another server would, with such
// certificates.
func isRouted(t *testing.T, address string, config *tls.Config) bool {
	t.Helper()
	plain := testkit.Value(net.Dial("tcp", address))(t)
	defer plain.Close()
	testkit.Must(t, plain.SetDeadline(time.Now().Add(time.Minute)))
	c := config.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address)
	conn := tls.Client(plain, c)
	if conn.Handshake() != nil {
		return false
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 1<<16)).ReadString('\n')
	return err == nil && len(line) > 4 && line[:4] == "INFO"
}

// C5, C8: a server that is alone knows that it has no majority, and goes in good order.
func TestAServerAlone(t *testing.T) {
	all := cluster(t)
	s := start(t, all[0])
	status := s.Status()
	testkit.That(t, status.Name == "a" && status.Version != "" && status.Stopped == "" && status.Leader == "" && len(status.Reached) == 0, "it is %+v", status)
	name, err := Ask(t.Context(), all[0].Self().Address, testkit.Value(all[1].TLS())(t))
	testkit.Must(t, err)
	testkit.Equal(t, name, "a", "who answers")
	s.Close()
	s.Close()
	_, err = Ask(t.Context(), all[0].Self().Address, testkit.Value(all[1].TLS())(t))
	testkit.That(t, errors.Is(err, syscall.ECONNREFUSED), "closed: %v", err)
}

// C8: an address that another program has is found before anything is opened.
func TestAnAddressInUse(t *testing.T) {
	all := cluster(t)
	l := testkit.Value(net.Listen("tcp", all[0].Self().Address))(t)
	defer l.Close()
	_, err := Open(t.Context(), config(t, all[0]))
	testkit.ErrorIs(t, err, ErrListen)
	testkit.ErrorIs(t, err, syscall.EADDRINUSE)
}

// C1, C8: of two servers with one bundle the second is not started where the first answers at its address,
// and is let in by no other where it does not.
func TestTwoServersWithOneBundle(t *testing.T) {
	all := cluster(t)
	var said lines
	logged := config(t, all[0])
	logged.Log = slog.New(slog.NewTextHandler(&said, nil))
	a, b := testkit.Value(Open(t.Context(), logged))(t), start(t, all[1])
	t.Cleanup(a.Close)
	testkit.Eventually(t, "two servers do not meet", func() bool { return a.Status().Reached["b"] && b.Status().Reached["a"] })
	second := config(t, all[1])
	second.Listen = net.JoinHostPort(parts.OwnLoopback(), "6222")
	_, err := Open(t.Context(), second)
	testkit.ErrorIs(t, err, ErrRuns)

	second.Address = second.Listen // where nobody answers yet
	var heard lines
	second.Log = slog.New(slog.NewTextHandler(&heard, nil))
	s := testkit.Value(Open(t.Context(), second))(t)
	t.Cleanup(s.Close)
	testkit.Eventually(t, "the second is not refused", func() bool { return strings.Contains(said.String(), "a second peer with the same bundle") })
	testkit.Eventually(t, "the second does not hear why", func() bool { return strings.Contains(heard.String(), "another process runs with this bundle") })
	letIn := func() bool { // by the word of the other: the second itself sees a connection before it is refused
		routes := testkit.Value(a.inner.Routez(nil))(t).Routes
		return slices.ContainsFunc(routes, func(r *server.RouteInfo) bool { return r.RemoteID == s.inner.ID() })
	}
	testkit.That(t, !letIn(), "the second is let in")
	b.Close()
	testkit.Eventually(t, "it is not let in when the first is gone", letIn)
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// C8: a folder that cannot be used is an error, not the end of the process.
func TestAFolderThatCannotBeUsed(t *testing.T) {
	cfg := config(t, cluster(t)[0])
	cfg.Dir = "/dev/null/x"
	_, err := Open(t.Context(), cfg)
	testkit.That(t, err != nil, "it starts")
}

// C8: who answers in another peer's place is found out.
func TestAskStrangers(t *testing.T) {
	here, elsewhere := cluster(t), cluster(t)
	start(t, here[0])
	_, err := Ask(t.Context(), here[0].Self().Address, testkit.Value(elsewhere[1].TLS())(t))
	testkit.ErrorIs(t, err, ErrStranger)
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") // who asks has gone or not
			conn.Close()
		}
	}()
	_, err = Ask(t.Context(), l.Addr().String(), testkit.Value(here[1].TLS())(t))
	testkit.That(t, err != nil, "another program is taken for a peer")
}
