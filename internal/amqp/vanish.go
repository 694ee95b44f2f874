package amqp

import (
	"net"
	"time"

	"github.com/eventyard/eventyard/internal/transport/conns"
)

// A machine that has vanished says nothing, and neither does one whose client reads nothing for a
// while. What distinguishes them is whether the machine answers: the kernel knows (tcpState), and
// we ask it when we would send a heartbeat and while a write does not get on.

// tcpState is what the kernel knows of the way to the peer's machine.
type tcpState struct {
	unacked bool // data is under way that the machine has not acknowledged
	probes  int  // how often the machine was asked, without data, since it last answered
	// sent is how long ago data was last sent, for the first time or again; heard how long
	// ago anything came from the machine, be it only an acknowledgement.
	sent, heard time.Duration
}

// owes: the machine should have answered, or should soon. A machine whose client reads nothing has
// room for nothing: then data waits, and the kernel asks at growing intervals whether there is
// room. As long as that is answered nothing is owed, however long ago the last answer was.
func (s tcpState) owes() bool { return s.probes > 0 || s.unacked && s.heard > s.sent }

// enough: it was asked more than once, for one packet may get lost. Data is sent again
// several times in a few seconds, but whether there is room may be asked once a minute.
func (s tcpState) enough() bool { return s.unacked || s.probes > 1 }

// vigil is the wait for an answer of the peer's machine.
type vigil struct {
	// since: something was under way then, and nothing has been heard since as far as we
	// know. Zero: nothing is under way.
	since time.Time
	next  time.Time // when to look
}

// lookSlack is how much later than it came an answer may seem to have come, or a write to
// have ended: the kernel's clock is coarse, and we may have been kept from looking at ours.
const lookSlack = 100 * time.Millisecond

// begin waits from now on; a machine that has not answered within limit has vanished.
func (v *vigil) begin(now time.Time, limit time.Duration) {
	*v = vigil{since: now, next: now.Add(limit * 2 / 3)}
}

// wrote notes that something was written.
func (v *vigil) wrote(now time.Time, limit time.Duration) {
	if v.since.IsZero() {
		v.begin(now, limit)
	}
}

// look judges what the kernel says, and reports whether the machine has vanished: it owes
// an answer, and has owed one for as long as limit without a sign of life.
func (v *vigil) look(now time.Time, s tcpState, limit time.Duration) bool {
	waited := now.Sub(v.since)
	switch {
	case !s.owes():
		*v = vigil{}
	case v.since.IsZero() || s.heard < waited+lookSlack:
		v.begin(now, limit) // what is under way now may be younger than the last sign
	case waited < limit:
		v.next = v.since.Add(limit)
	case s.enough():
		return true
	default:
		v.next = now.Add(limit / 3)
	}
	return false
}

// wait is how long until it is time to look.
func (v *vigil) wait(now time.Time) time.Duration {
	if v.since.IsZero() {
		return time.Hour
	}
	return v.next.Sub(now)
}

// watch looks after the peers of connections whose writing goroutine cannot, because it is
// in the midst of a write: it may not get on. Deadlines for each write would do for TCP,
// but TLS does not survive one; and one timer for all costs less than one for each.
func (s *Server) watch() {
	now := time.Now()
	var writing []*Conn
	s.conns.Locked(func(present int) {
		if s.watching = false; present > 0 {
			s.watchLocked()
		}
	})
	for _, c := range s.conns.All() {
		if c.writer.busy.Load() {
			writing = append(writing, c)
		}
	}
	for _, c := range writing {
		c.mu.Lock()
		if c.out.opened && !c.out.deaf() && !c.vanishedLocked(now) {
			c.silentLocked(now)
		}
		c.mu.Unlock()
	}
}

// watchLocked has connections watched.
func (s *Server) watchLocked() {
	if !s.watching {
		s.watching = true
		time.AfterFunc(s.vanishedAfter/3, s.watch)
	}
}

// tune makes the kernel notice a machine that has vanished while nothing is under way, and
// ask often enough while something is. Connections that are not TCP are left alone.
func tune(nc net.Conn) {
	tcp, ok := conns.Bottom(nc).(*net.TCPConn)
	if !ok {
		return
	}
	// It is best effort: a kernel that refuses still has its own, longer ways.
	tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveProbes,
	})
	setMaxRetryWait(tcp, maxRetryWait)
}
