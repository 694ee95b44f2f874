package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// What the HTTP connection of a stranger may have: one by which no request came yet that was let
// in.
const (
	// strangerTimeout is for a whole request and its answer, from the first byte or from
	// connecting; strangerIdle is between them: probes of load balancers come once a minute at the
	// least.
	strangerTimeout = 30 * time.Second
	strangerIdle    = 75 * time.Second
	// strangerRequests may be answered at once, over HTTP/2. Those beyond it are cut off, and with the
	// last of strangerExcess, among which those count that the stranger takes back, the connection.
	strangerRequests = 4
	strangerExcess   = 32
)

// visitors are the connections of the HTTP server, each with its permit in the account of all
// listeners. It is the server's ConnContext and ConnState and the frame's Visitors.
type visitors struct {
	permits *admission.Listener
	open    prometheus.Gauge
	refused prometheus.Counter

	mu sync.Mutex
	// all and lastID are guarded by mu.
	all    map[net.Conn]*visitor
	lastID uint64
}

// visitor is one connection.
type visitor struct {
	permit *admission.Permit
	// known: a right was shown by it. It is never taken back.
	known atomic.Bool
	// hurry ends the connection if it stays a stranger's, or rests for too long.
	hurry   *time.Timer
	resting atomic.Bool
	// asked is how many requests are under way, answering how many of them are being answered without a
	// right, excess how many were cut off.
	asked, answering, excess atomic.Int32
	// over: it was closed for that.
	over atomic.Bool
	// head is what it sends of a request's.
	head head
	// cut closes the connection.
	cut func()

	// What operators are told of it.
	id       uint64
	began    time.Time
	remote   string
	requests atomic.Int64
	holder   atomic.Pointer[string] // who has shown a right last; nil: nobody
}

// visitorKey is where a request's context has its visitor.
type visitorKey struct{}

func newVisitors(permits *admission.Listener, metrics prometheus.Registerer) *visitors {
	v := &visitors{
		permits: permits, all: map[net.Conn]*visitor{},
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eventyard_http_connections", Help: "HTTP connections that are open, without those of WebSockets."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventyard_http_connections_refused_total", Help: "HTTP connections that were closed at once, because there were too many."}),
	}
	metrics.MustRegister(v.open, v.refused)
	return v
}

// come is called for each new connection, before anything is read from it.
func (v *visitors) come(ctx context.Context, conn net.Conn) context.Context {
	permit, err := v.permits.Enter(conn.RemoteAddr())
	if err != nil {
		v.refused.Inc()
		turnAway(conn)
		return ctx // by which no request will come
	}
	at := &visitor{permit: permit, cut: func() { cut(conn) }, began: time.Now(), remote: conn.RemoteAddr().String()}
	at.head.of = at
	at.head.come(conn)
	at.hurry = time.AfterFunc(strangerTimeout, func() {
		if !at.known.Load() || at.resting.Load() {
			at.cut()
		}
	})
	permit.OnEvict(at.cut)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastID++
	at.id = v.lastID
	v.all[conn] = at
	v.open.Inc()
	return context.WithValue(admission.WithRemote(ctx, conn.RemoteAddr().String()), visitorKey{}, at)
}

// changed is called when a connection begins to be used, rests or ends. It ends what rests for too long
// itself: where the server does, by its IdleTimeout, it keeps each connection of HTTP/2 that ended with
// requests under way for that long, and all that belongs to it, so that strangers who come and go cost
// memory without a bound.
func (v *visitors) changed(conn net.Conn, state http.ConnState) {
	v.mu.Lock()
	at := v.all[conn]
	over := at != nil && (state == http.StateClosed || state == http.StateHijacked)
	if over {
		delete(v.all, conn)
		v.open.Dec()
	}
	v.mu.Unlock()
	switch {
	case over:
		at.hurry.Stop()
		at.permit.Leave() // who has taken it over has a permit of its own
	case at == nil:
	case state == http.StateActive:
		at.work()
	case state == http.StateIdle:
		at.rest()
	}
}

func (at *visitor) work() {
	at.resting.Store(false)
	if at.known.Load() {
		at.hurry.Stop()
		return
	}
	at.hurry.Reset(strangerTimeout)
}

func (at *visitor) rest() {
	at.resting.Store(true)
	if at.known.Load() {
		at.hurry.Reset(idleTimeout)
		return
	}
	at.hurry.Reset(strangerIdle)
	if at.asked.Load() == 0 { // over HTTP/2 requests that were taken back may be under way still
		at.head.begin()
	}
}

// Know makes a connection a client's.
func (v *visitors) Know(c *frame.Call) error {
	at := visitorOf(c.R)
	if at != nil {
		at.heldBy(c.Holder)
	}
	if at == nil || at.known.Load() {
		return nil
	}
	if err := at.permit.Know(c.Holder); err != nil {
		c.Header().Set("Connection", "close") // it might find room by another, which has left
		return err
	}
	at.known.Store(true)
	if at.resting.Load() { // over HTTP/2 the request may have been taken back meanwhile
		at.hurry.Reset(idleTimeout)
	} else {
		at.hurry.Stop()
	}
	at.head.wake()
	return nil
}

// heldBy takes note of who has shown a right. It keeps nothing else of the call.
func (at *visitor) heldBy(holder string) {
	if known := at.holder.Load(); known == nil || *known != holder {
		at.holder.Store(&holder)
	}
}

// Bear bounds what HTTP/2 lets a stranger ask for at once.
func (v *visitors) Bear(c *frame.Call) (done func(), ok bool) {
	at := visitorOf(c.R)
	if at == nil || at.known.Load() {
		return func() {}, true
	}
	cost := 0
	if c.R.ProtoMajor == 2 { // else the connection has paid for it
		cost = costOf(c.R)
	}
	if at.answering.Add(1) > strangerRequests || !at.permit.Claim(cost) {
		at.answering.Add(-1)
		at.exceed()
		return nil, false
	}
	return func() {
		defer at.permit.Free(cost)
		if c.R.ProtoMajor == 2 && c.Status() != 0 { // else it is being cut off, which a flush would take for an answer
			// What the client has not taken yet counts, also of its own body.
			_ = c.R.Body.Close()
			_ = http.NewResponseController(c).Flush()
		}
		at.answering.Add(-1)
	}, true
}

// exceed counts what a stranger has asked for in excess, and ends the connection if that is too much.
func (at *visitor) exceed() {
	if at.excess.Add(1) >= strangerExcess {
		at.cut()
		at.over.Store(true) // only now: nobody hears what is answered from here on
	}
}

// ask is called with each request, before it is judged, and done after it. One that the client has
// taken back meanwhile has cost as much as any other, and bounds of what is under way at once do not
// count it. Not ok: the connection is closed, and the request was read before that.
func (v *visitors) ask(r *http.Request) (done func(), ok bool) {
	at := visitorOf(r)
	if at != nil {
		at.requests.Add(1)
	}
	if at == nil || at.known.Load() {
		return func() {}, true
	}
	if at.over.Load() {
		return nil, false
	}
	at.asked.Add(1)
	at.head.looked(r)
	return func() {
		if r.ProtoMajor == 2 && !at.known.Load() && r.Context().Err() != nil {
			at.exceed()
		}
		if left := at.asked.Add(-1); left == 0 && r.ProtoMajor == 2 {
			at.head.begin()
		} else if left == strangerBacklog-1 {
			at.head.wake()
		}
	}, true
}

// leave gives up the permit of a request's connection, which is about to get one of another
// listener or to be closed.
func (v *visitors) leave(r *http.Request) {
	if at := visitorOf(r); at != nil {
		at.permit.Leave()
	}
}

func visitorOf(r *http.Request) *visitor {
	at, _ := r.Context().Value(visitorKey{}).(*visitor)
	return at
}

// turnAway closes a new connection; without TLS it says why, which the connection has room for.
func turnAway(conn net.Conn) {
	if _, secure := conn.(*tls.Conn); !secure {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
	}
	cut(conn)
}

// cut closes a connection without the ceremonies of TLS, for which the client may have no time.
func cut(conn net.Conn) { _ = beneath(conn).Close() }

func beneath(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}
