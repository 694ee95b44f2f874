package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: anonymous connections, whatever they do, keep nobody out who shows a right, nor probes.
func TestAnonymousConnectionsKeepNobodyOut(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere loopback has one address only")
	}
	cfg := everyListener(t)
	cfg.descriptors = 256
	shares := cfg.withDefaults().shares()
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"h"}`)
	secure := r.trust()
	secure.NextProtos, secure.ServerName = []string{"h2"}, "localhost"
	// Strangers make room for each other at any time, so that their errors mean nothing.
	attack := func(from *net.Dialer, listener string, begin func(net.Conn)) {
		conn, err := from.Dial("tcp", r.host(listener))
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
		begin(conn)
	}
	says := func(text string) func(net.Conn) {
		return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
	}
	streams := func(conn net.Conn) {
		newStreams(t, tls.Client(conn, secure)).ask(50, "/api/v1/openapi.json", false)
	}
	good := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: r.trust(), ForceAttemptHTTP2: true}}
	for round := range 8 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+round))}}
		for range shares.Strangers {
			attack(from, "http", says(""))
			attack(from, "http", says("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "))
			attack(from, "http", says("POST /api/v1/hubs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"))
			attack(from, "https", says(""))
		}
		attack(from, "https", streams)
		for _, listener := range []string{"http", "https"} {
			request := r.request("GET", "/api/v1/hubs", nil)
			request.URL.Scheme, request.URL.Host = listener, r.host(listener)
			response := testkit.Value(good.Do(request))(t)
			testkit.Must(t, response.Body.Close())
			testkit.Equal(t, response.StatusCode, 200, "%s in round %d", listener, round)
		}
		r.want(201, "POST", "/api/v1/hubs/h/events", `{"events":[{"body":"x"}]}`) // on a connection that is kept
		response := testkit.Value(good.Get(r.url + "/healthz"))(t)
		testkit.Must(t, response.Body.Close())
		testkit.Equal(t, response.StatusCode, 200, "a probe in round %d", round)
	}
	testkit.Must(t, send(t.Context(), r.session("http", auth.RootPolicy, auth.DevelopmentKey), "h", "over a WebSocket"))
	testkit.Must(t, send(t.Context(), r.session("amqp", auth.RootPolicy, auth.DevelopmentKey), "h", "over AMQP"))
	var open int
	metrics := r.want(200, "GET", "/metrics", "")
	at := strings.Index(metrics, "\neventyard_http_connections ")
	_ = testkit.Value(fmt.Sscan(strings.Fields(metrics[at:])[1], &open))(t)
	testkit.That(t, open <= shares.Strangers+shares.Clients[1], "%d connections are open", open)
}

// R2: with HTTP/2 a stranger has few requests answered at once, and a right shown ends that.
func TestStreamsOfStrangers(t *testing.T) {
	r := start(t, everyListener(t))
	secure := r.trust()
	secure.NextProtos = []string{"h2"}
	conn := testkit.Value(tls.Dial("tcp", r.host("https"), secure))(t)
	defer conn.Close()
	s := newStreams(t, conn)
	s.ask(20, "/api/v1/openapi.json", false)
	s.wait(strangerRequests, 20-strangerRequests)
	s.ask(1, "/api/v1/hubs", true)
	s.wait(strangerRequests+1, 20-strangerRequests)
	s.ask(20, "/api/v1/openapi.json", false)
	s.wait(strangerRequests+21, 20-strangerRequests)
}

// R2: a connection of a stranger who asks for more and more is closed.
func TestAStrangerWithTooManyStreams(t *testing.T) {
	r := start(t, everyListener(t))
	secure := r.trust()
	secure.NextProtos = []string{"h2"}
	conn := testkit.Value(tls.Dial("tcp", r.host("https"), secure))(t)
	defer conn.Close()
	s := newStreams(t, conn)
	s.ask(strangerRequests, "/api/v1/openapi.json", false)
	for range strangerExcess {
		s.ask(1, "/api/v1/openapi.json", false)
	}
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(strangerTimeout/2)))
	var err error
	for err == nil {
		_, err = s.framer.ReadFrame()
	}
	testkit.That(t, !errors.Is(err, os.ErrDeadlineExceeded), "the connection is still open")
}

// R2: so is one of a stranger who asks and takes it back, again and again.
func TestAStrangerWhoTakesRequestsBack(t *testing.T) {
	r := start(t, everyListener(t))
	secure := r.trust()
	secure.NextProtos = []string{"h2"}
	conn := testkit.Value(tls.Dial("tcp", r.host("https"), secure))(t)
	defer conn.Close()
	s := newStreams(t, conn)
	testkit.Must(t, conn.SetDeadline(time.Now().Add(strangerTimeout/2)))
	var err error
	for range 1000 * strangerExcess {
		if s.ask(1, "/api/v1/openapi.json", false); err == nil {
			err = s.framer.WriteRSTStream(s.next-2, http2.ErrCodeCancel)
		}
		if err != nil {
			break
		}
	}
	testkit.That(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "the connection is still open")
}

// R2: what was read of a connection that was closed for its excess is not judged any more.
func TestRequestsBehindTheLast(t *testing.T) {
	v, cut := &visitors{}, 0
	at := &visitor{cut: func() { cut++ }}
	at.head.of = at
	request := testkit.Value(http.NewRequestWithContext(context.WithValue(t.Context(), visitorKey{}, at), "GET", "/", nil))(t)
	for range strangerExcess {
		done, ok := v.ask(request)
		testkit.MustEqual(t, ok, true)
		testkit.Equal(t, cut, 0, "times that it is closed")
		at.exceed()
		done()
	}
	testkit.Equal(t, cut, 1, "times that it is closed")
	_, ok := v.ask(request)
	testkit.Equal(t, ok, false)
}

// streams asks over HTTP/2 and takes no body.
type streams struct {
	t              *testing.T
	framer         *http2.Framer
	next           uint32
	answered, ends int
}

func newStreams(t *testing.T, conn net.Conn) *streams {
	_, _ = io.WriteString(conn, http2.ClientPreface)
	s := &streams{t: t, framer: http2.NewFramer(conn, conn), next: 1}
	_ = s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	return s
}

func (s *streams) ask(n int, path string, right bool) {
	for range n {
		var head bytes.Buffer
		encoder := hpack.NewEncoder(&head)
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
			testkit.Must(s.t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
		if right {
			request := testkit.Value(http.NewRequest("GET", "/", nil))(s.t)
			request.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey)
			testkit.Must(s.t, encoder.WriteField(hpack.HeaderField{Name: "authorization", Value: request.Header.Get("Authorization")}))
		}
		_ = s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.next, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
		s.next += 2
	}
}

// wait reads until so many requests have an answer, of which no body is taken, and so many were cut
// off.
func (s *streams) wait(answered, ends int) {
	s.t.Helper()
	for s.answered < answered || s.ends < ends {
		frame := testkit.Value(s.framer.ReadFrame())(s.t)
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			s.answered++
		case *http2.RSTStreamFrame:
			s.ends++
		case *http2.GoAwayFrame:
			s.t.Fatalf("closed: %v", frame)
		}
	}
	testkit.Equal(s.t, s.answered, answered, "requests that are answered")
	testkit.Equal(s.t, s.ends, ends, "requests that are cut off")
}

// R2: clients are bounded as well. Who comes too late is told, and is in when another has left.
func TestTooManyHTTPClients(t *testing.T) {
	cfg := quick(t)
	cfg.HTTPMaxConnections = 1
	r := start(t, cfg)
	own, others := &http.Transport{}, &http.Client{Transport: &http.Transport{}}
	defer others.CloseIdleConnections()
	ask := func(c *http.Client) (int, string, string) {
		response := testkit.Value(c.Do(r.request("GET", "/api/v1/hubs", nil)))(t)
		defer response.Body.Close()
		body := testkit.Value(io.ReadAll(response.Body))(t)
		return response.StatusCode, response.Header.Get("Retry-After"), string(body)
	}
	status, _, _ := ask(&http.Client{Transport: own})
	testkit.Equal(t, status, 200)
	for range 3 {
		status, again, body := ask(others)
		testkit.Equal(t, status, 503)
		testkit.Equal(t, again, "5", "Retry-After")
		testkit.That(t, strings.Contains(body, "too-many-connections"), "told %s", body)
	}
	response := testkit.Value(others.Get(r.url + "/readyz"))(t)
	testkit.Must(t, response.Body.Close())
	testkit.Equal(t, response.StatusCode, 200)
	own.CloseIdleConnections()
	testkit.Eventually(t, "room for another", func() bool { status, _, _ := ask(others); return status == 200 })
}

// R2: how long a connection is kept that shows no right, whatever it does; probes keep theirs, and
// clients, too.
func TestHowLongStrangersStay(t *testing.T) {
	const probe = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	const client = "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: yes\r\n\r\n"
	for _, c := range []struct {
		what, sends string
		stays       time.Duration
	}{
		{"says nothing", "", headerTimeout},
		{"never ends its head", "GET / HTTP/1.1\r\nHost: ", headerTimeout},
		{"never sends its body", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", strangerTimeout},
		{"has asked once", probe, strangerIdle},
		{"has shown a right", client, idleTimeout},
		{"has shown a right and goes on without", client + probe, idleTimeout},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newPorch(t, admission.Limits{})
				conn, began := y.dial("10.0.0.1"), time.Now()
				_, err := io.WriteString(conn, c.sends)
				testkit.Must(t, err)
				_, _ = io.Copy(io.Discard, conn)
				testkit.Equal(t, time.Since(began), c.stays)
				y.empty()
			})
		})
	}
	t.Run("a probe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			y := newPorch(t, admission.Limits{})
			conn := y.dial("10.0.0.1")
			answers := bufio.NewReader(conn)
			for range 10 {
				_, err := io.WriteString(conn, probe)
				testkit.Must(t, err)
				response := testkit.Value(http.ReadResponse(answers, nil))(t)
				testkit.Equal(t, response.StatusCode, 200)
				_, err = io.Copy(io.Discard, response.Body)
				testkit.Must(t, err)
				time.Sleep(time.Minute)
			}
			testkit.Must(t, conn.Close())
			y.empty()
		})
	})
}

// R2: a client whose right is found only after its request was taken back rests already, and is closed after as
// long as others who rest.
func TestAClientThatRestsAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVisitors(admission.New(admission.Limits{}).Listener(10), prometheus.NewRegistry())
		client, server := net.Pipe()
		conn := distant{server, "10.0.0.1"}
		r := new(http.Request).WithContext(v.come(t.Context(), conn))
		v.changed(conn, http.StateActive)
		v.changed(conn, http.StateIdle)
		testkit.Must(t, v.Know(&frame.Call{ResponseWriter: httptest.NewRecorder(), R: r}))
		began := time.Now()
		testkit.ErrorIs(t, testkit.Err(client.Read(make([]byte, 1))), io.EOF)
		testkit.Equal(t, time.Since(began), idleTimeout)
		v.changed(conn, http.StateClosed)
	})
}

// R2: of the connections that clients may have one policy has half, and others find room beside it.
func TestOneHolderHasHalfOfTheConnections(t *testing.T) {
	v := newVisitors(admission.New(admission.Limits{}).Listener(2), prometheus.NewRegistry())
	comes := func(holder string) (header http.Header, err error) {
		_, server := net.Pipe()
		conn := distant{server, "10.0.0.1"}
		t.Cleanup(func() { v.changed(conn, http.StateClosed) })
		w, r := httptest.NewRecorder(), new(http.Request).WithContext(v.come(t.Context(), conn))
		for range 2 { // it is one connection, whatever it asks for
			err = v.Know(&frame.Call{ResponseWriter: w, R: r, Holder: holder})
		}
		return w.Header(), err
	}
	testkit.Must(t, testkit.Err(comes("greedy")))
	header, err := comes("greedy")
	full, ok := errors.AsType[*admission.FullError](err)
	testkit.MustEqual(t, ok, true, "the error is %v", err)
	testkit.Equal(t, *full, admission.FullError{Kind: admission.OfOne, Limit: 1})
	testkit.Equal(t, header.Get("Connection"), "close")
	testkit.Must(t, testkit.Err(comes("other")))
}

// R2: who makes room is closed; who finds none, because all permits are of this process, is told.
func TestStrangersOfHTTPMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPorch(t, admission.Limits{Strangers: 1})
		first := y.dial("10.0.0.1")
		second := y.dial("10.0.0.1")
		_, err := first.Read(make([]byte, 1))
		testkit.ErrorIs(t, err, io.EOF)
		_, err = io.WriteString(second, "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: yes\r\n\r\n")
		testkit.Must(t, err)
		testkit.Equal(t, testkit.Value(http.ReadResponse(bufio.NewReader(second), nil))(t).StatusCode, 200)

		y.dial("inside")
		refused := y.dial("10.0.0.2")
		testkit.Equal(t, testkit.Value(http.ReadResponse(bufio.NewReader(refused), nil))(t).StatusCode, 503)
		testkit.Equal(t, testutil.ToFloat64(y.refused), 1)
	})
}

// R2: a handler that panics before it has answered answers 500, and one that cuts its answer off
// answers nothing, to a stranger over HTTP/2 too.
func TestAStrangerHearsOfAPanic(t *testing.T) {
	v := newVisitors(admission.New(admission.Limits{}).Listener(10), prometheus.NewRegistry())
	fails := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		panic("of a test")
	})
	server := httptest.NewUnstartedServer(frame.New(frame.Config{Visitors: v, Log: testkit.Quiet()},
		frame.Plain("test", nil, fails, frame.Route{Method: "GET", Path: "/", Need: frame.Open("a test")})))
	server.Config.ConnContext, server.Config.ConnState, server.EnableHTTP2 = v.come, v.changed, true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	defer server.Close()
	for range 2 * strangerRequests {
		answer := testkit.Value(server.Client().Get(server.URL + "/"))(t)
		_ = answer.Body.Close()
		testkit.Equal(t, answer.Proto, "HTTP/2.0")
		testkit.Equal(t, answer.StatusCode, 500)
		answer, err := server.Client().Get(server.URL + "/cut")
		if err == nil {
			t.Fatalf("what was cut off is answered %s", answer.Status)
		}
	}
}

// R2: what belongs to a connection of HTTP/2 goes with it, also if requests were under way: else strangers
// who come and go would hold more memory than those who stay.
func TestConnectionsThatEndAreNotKept(t *testing.T) {
	r := start(t, everyListener(t))
	secure := r.trust()
	secure.NextProtos = []string{"h2"}
	come := func() {
		conn := testkit.Value(tls.Dial("tcp", r.host("https"), secure))(t)
		defer conn.Close()
		_, _ = io.WriteString(conn, http2.ClientPreface)
		f := http2.NewFramer(conn, conn)
		testkit.Must(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})) // so that no answer ends
		var head bytes.Buffer
		fields := hpack.NewEncoder(&head)
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", r.host("https")}, {":path", "/api/v1/openapi.json"}} {
			testkit.Must(t, fields.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
		testkit.Must(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}))
		for { // until it is answered
			frame := testkit.Value(f.ReadFrame())(t)
			if frame.Header().Type == http2.FrameHeaders {
				return
			}
		}
	}
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // what pools keep goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	come()
	before := live()
	const many = 200
	for range many {
		come()
	}
	testkit.Eventually(t, "connections that have ended cost nothing", func() bool { return live() < before+many*8<<10 })
}

// porch is the HTTP server's own part, which lets everybody in that shows anything.
type porch struct {
	*visitors
	t     *testing.T
	conns chan net.Conn
}

func newPorch(t *testing.T, limits admission.Limits) *porch {
	y := &porch{newVisitors(admission.New(limits).Listener(10), prometheus.NewRegistry()), t, make(chan net.Conn)}
	server := &http.Server{
		ConnContext: y.come, ConnState: y.changed, ReadHeaderTimeout: headerTimeout, IdleTimeout: -1,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done, ok := y.ask(r)
			testkit.Equal(t, ok, true)
			defer done()
			c := &frame.Call{ResponseWriter: w, R: r}
			if r.Header.Get("Authorization") != "" {
				testkit.Must(t, y.Know(c))
				n, _ := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n)
				return
			}
			answered, ok := y.Bear(c)
			testkit.Equal(t, ok, true)
			answered()
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(headListener{y}) }()
	t.Cleanup(func() {
		testkit.Must(t, server.Close())
		testkit.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return y
}

func (y *porch) dial(from string) net.Conn {
	client, server := net.Pipe()
	y.t.Cleanup(func() { _ = client.Close() })
	y.conns <- distant{server, address(from)}
	return client
}

// empty waits until all connections have ended.
func (y *porch) empty() {
	y.t.Helper()
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	testkit.Equal(y.t, len(y.all), 0, "connections that are kept")
	testkit.Equal(y.t, testutil.ToFloat64(y.open), 0)
}

func (y *porch) Accept() (net.Conn, error) {
	conn, ok := <-y.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (y *porch) Close() error   { close(y.conns); return nil }
func (y *porch) Addr() net.Addr { return address("porch") }

// distant is a connection that says where it comes from.
type distant struct {
	net.Conn
	from address
}

func (d distant) RemoteAddr() net.Addr { return d.from }

type address string

func (address) Network() string { return "test" }
func (a address) String() string {
	if net.ParseIP(string(a)) != nil {
		return net.JoinHostPort(string(a), "1")
	}
	return string(a)
}
