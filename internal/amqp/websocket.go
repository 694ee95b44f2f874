package amqp

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// subprotocols are the names under which clients ask for AMQP over a WebSocket: .NET and
// who follows the standard say amqp, the others AMQPWSB10.
var subprotocols = []string{"AMQPWSB10", "amqp"}

// ServeHTTP serves AMQP over a WebSocket. Which paths are for it is the caller's to say. Inside is
// the same stream of bytes as on TCP; the borders of the WebSocket's messages mean nothing.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	permit, err := s.cfg.Admission.Enter(remoteAddress(r.RemoteAddr))
	if err != nil {
		s.metrics.refuse(reasonConnections)
		http.Error(w, "the server takes no more AMQP connections for now: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer permit.Leave()
	hijacked := &hijackWriter{ResponseWriter: w}
	ws, err := websocket.Accept(hijacked, r, &websocket.AcceptOptions{Subprotocols: subprotocols})
	if err != nil {
		s.cfg.Log.Debug("WebSocket refused", "remote", r.RemoteAddr, "error", err)
		return // Accept has answered
	}
	// Deadlines of the HTTP server would otherwise end the connection later.
	hijacked.conn.SetDeadline(time.Time{})
	// The end of the request's context closes politely, which takes a connection that works.
	stream := websocket.NetConn(context.WithoutCancel(r.Context()), ws, websocket.MessageBinary)
	s.serve(r.Context(), &webConn{Conn: stream, under: hijacked.conn}, r.TLS, permit, nil)
}

// remoteAddress is a client's address as http.Request has it.
type remoteAddress string

func (remoteAddress) Network() string  { return "tcp" }
func (a remoteAddress) String() string { return string(a) }

// hijackWriter remembers the connection that is taken over.
type hijackWriter struct {
	http.ResponseWriter
	conn net.Conn
}

func (w *hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.conn = conn
	return conn, rw, err
}

// webConn is a WebSocket as a stream of bytes, which knows the connection under it.
type webConn struct {
	net.Conn
	under net.Conn
}

// Close says goodbye in the WebSocket's way, but waits no longer than closeWait for the answer.
func (w *webConn) Close() error {
	w.under.SetDeadline(time.Now().Add(closeWait))
	return w.Conn.Close()
}

// NetConn is the connection under the WebSocket.
func (w *webConn) NetConn() net.Conn { return w.under }
