package amqp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/transport/conns"
)

// setMaxRetryWait bounds how long the kernel waits before it sends again, or asks again a
// peer that had no room; by itself it would wait for up to two minutes. Linux 6.15 and
// later know how; on earlier ones the idle time-out is the bound for a machine that
// vanishes when its client has read nothing for a while.
//
// TCP's own user time-out is no way to notice a vanished machine: it also ends the
// connection of a client that reads nothing for as long, on a machine that answers.
func setMaxRetryWait(tcp *net.TCPConn, d time.Duration) {
	control(tcp, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(d.Milliseconds()))
	})
}

// readTCPState asks the kernel; ok is false where there is nothing to ask about.
func readTCPState(nc net.Conn) (s tcpState, ok bool) {
	tcp, ok := conns.Bottom(nc).(*net.TCPConn)
	if !ok {
		return s, false
	}
	var info *unix.TCPInfo
	err := control(tcp, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	if err != nil {
		return s, false
	}
	return tcpState{
		unacked: info.Unacked > 0,
		probes:  int(info.Probes),
		sent:    milliseconds(info.Last_data_sent),
		heard:   milliseconds(min(info.Last_ack_recv, info.Last_data_recv)),
	}, true
}

func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

// control gives the connection's file descriptor to a function.
func control(tcp *net.TCPConn, do func(fd int) error) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}
