package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http2"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// R2: a stranger says anything to each listener: as AMQP or Kafka inside TLS, as AMQP inside WebSockets, in the place of
// the TLS handshake, in that of a WebSocket's frames, as HTTP/1.1, or as frames of HTTP/2. Nothing panics, and what was begun ends.
func FuzzStrangers(f *testing.F) {
	const sasl = "AMQP\x03\x01\x00\x00"
	anonymous := sasl + "\x00\x00\x00\x1c\x02\x01\x00\x00\x00\x53\x41\xc0\x0f\x02\xa3\x09ANONYMOUS\xa0\x00"
	open := anonymous + "AMQP\x00\x01\x00\x00" + "\x00\x00\x00\x14\x02\x00\x00\x00\x00\x53\x10\xc0\x07\x02\xa1\x01a\xa1\x01b"
	for _, said := range []string{
		"", sasl, anonymous, open, open + "\x00\x00\x00\x08\x02\x00\x00\x00", open + "\xff\xff\xff\xff\x02\x00\x00\x00",
		open + "\x00\x00\x00\x17\x02\x00\x00\x00\x00\x53\x11\xc0\x0a\x04\x40\x43\x52\xff\x52\xff",
		"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", "\x16\x03\x01\xff\xff", "\x82\x08" + sasl, "\x82\x88\x01\x02\x03\x04" + sasl,
		"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x88\x80\x00\x00\x00\x00", "\x89\x80\x00\x00\x00\x00", "GET / HTTP/1.1\r\n\r\n",
		"POST /api/v1/hubs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{}", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		http2.ClientPreface,
		"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff", "\x00\x00\x00\x0a\x00\x12\x00\x09\x00\x00\x00\x01\xff\xff", "\x7f\xff\xff\xff\x00\x00",
		"\x00\x00\x00\x12\x00\x03\x00\x01\x00\x00\x00\x01\x00\x01a\x7f\xff\xff\xff\xff",
	} {
		for way := range framesOfHTTP2 { // there most of these would take a second, which a client has to read a GOAWAY
			f.Add(way, []byte(said))
		}
	}
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for _, said := range []string{settings, settings + "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82", settings + "\xff\xff\xff\x01\x04\x00\x00\x00\x01"} {
		f.Add(framesOfHTTP2, []byte(said))
	}
	log := new(testkit.Buffer)
	yard := servertest.Start(f, servertest.Listeners, func(c *server.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	at := map[string]string{}
	for _, listener := range []string{"amqp", "amqps", "http", "https", "kafka", "kafkas"} {
		_, at[listener], _ = strings.Cut(yard.Addresses()[listener], "://")
	}
	f.Fuzz(func(t *testing.T, way byte, said []byte) {
		conn, err := strangersWays[int(way)%len(strangersWays)](t.Context(), at)
		testkit.Must(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		go func() { // it may end in the middle of it
			_, _ = conn.Write(said)
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
				return
			}
			_ = conn.Close() // a WebSocket has no half
		}()
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "i/o timeout") {
			t.Errorf("the yard goes on waiting after %q", said)
		}
		if strings.Contains(log.String(), "panic") {
			t.Fatalf("the yard says: %s", log.String())
		}
	})
}

// framesOfHTTP2 is the last of strangersWays.
const framesOfHTTP2 = byte(10)

// strangersWays are how a stranger gets to say something.
var strangersWays = []func(ctx context.Context, at map[string]string) (net.Conn, error){
	func(_ context.Context, at map[string]string) (net.Conn, error) { return net.Dial("tcp", at["amqp"]) },
	func(_ context.Context, at map[string]string) (net.Conn, error) { return net.Dial("tcp", at["amqps"]) },
	func(_ context.Context, at map[string]string) (net.Conn, error) { return net.Dial("tcp", at["kafka"]) },
	func(_ context.Context, at map[string]string) (net.Conn, error) {
		return tls.Dial("tcp", at["amqps"], &tls.Config{InsecureSkipVerify: true})
	},
	func(ctx context.Context, at map[string]string) (net.Conn, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		ws, _, err := websocket.Dial(ctx, "wss://"+at["https"]+"/$servicebus/websocket",
			&websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"AMQPWSB10"}})
		if err != nil {
			return nil, err
		}
		return websocket.NetConn(ctx, ws, websocket.MessageBinary), nil
	},
	func(_ context.Context, at map[string]string) (net.Conn, error) { // the frames are the stranger's own
		conn, err := net.Dial("tcp", at["http"])
		if err != nil {
			return nil, err
		}
		_, err = io.WriteString(conn, "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n")
		return conn, err
	},
	func(_ context.Context, at map[string]string) (net.Conn, error) {
		return tls.Dial("tcp", at["kafkas"], &tls.Config{InsecureSkipVerify: true})
	},
	func(_ context.Context, at map[string]string) (net.Conn, error) { return net.Dial("tcp", at["http"]) },
	func(_ context.Context, at map[string]string) (net.Conn, error) { return net.Dial("tcp", at["https"]) },
	func(_ context.Context, at map[string]string) (net.Conn, error) {
		return tls.Dial("tcp", at["https"], &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	},
	framesOfHTTP2: func(_ context.Context, at map[string]string) (net.Conn, error) {
		conn, err := tls.Dial("tcp", at["https"], &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err == nil {
			_, err = io.WriteString(conn, http2.ClientPreface)
		}
		return conn, err
	},
}
