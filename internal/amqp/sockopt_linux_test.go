package amqp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A machine that has vanished is noticed within 30 s by the kernel (H7).
func TestVanishedMachinesAreNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer client.Close()
	nc, err := l.Accept()
	must(t, err)
	defer nc.Close()
	tune(nc)
	raw, err := nc.(*net.TCPConn).SyscallConn()
	must(t, err)
	for name, want := range map[int]int{
		unix.TCP_KEEPIDLE: 10, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3, unix.TCP_USER_TIMEOUT: 25_000,
	} {
		must(t, raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name); err != nil || got != want {
				t.Errorf("option %d is %d, want %d (%v)", name, got, want, err)
			}
		}))
	}
}
