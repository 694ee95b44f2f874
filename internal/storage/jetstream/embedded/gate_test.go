package embedded

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: strangers are counted by address and in all until they have gone, and those at addresses of peers by
// address alone.
func TestCensus(t *testing.T) {
	var c census
	one, peer := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var leave []func()
	for i := range 2 * maxEach {
		gone := c.admit(one, false)
		testkit.Equal(t, gone != nil, i < maxEach, "stranger %d of one address is let in", i)
		if gone != nil {
			leave = append(leave, gone)
		}
	}
	other := netip.MustParseAddr("10.1.0.0")
	for i := range 2 * maxStrangers {
		other = other.Next()
		testkit.Equal(t, c.admit(other, false) != nil, i < maxStrangers-maxEach, "stranger %d is let in", i)
	}
	for i := range 2 * maxEach {
		testkit.Equal(t, c.admit(peer, true) != nil, i < maxEach, "connection %d of a peer is let in", i)
	}
	for _, gone := range leave {
		gone()
		gone() // does nothing
	}
	testkit.Equal(t, c.count(), maxStrangers, "those that are counted")
	testkit.That(t, c.admit(one, false) != nil, "where some have gone no others are let in")
}

// R2: of 2,000 strangers that connect and say nothing, from one address or from many, few cost anything, a
// peer is let in meanwhile, and their time is bounded.
func TestManyStrangers(t *testing.T) {
	for name, tt := range map[string]struct{ addresses, most int }{"one address": {1, maxEach}, "many addresses": {200, maxStrangers}} {
		t.Run(name, func(t *testing.T) {
			all := cluster(t)
			a := start(t, all[0])
			before := runtime.NumGoroutine()
			var strangers []net.Conn
			for i := range 2000 {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.77.0.%d", 1+i%tt.addresses))}}
				conn, err := d.DialContext(t.Context(), "tcp", all[0].Self().Address)
				if err != nil {
					t.Skipf("this machine has only one address of loopback: %v", err)
				}
				defer conn.Close()
				strangers = append(strangers, conn)
			}
			testkit.Eventually(t, "few are left", func() bool { return a.gate.census.count() <= tt.most && runtime.NumGoroutine() <= before+4*tt.most })
			b := start(t, all[1])
			testkit.Eventually(t, "a peer is not let in", func() bool { return a.Status().Reached["b"] && b.Status().Reached["a"] })
			for _, conn := range strangers {
				testkit.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
				_, err := io.ReadAll(conn)
				testkit.That(t, !isTimeout(err), "a stranger stays connected")
			}
			testkit.Eventually(t, "none is counted in the end", func() bool { return a.gate.census.count() == 0 })
			testkit.That(t, a.Status().Reached["b"], "the peer is gone")
		})
	}
}

func isTimeout(err error) bool {
	timeout, is := err.(net.Error)
	return is && timeout.Timeout()
}
