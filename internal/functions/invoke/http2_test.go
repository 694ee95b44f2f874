package invoke

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/eventyard/eventyard/internal/testkit"
)

// stream is a request over HTTP/2 as the program sees it, which may answer with any frames.
type stream struct {
	*http2.Framer
	t  *testing.T
	id uint32
}

// headers sends fields, as name and value by turns, that do not end the stream.
func (s stream) headers(fields ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		testkit.Check(s.t, encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	testkit.Check(s.t, s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block.Bytes(), EndHeaders: true}))
}

// reset ends the stream, and waits until the other side has hung up.
func (s stream) reset() {
	testkit.Check(s.t, s.WriteRSTStream(s.id, http2.ErrCodeInternal))
	s.drain()
}

func (s stream) drain() {
	for {
		if _, err := s.ReadFrame(); err != nil {
			return
		}
	}
}

// http2Listener is a program that speaks HTTP/2 without TLS: f has each request when it is there in
// full, and the connection is closed after it.
func http2Listener(t *testing.T, f func(stream)) string {
	return listener(t, func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		s := stream{http2.NewFramer(conn, conn), t, 0}
		testkit.Check(t, s.WriteSettings())
		for {
			frame, err := s.ReadFrame()
			if err != nil {
				return
			}
			if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
				s.id = data.StreamID
				f(s)
				return
			}
		}
	})
}

// R7: HTTP/2 has more ways to break off than a connection that ends. Only an answer that is wrong in
// itself is a failure.
func TestWhatGoesWrongOverHTTP2(t *testing.T) {
	const lost = "the connection is lost without a word"
	for _, c := range []struct {
		name    string
		program func(stream)
		want    Verdict
		status  int
		parts   []string
	}{
		{"it hangs up", func(stream) {}, Unavailable, 0, []string{"the program closed the connection without an answer"}},
		{"the stream is reset", stream.reset, Unavailable, 0, []string{"INTERNAL_ERROR", "the program closed the connection without an answer"}},
		{"it goes away", func(s stream) { testkit.Check(s.t, s.WriteGoAway(s.id, http2.ErrCodeNo, nil)) }, Unavailable, 0, []string{"GOAWAY"}},
		{"it goes away in anger", func(s stream) { testkit.Check(s.t, s.WriteGoAway(s.id, http2.ErrCodeInternal, nil)) }, Unavailable, 0, []string{"GOAWAY"}},
		{lost, func(s stream) { s.drain() }, Unavailable, 0, []string{"connection lost"}},
		{"it breaks the connection's rules, of which a neighbour may be guilty", func(s stream) {
			testkit.Check(s.t, s.WriteRawFrame(http2.FrameData, 0, 0, nil))
			s.drain()
		}, Unavailable, 0, []string{"connection error"}},
		{"the stream is reset after a hint", func(s stream) { s.headers(":status", "103"); s.reset() }, Unavailable, 0, []string{"INTERNAL_ERROR"}},
		{"it goes away after a hint", func(s stream) {
			s.headers(":status", "103")
			testkit.Check(s.t, s.WriteGoAway(s.id, http2.ErrCodeNo, nil))
		}, Unavailable, 0, []string{"GOAWAY"}},
		{"an answer that is cut short", func(s stream) {
			s.headers(":status", "200")
			testkit.Check(s.t, s.WriteData(s.id, false, []byte("{}")))
			s.reset()
		}, Unavailable, 200, []string{"cut short", "nothing of the batch counts as done"}},
		{"an answer that is cut short by its going away", func(s stream) {
			s.headers(":status", "200", "content-length", "100")
			testkit.Check(s.t, s.WriteGoAway(s.id, http2.ErrCodeNo, nil))
		}, Unavailable, 200, []string{"cut short"}},
		{"an answer without a status", func(s stream) { s.headers("server", "x"); s.drain() }, Failed, 0, []string{"missing status"}},
		{"an answer whose status is none", func(s stream) { s.headers(":status", "x"); s.drain() }, Failed, 0, []string{"status"}},
		{"a header that must not be", func(s stream) { s.headers(":status", "200", "Upper", "x"); s.drain() }, Failed, 0, []string{"PROTOCOL_ERROR"}},
		{"headers that are too long", func(s stream) {
			s.headers(slices.Concat([]string{":status", "200"}, slices.Repeat([]string{"x", strings.Repeat("x", 3<<10)}, 3))...)
			s.drain()
		}, Failed, 0, []string{"header list"}},
		{"a redirect to nowhere", func(s stream) { s.headers(":status", "302", "location", "://"); s.drain() }, Failed, 0, []string{"Location"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var protocols http.Protocols
			protocols.SetUnencryptedHTTP2(true)
			transport := &http.Transport{Protocols: &protocols, MaxResponseHeaderBytes: 8 << 10}
			if c.name == lost { // nobody answers pings here
				transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: 20 * time.Millisecond}
			}
			url := http2Listener(t, c.program)
			t.Cleanup(transport.CloseIdleConnections) // which the listener waits for
			a := does(t, caller(t, Config{URL: url, Client: &http.Client{Transport: transport}}), threeEvents())
			wantAs(t, c.want, a, c.status, c.parts...)
			testkit.That(t, !strings.Contains(a.Error, "secret"), "it tells %q", a.Error)
		})
	}
}
