package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

const headBegins = "GET / HTTP/1.1\r\nHost: localhost\r\n"

// fields are so many bytes of a head, of as many fields as fit.
func fields(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "%x:\r\n", 0x1000+i)
	}
	return b.String()[:bytes]
}

// long is a field of so many bytes.
func long(bytes int) string { return "X-Long: " + strings.Repeat("x", bytes-10) + "\r\n" }

// write gives how much of a text is read; a connection of net.Pipe has no buffer.
func write(conn net.Conn, text string) (n int) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	n, _ = io.WriteString(conn, text)
	return n
}

func ask(t *testing.T, conn net.Conn, head string) {
	t.Helper()
	testkit.MustEqual(t, write(conn, head+"\r\n"), len(head)+2)
	answer := testkit.Value(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	testkit.Equal(t, answer.StatusCode, 200)
	testkit.Must(t, answer.Body.Close())
}

// R2: of the heads of strangers no more is read than they may make the yard hold; usual ones are, and
// larger ones of other addresses.
func TestHeadsOfStrangersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kib = 1 << 10
		y := newPorch(t, admission.Limits{AddressBytes: 20 * kib * headFactor, StrangerBytes: 32 * kib * headFactor})
		read := map[net.Conn]int{}
		for i := range 40 { // more than enough for all there is
			conn := y.dial(fmt.Sprint("10.0.0.", 1+i%2))
			read[conn] = write(conn, headBegins+fields(10*kib))
		}
		held, open := 0, 0
		for conn, bytes := range read {
			if _, err := conn.Write(nil); !errors.Is(err, io.ErrClosedPipe) { // else it has made room
				held += max(0, bytes-strangerHead)
				open++
			}
		}
		const buffer = 4 * kib // of a connection that waits
		testkit.That(t, open > 0, "all are closed")
		testkit.That(t, held <= 32*kib+open*buffer, "%d bytes are read of %d connections", held, open)
		// Most have what is free: they find no room, and need none.
		for range 5 {
			ask(t, y.dial("10.0.0.1"), headBegins+long(kib))
			ask(t, y.dial("10.0.0.3"), headBegins+long(kib))
			ask(t, y.dial("10.0.0.3"), headBegins+"Authorization: yes\r\n"+long(kib))
			ask(t, y.dial("10.0.0.3"), headBegins+"Authorization: yes\r\n"+long(9*kib))
		}
		time.Sleep(strangerTimeout)
		synctest.Wait()
		ask(t, y.dial("10.0.0.1"), headBegins+long(9*kib))
	})
}

// R2: what is no head of a stranger is not paid for: a body, and all that a client sends.
func TestOnlyHeadsOfStrangersArePaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newPorch(t, admission.Limits{StrangerBytes: 1, AddressBytes: 1})
		conn := y.dial("10.0.0.1")
		ask(t, conn, headBegins)
		ask(t, conn, headBegins+long(1<<10)) // and again: each head by itself
		ask(t, conn, headBegins+"Authorization: yes\r\n")
		ask(t, conn, headBegins+long(10<<10))
		body := strings.Repeat("x", 1<<20)
		go write(conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: yes\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		answer := testkit.Value(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		testkit.Equal(t, string(testkit.Value(io.ReadAll(answer.Body))(t)), fmt.Sprint(len(body)))
	})
}

// R2: a stranger's connection that may carry many requests is read a little at a time, so that these
// come to count before more are read. One request at a time needs none of it, nor does a client.
func TestStrangersAreReadInTurn(t *testing.T) {
	for _, c := range []struct {
		what                 string
		secure, known, whole bool
		most                 int
	}{
		{"a stranger", true, false, false, strangerRead},
		{"a stranger without TLS, and so without HTTP/2", false, false, false, 4 << 10},
		{"a stranger's body over HTTP/1.1", true, false, true, 4 << 10},
		{"a client", true, true, false, 4 << 10},
	} {
		t.Run(c.what, func(t *testing.T) {
			at := &visitor{head: head{secure: c.secure, whole: c.whole, free: 1 << 20}}
			at.head.of = at
			at.known.Store(c.known)
			conn := &headConn{Conn: endless{}, head: &at.head}
			for range 3 {
				testkit.Equal(t, testkit.Value(conn.Read(make([]byte, 4<<10)))(t), c.most)
			}
			testkit.Equal(t, testkit.Value(conn.Read(make([]byte, 5)))(t), 5)
		})
	}
}

// R2: what strangers have under way bounds what is read of them: not one part more, until one of their
// requests has ended.
func TestNoMoreIsReadThanIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := &visitor{head: head{secure: true, free: 1 << 20, changed: make(chan struct{}, 1)}}
		at.head.of = at
		at.asked.Store(strangerBacklog)
		conn := &headConn{Conn: endless{}, head: &at.head, closed: make(chan struct{})}
		read := 0
		go func() {
			for at.asked.Load() < strangerBacklog+1 {
				n, err := conn.Read(make([]byte, 4<<10))
				if err != nil {
					return
				}
				read += n
				at.asked.Add(1) // it was a request
			}
		}()
		synctest.Wait()
		testkit.Equal(t, read, 0)
		at.asked.Add(-1)
		at.head.wake()
		synctest.Wait()
		testkit.Equal(t, read, strangerRead)
		conn.closing.Do(func() { close(conn.closed) })
	})
}

// endless is a connection that has as much as is asked for.
type endless struct{ net.Conn }

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// R2: heads are large enough for tokens with many claims, and no larger; they have so many fields.
func TestHowLargeAHeadIs(t *testing.T) {
	r := start(t, everyListener(t))
	for _, version := range []string{"http", "https", "h2"} {
		transport := &http.Transport{TLSClientConfig: r.trust(), ForceAttemptHTTP2: version == "h2", DisableKeepAlives: true}
		for _, c := range []struct {
			what          string
			bytes, fields int
			status        int
		}{
			{"a large token", 12 << 10, 1, 200},
			{"more than a head", 6 << 10, 4, 431},
			{"many fields", 0, frame.MaxFields - 20, 200},
			{"too many fields", 0, frame.MaxFields + 1, 431},
		} {
			t.Run(version+", "+c.what, func(t *testing.T) {
				request := r.request("GET", "/api/v1/hubs", nil)
				request.URL.Scheme = strings.Replace(version, "h2", "https", 1)
				request.URL.Host = r.host(request.URL.Scheme)
				for i := range c.fields {
					request.Header.Set(fmt.Sprint("X-Field-", i), strings.Repeat("x", c.bytes))
				}
				answer, err := transport.RoundTrip(request)
				if version == "h2" && c.bytes*c.fields > maxHeaderBytes && err != nil {
					return // the connection is closed
				}
				testkit.Must(t, err)
				testkit.Must(t, answer.Body.Close())
				testkit.Equal(t, answer.StatusCode, c.status, "over %s", answer.Proto)
			})
		}
	}
}
