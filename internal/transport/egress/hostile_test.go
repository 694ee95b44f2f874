package egress

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What is said of a token server holds no secret of its URL, and is a line that people can read.
func TestErrorsOfTokenServersHoldNoSecrets(t *testing.T) {
	closed := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	for name, url := range map[string]string{
		"one that is not there": "http://" + closed.Addr().String(),
		"one that hangs up":     serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"one that tells a story": serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "first line\r\nsecond \x1b[31mline\n"+strings.Repeat("x", 100_000))
		}),
		"one whose token breaks lines": serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"a\r\nX-Evil: 1","token_type":"bearer"}`)
		}),
		"one that has no token": serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":"s3cret-looking"}`)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, Config{Loopback: true})
			r := atBank(url)
			r.Endpoint.OAuth.TokenURL = url + "/tenant-hidden/token?code=hidden"
			a := c.Do(t.Context(), r)
			if a.Outcome != retry.GenericError || a.Status != 0 || a.Err == nil {
				t.Fatalf("%s, %d: %v", a.Outcome, a.Status, a.Err)
			}
			text := a.Err.Error()
			if strings.Contains(text, "hidden") || strings.Contains(text, "s3cret\"") || strings.ContainsAny(text, "\r\n\x1b") || len(text) > 1000 {
				t.Errorf("it says %q", text[:min(len(text), 1200)])
			}
			if !strings.Contains(text, strings.TrimPrefix(url, "http://")) {
				t.Errorf("it does not name the server: %s", text)
			}
		})
	}
}

// A receiver that answers with nonsense does not fill logs with it.
func TestErrorsAreShort(t *testing.T) {
	for name, answer := range map[string]string{
		"a line without end":    strings.Repeat("x", 200_000) + "\r\n\r\n",
		"a status that is none": "HTTP/1.1 " + strings.Repeat("9", 100_000) + "\r\n\r\n",
		"a header that is none": "HTTP/1.1 200 OK\r\n" + strings.Repeat("y", 100_000) + "\r\n\r\n",
		"a header without end":  "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("z", 1<<20) + "\r\n\r\n",
		"a transfer coding":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + strings.Repeat("z", 100_000) + "\r\n\r\n",
		"a length":              "HTTP/1.1 200 OK\r\nContent-Length: " + strings.Repeat("z", 100_000) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url := accept(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
			})
			c := newClient(t, Config{Loopback: true})
			a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: url + "/hidden?hidden"}, Method: "POST", Body: []byte("x")})
			if a.Outcome != retry.SocketError || a.Err == nil {
				t.Fatalf("%s, %d: %v", a.Outcome, a.Status, a.Err)
			}
			if text := a.Err.Error(); len(text) > 600 || strings.Contains(text, "hidden") {
				t.Errorf("%d bytes: %.200s", len(text), text)
			}
		})
	}
}

// Headers without end are refused over HTTP/2 as well.
func TestAHeaderBombOverHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	c := newClient(t, Config{Loopback: true})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: s.URL, SkipVerify: true}, Method: "POST", Body: []byte("x")})
	if a.Outcome != retry.SocketError || a.Err == nil {
		t.Errorf("%s, %d, %d headers: %v", a.Outcome, a.Status, len(a.Header), a.Err)
	}
}

// A refusal whose body never ends is not waited for before the request is sent with a new token.
func TestARefusalWithoutEndIsNotWaitedFor(t *testing.T) {
	b := &bank{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" || b.calls.Load() != 1 {
			b.ServeHTTP(w, r)
			return
		}
		b.calls.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "go away")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c := newClient(t, Config{Loopback: true})
	if a := c.Do(t.Context(), atBank(url)); a.Status != 200 {
		t.Fatalf("%d: %v", a.Status, a.Err)
	}
	r := atBank(url)
	r.Timeout = 10 * time.Second
	p := testkit.Value(c.purses.get(grant{OAuth: *r.Endpoint.OAuth}))(t)
	p.mu.Lock()
	p.got = p.got.Add(-tokenPause) // it has been in use for a while
	p.mu.Unlock()
	if a := c.Do(t.Context(), r); a.Status != 200 || a.Took > 5*time.Second {
		t.Errorf("%s, %d after %v: %v", a.Outcome, a.Status, a.Took, a.Err)
	}
}

// What was refused is still known by its error, however much is said.
func TestARefusalIsKnownByItsError(t *testing.T) {
	c := newClient(t, Config{})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://127.0.0.1/"}, Method: "POST"})
	if !errors.Is(a.Err, ErrForbidden) || !strings.Contains(a.Err.Error(), "--grid-allow 127.0.0.1/32") {
		t.Errorf("%v", a.Err)
	}
}

// A token server whose name leads inwards is not the endpoint's fault, and says which setting it is
// about.
func TestATokenServerWhoseNameLeadsInwards(t *testing.T) {
	c := newClient(t, Config{Resolver: &answers{sets: [][]netip.Addr{{private}}}})
	a := c.Do(t.Context(), atBank("http://bank.example"))
	if a.Outcome != retry.GenericError || !errors.Is(a.Err, ErrForbidden) || !strings.Contains(a.Err.Error(), "grid.allow") {
		t.Errorf("%s: %v", a.Outcome, a.Err)
	}
}
