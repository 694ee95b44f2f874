package amqp

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What follows asks a real kernel, about connections of every kind. A machine counts as
// vanished sooner than elsewhere, for the clock is the real one: but not before it had to
// answer, for kernels answer nobody more often than every half second that asks for room.
const vanishedSoon = 1500 * time.Millisecond

// overNetwork are the ways to reach a server on a listener, from the client's end of a
// connection that is in its queue.
var overNetwork = map[string]func(f *fixture, l net.Listener, nc net.Conn) net.Conn{
	"TCP": func(f *fixture, l net.Listener, nc net.Conn) net.Conn {
		f.serveListener(l)
		return nc
	},
	"TLS": func(f *fixture, l net.Listener, nc net.Conn) net.Conn {
		cert, roots := certificate(f.t, "yard.example.test")
		f.serveListener(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}))
		return tls.Client(nc, &tls.Config{ServerName: "yard.example.test", RootCAs: roots})
	},
	"WebSocket": func(f *fixture, l net.Listener, nc net.Conn) net.Conn {
		return f.webOver(l, nc, (*httptest.Server).Start)
	},
	"WebSocket and TLS": func(f *fixture, l net.Listener, nc net.Conn) net.Conn {
		return f.webOver(l, nc, (*httptest.Server).StartTLS)
	},
}

func (f *fixture) serveListener(l net.Listener) {
	f.serves.Go(func() {
		testkit.Check(f.t, f.server.Serve(context.Background(), l))
	})
}

// webOver serves HTTP on a listener, and goes through a connection to a WebSocket there.
func (f *fixture) webOver(l net.Listener, nc net.Conn, start func(*httptest.Server)) net.Conn {
	web := f.web(func(s *httptest.Server) {
		s.Listener.Close()
		s.Listener = l
		start(s)
	})
	client := web.Client()
	client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	ws, _, err := websocket.Dial(f.t.Context(), web.URL, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"amqp"}})
	testkit.Must(f.t, err)
	return websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
}

// serveReal serves peers whose machines the kernel knows, and tells when one was looked at
// that is as the test says.
func serveReal(t *testing.T, out *source, limit time.Duration, as func(tcpState) bool) (*fixture, chan struct{}) {
	f := serve(t, accept(nil, out))
	f.server.vanishedAfter = limit
	looked := make(chan struct{})
	var looks atomic.Int64
	f.server.tcpState = func(nc net.Conn) (tcpState, bool) {
		s, ok := readTCPState(nc)
		if ok && as(s) && looks.Add(1) == 2 {
			close(looked)
		}
		return s, ok
	}
	return f, looked
}

// A live client whose buffers are full stays: its machine answers when it is asked, however
// seldom that is.
func TestClosedWindowIsNoVanishedMachine(t *testing.T) { // H7
	t.Parallel()
	for _, name := range []string{"TCP", "WebSocket and TLS"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Its last answer is too old for it to be taken for alive by that alone.
			f, looked := serveReal(t, endless(nil, 1000), vanishedSoon, func(s tcpState) bool { return s.heard > vanishedSoon+lookSlack })
			l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
			nc, err := net.Dial("tcp", l.Addr().String())
			testkit.Must(t, err)
			client := overNetwork[name](f, l, nc)
			t.Cleanup(func() { nc.Close() })
			_, err = client.Write(greedy())
			testkit.Must(t, err)
			receive(t, looked, "a look at a machine that is asked seldom")
			_, err = io.CopyN(io.Discard, client, 20<<20) // more than was buffered
			testkit.Must(t, err)
			if f.refused(reasonVanished) > 0 {
				t.Error("taken for vanished")
			}
		})
	}
}

// A machine that is gone is noticed, when all that is under way is a heartbeat.
func TestKernelNoticesAVanishedMachine(t *testing.T) { // H7
	t.Parallel()
	for name := range overNetwork {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testVanish(t, name, &source{}, vanishedSoon/2, func(p *rawPeer) {
				p.reader.Go(p.read)
				p.open(func(o *wire.Open) { o.IdleTimeout = wire.Some(uint32(200)) }) // heartbeats, soon
				ask[wire.Begin](p, 0, newBegin(), receiver("r", 0))
				expect[wire.Attach](p)
			})
		})
	}
}

// So is one that had no room left.
func TestKernelNoticesAVanishedMachineWithoutRoom(t *testing.T) { // H7
	t.Parallel()
	testVanish(t, "TLS", endless(nil, 1000), vanishedSoon, func(p *rawPeer) { p.write(greedy()) })
}

func testVanish(t *testing.T, name string, out *source, limit time.Duration, begin func(p *rawPeer)) {
	gone := make(chan struct{})
	out.onClose = func() { close(gone) }
	f, looked := serveReal(t, out, limit, func(s tcpState) bool { return !s.owes() })
	l, nc, vanish := privateNetwork(t)
	p := quietPeer(t, overNetwork[name](f, l, nc))
	t.Cleanup(func() { nc.Close() }) // no ceremonies: there is nobody to hear them
	begin(p)
	receive(t, looked, "a look at a machine that owes nothing")
	testkit.MustEqual(t, f.refused(reasonVanished), 0, "taken for vanished too early")
	vanish()
	receive(t, gone, "the end of the link")
	testkit.Equal(t, f.refused(reasonVanished), 1, "not counted")
}

// missing skips a test whose machine cannot do it, but not where every test has to run.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// privateNetwork makes a network that nobody else uses, a listener and a connection in it,
// and a function after which neither end hears of the other.
func privateNetwork(t *testing.T) (net.Listener, net.Conn, func()) {
	if os.Geteuid() != 0 {
		missing(t, "only root may make a network")
	}
	var n network
	made := make(chan error)
	go func() {
		// The thread goes into the network, and ends with this goroutine; sockets stay
		// where they were made.
		runtime.LockOSThread()
		made <- n.make()
	}()
	if err := <-made; err != nil {
		missing(t, "no network can be made: %v", err)
	}
	t.Cleanup(func() { unix.Close(n.fd) })
	return n.listener, n.client, func() { testkit.Must(t, n.loopback(0)) }
}

// network is one of its own, with nothing but a loopback device.
type network struct {
	fd       int // a socket in it
	listener net.Listener
	client   net.Conn
}

func (n *network) make() (err error) {
	if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if n.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err = n.loopback(unix.IFF_UP); err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	n.client, err = net.Dial("tcp", n.listener.Addr().String())
	return err
}

// loopback takes the device up or down.
func (n *network) loopback(flags uint16) error {
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(flags)
	return unix.IoctlIfreq(n.fd, unix.SIOCSIFFLAGS, request)
}
