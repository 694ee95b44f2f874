package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhatIsSentAndWhatComesBack(t *testing.T) {
	var got *http.Request
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Retry-After", "17")
		w.WriteHeader(503)
		io.WriteString(w, "come back later")
	})
	c := newClient(t, Config{Loopback: true})
	for name, late := range map[string]time.Duration{"stay": 0, "leave": time.Minute} {
		t.Run(name, func(t *testing.T) {
			a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url + "/hook?code=a%2Fb"}, Method: "POST", Header: http.Header{"X-Mine": {"1"}}, Body: []byte("hello"), Late: late})
			if a.Status != 503 || a.Outcome != retry.Busy || string(a.Head) != "come back later" || a.RetryAfter != 17*time.Second || a.Err != nil || a.Late != nil {
				t.Errorf("answer is %+v", a)
			}
			if a.Header.Get("X-Answer") != "yes" || a.Began.IsZero() || a.Took <= 0 {
				t.Errorf("answer is %+v", a)
			}
			if got.Method != "POST" || got.RequestURI != "/hook?code=a%2Fb" || got.Header.Get("X-Mine") != "1" || string(body) != "hello" || got.ContentLength != 5 {
				t.Errorf("got %s %s %v %q", got.Method, got.RequestURI, got.Header, body)
			}
			testkit.Equal(t, got.Header.Get("User-Agent"), "eventyard", "user agent")
			if _, has := got.Header["Idempotency-Key"]; has || got.Header.Get("Accept-Encoding") != "" {
				t.Errorf("headers that nobody asked for: %v", got.Header)
			}
		})
	}
}

func TestOutcomesOfAnswers(t *testing.T) {
	c := newClient(t, Config{Loopback: true})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.URL.Query().Get("status"), &status)
		w.WriteHeader(status)
	})
	for _, status := range []int{200, 202, 204, 206, 301, 304, 400, 401, 403, 404, 408, 410, 413, 429, 500, 503} {
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: fmt.Sprint(url, "?status=", status)}, Method: "POST", Body: []byte("x")})
		if a.Status != status || a.Outcome != retry.Classify(status) {
			t.Errorf("%d gives %d, %s: %v", status, a.Status, a.Outcome, a.Err)
		}
	}
}

func TestOutcomesWithoutAnAnswer(t *testing.T) {
	closed := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	hangUp := serve(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	silent := silence(t)
	babble := accept(t, func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, "SSH-2.0-hello\r\n\r\n")
	})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		url  string
		want retry.Outcome
	}{
		"nobody listens":             {t.Context(), "http://" + closed.Addr().String(), retry.SocketError},
		"the connection is closed":   {t.Context(), hangUp, retry.SocketError},
		"no HTTP":                    {t.Context(), babble, retry.SocketError},
		"no TLS":                     {t.Context(), strings.Replace(hangUp, "http:", "https:", 1), retry.SocketError},
		"a URL that cannot be used":  {t.Context(), "gopher://example.com/", retry.GenericError},
		"silence":                    {t.Context(), silent, retry.TimedOut},
		"silence where TLS is meant": {t.Context(), strings.Replace(silent, "http:", "https:", 1), retry.TimedOut},
		"the caller ends it":         {canceled, silent, retry.Canceled},
	} {
		timeout := 20 * time.Second
		if c.want == retry.TimedOut {
			timeout = 50 * time.Millisecond
		}
		for _, late := range []time.Duration{0, timeout + 10*time.Millisecond} {
			t.Run(fmt.Sprint(name, late), func(t *testing.T) {
				client := newClient(t, Config{Loopback: true})
				a := client.Do(c.ctx, Request{Endpoint: Endpoint{URL: c.url}, Method: "POST", Body: []byte("x"), Timeout: timeout, Late: late})
				if a.Outcome != c.want || a.Status != 0 || a.Err == nil {
					t.Errorf("got %s, %d: %v; want %s", a.Outcome, a.Status, a.Err, c.want)
				}
			})
		}
	}
}

// accept runs f with every connection to an address of its own.
func accept(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(10 * time.Second))
				f(conn)
				io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return "http://" + l.Addr().String()
}

// silence takes connections and says nothing.
func silence(t *testing.T) string { return accept(t, func(net.Conn) {}) }

func TestAnEndlessBodyDoesNotHoldTheAnswer(t *testing.T) {
	line := strings.Repeat("x", 1024)
	for name, pause := range map[string]time.Duration{ // between lines
		"as fast as it can":   0,
		"a line now and then": 50 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for {
					if _, err := io.WriteString(w, line); err != nil || http.NewResponseController(w).Flush() != nil {
						return
					}
					select {
					case <-time.After(pause):
					case <-r.Context().Done():
						return
					}
				}
			})
			client := newClient(t, Config{Loopback: true})
			began := time.Now()
			a := client.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Timeout: 20 * time.Second})
			if took := time.Since(began); took > drainTime+5*time.Second {
				t.Errorf("it took %v", took)
			}
			if a.Status != 200 || a.Outcome != retry.Delivered || string(a.Head) != line[:512] {
				t.Errorf("got %d, %s, %d bytes: %v", a.Status, a.Outcome, len(a.Head), a.Err)
			}
		})
	}
}

func TestHowMuchOfABodyIsKept(t *testing.T) {
	var text atomic.Pointer[string]
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			http.NewResponseController(w).Flush()
		}
		io.WriteString(w, *text.Load())
	})
	c := newClient(t, Config{Loopback: true})
	for _, x := range []struct{ sent, ask, want int }{
		{0, 0, 0}, {5, 0, 5}, {512, 0, 512}, {513, 0, 512}, {100, 10, 10}, {100, -1, 100}, {70 << 10, -1, 64 << 10}, {64 << 10, -1, 64 << 10},
	} {
		for _, path := range []string{"/", "/chunked"} {
			t.Run(fmt.Sprintf("%s: of %d bytes, asked for %d", path, x.sent, x.ask), func(t *testing.T) {
				s := strings.Repeat("y", x.sent)
				text.Store(&s)
				a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url + path}, Method: "POST", HeadBytes: x.ask})
				if len(a.Head) != x.want || a.Status != 200 {
					t.Errorf("came %d, want %d (%d, %v)", len(a.Head), x.want, a.Status, a.Err)
				}
			})
		}
	}
}

// A body that breaks off does not change what the status said.
func TestABrokenBodyIsStillAnAnswer(t *testing.T) {
	url := accept(t, func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		conn.Close()
	})
	c := newClient(t, Config{Loopback: true})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Body: []byte("x")})
	if a.Status != 200 || a.Outcome != retry.Delivered || string(a.Head) != "half" {
		t.Errorf("got %d, %s, %q: %v", a.Status, a.Outcome, a.Head, a.Err)
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-5": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0,
		"18446744073709551615":          365 * 24 * time.Hour,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0,
		"Fri, 02 Jan 9999 03:00:00 GMT": 365 * 24 * time.Hour,
	} {
		t.Run(text, func(t *testing.T) {
			testkit.Equal(t, retryAfter(http.Header{"Retry-After": {text}}, now), want, "%q", text)
		})
	}
}

// Connections are shared by all endpoints of the same trust, and used again.
func TestManyEndpointsShareConnections(t *testing.T) {
	var conns sync.Map
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		io.WriteString(w, strings.Repeat("z", 3000)) // has to be drained
	})
	c := newClient(t, Config{Loopback: true})
	for i := range 50 {
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: fmt.Sprint(url, "/", i)}, Method: "POST", Body: []byte("x"), Late: time.Minute * time.Duration(i%2)})
		if a.Status != 200 {
			t.Fatal(a.Err)
		}
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	testkit.Equal(t, n, 1, "connections for 50 requests, one after another")
}

func TestConnectionsOfABurstAreKept(t *testing.T) {
	const burst = 64
	var conns sync.Map
	var together sync.WaitGroup
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		together.Done()
		together.Wait()
	})
	c := newClient(t, Config{Loopback: true})
	for range 3 {
		together.Add(burst)
		var all sync.WaitGroup
		for range burst {
			all.Go(func() {
				if a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Late: time.Hour}); a.Status != 200 {
					t.Error(a.Err)
				}
			})
		}
		all.Wait()
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n > burst {
		t.Errorf("%d connections for bursts of %d", n, burst)
	}
}

// A server may close a connection just when we use it again. Nobody is at fault then.
func TestAConnectionThatDiedMeanwhileIsReplaced(t *testing.T) {
	var requests atomic.Int32
	url := accept(t, func(conn net.Conn) {
		b := make([]byte, 4096)
		if n, _ := conn.Read(b); n > 0 {
			requests.Add(1)
			io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
		conn.Read(b) // the next request dies here
		conn.Close()
	})
	c := newClient(t, Config{Loopback: true})
	for i := range 4 {
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Body: []byte("x")})
		testkit.Equal(t, a.Status, 204, "request %d: %s: %v", i, a.Outcome, a.Err)
	}
	testkit.Equal(t, requests.Load(), 4, "requests were answered")
}

// Bodies, large ones above all, are lent: they come back once, when nobody reads them any more.
func TestBodiesAreReleasedOnce(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(refuseUnread))
		s.EnableHTTP2, s.Config.ErrorLog = http2, quiet
		s.StartTLS()
		defer s.Close()
		c := newClient(t, Config{Loopback: true})
		for _, size := range []int{10, smallBytes, smallBytes + 1, 4 << 20} {
			for _, path := range []string{"/read", "/unread"} {
				a := lend(t, c, Endpoint{URL: s.URL + path, SkipVerify: true}, size)
				if path == "/read" && a.Status != 200 {
					t.Errorf("%d bytes: %d, %s: %v", size, a.Status, a.Outcome, a.Err)
				}
			}
		}
	}
}

// refuseUnread answers before it has read the body, or checks it.
func refuseUnread(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/unread" {
		w.WriteHeader(413)
		return
	}
	got, _ := io.ReadAll(r.Body)
	if bytes.ContainsFunc(got, func(r rune) bool { return r != 'b' }) {
		w.WriteHeader(500)
	}
}

// lend sends a body and uses it for something else as soon as it is released.
func lend(t *testing.T, c *Client, e Endpoint, size int) Answer {
	t.Helper()
	body := bytes.Repeat([]byte{'b'}, size)
	released := make(chan struct{})
	a := c.Do(t.Context(), Request{Endpoint: e, Method: "POST", Body: body, Late: time.Minute, Release: func() {
		clear(body)
		close(released)
	}})
	select {
	case <-released:
	case <-time.After(10 * time.Second):
		t.Errorf("%d bytes to %s were not released", size, e.URL)
	}
	return a
}

func TestNothingIsSentByAClientThatIsClosed(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	c := newClient(t, Config{Loopback: true})
	c.Close()
	c.Close()
	for _, late := range []time.Duration{0, time.Minute} {
		released := false
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Body: []byte("x"), Late: late, Release: func() { released = true }})
		if a.Outcome != retry.Canceled || !released {
			t.Errorf("got %s: %v (released: %v)", a.Outcome, a.Err, released)
		}
	}
}

func TestCloseEndsRequestsUnderWay(t *testing.T) {
	url := silence(t)
	for _, late := range []time.Duration{0, time.Hour} {
		c := newClient(t, Config{Loopback: true})
		answer := make(chan Answer, 1)
		go func() {
			answer <- c.Do(context.Background(), Request{Endpoint: Endpoint{URL: url}, Method: "POST", Late: late})
		}()
		c.Close()
		if a := <-answer; a.Outcome != retry.Canceled {
			t.Errorf("got %s: %v", a.Outcome, a.Err)
		}
	}
}
