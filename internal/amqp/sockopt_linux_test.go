package amqp

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What the kernel is asked for: probes while nothing is under way, short pauses while
// something is, and no end of connections whose client reads nothing (H7).
func TestSocketOptions(t *testing.T) {
	nc := accepted(t)
	tune(nc)
	for name, want := range map[int]int{
		unix.TCP_KEEPIDLE: 10, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3, unix.TCP_USER_TIMEOUT: 0, unix.TCP_RTO_MAX_MS: 5000,
	} {
		testkit.Must(t, control(nc, func(fd int) error {
			got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, name)
			if name == unix.TCP_RTO_MAX_MS && errors.Is(err, unix.ENOPROTOOPT) {
				return nil // an older kernel
			}
			testkit.Equal(t, got, want, "option %d", name)
			return err
		}))
	}
}

// accepted is the server's end of a connection.
func accepted(t *testing.T) *net.TCPConn {
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := testkit.Value(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() { client.Close() })
	nc := testkit.Value(l.Accept())(t)
	t.Cleanup(func() { nc.Close() })
	return nc.(*net.TCPConn)
}

func TestNothingIsKnownOf(t *testing.T) {
	closed := accepted(t)
	closed.Close()
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	for name, nc := range map[string]net.Conn{"a closed connection": closed, "a pipe": pipe} {
		tune(nc)
		if s, ok := readTCPState(nc); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
