//go:build !linux

package amqp

import (
	"net"
	"time"
)

// setMaxRetryWait: no such thing here.
func setMaxRetryWait(*net.TCPConn, time.Duration) {}

// readTCPState: no such thing here. Keep-alive and the idle time-out notice a vanished
// machine, the latter later.
func readTCPState(net.Conn) (tcpState, bool) { return tcpState{}, false }
