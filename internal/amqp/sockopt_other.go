//go:build !linux

package amqp

import (
	"net"
	"time"
)

// setUserTimeout: no such thing here. The idle time-out notices a vanished machine, later.
func setUserTimeout(*net.TCPConn, time.Duration) {}
