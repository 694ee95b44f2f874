package parts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// roleVariable tells a copy of the test binary to listen at an address and answer each line with it ("echo"), or
// to connect to one and print what it hears ("caller").
const roleVariable = "PARTS_TEST_ROLE"

// echoPort is one that nobody needs a right for.
const echoPort = "7007"

func play(role, address string) {
	var err error
	switch role {
	case "echo":
		var l net.Listener
		l, err = net.Listen("tcp", address)
		for err == nil {
			var conn net.Conn
			if conn, err = l.Accept(); err == nil {
				go func() { _, _ = io.Copy(conn, conn) }()
			}
		}
	case "caller":
		var conn net.Conn
		if conn, err = net.Dial("tcp", address); err == nil {
			_, err = io.Copy(os.Stdout, conn)
		}
	}
	println("ended:", fmt.Sprint(err))
	os.Exit(1)
}

// on runs this binary on a host in a role.
func on(t *testing.T, h *Host, role, address string) *Program {
	t.Helper()
	p := h.Program(t.TempDir(), "env", roleVariable+"="+role+" "+address, os.Args[0])
	t.Cleanup(func() { testkit.Check(t, p.End("KILL")) })
	testkit.Must(t, p.Start(func(string) bool { return true }))
	return p
}

// C4: what is said to a host that is cut off, and what a program there says on a connection that it has made
// itself, is heard when it is joined again, and not before. Others hear each other.
func TestProxiesCutHostsOff(t *testing.T) {
	network := NewProxies(t, 2)
	first, second := network.Host(0), network.Host(1)
	for _, h := range []*Host{first, second} {
		on(t, h, "echo", testkit.Value(h.Listen(echoPort))(t))
	}
	// A word that is to be heard may take long on a busy machine; one that is not is waited for only briefly.
	const patience, moment = 30 * time.Second, 200 * time.Millisecond
	talk := func(h *Host) (say func(string), heard func(string, time.Duration) bool) {
		var conn net.Conn
		var lines *bufio.Reader
		testkit.Eventually(t, "the host does not listen", func() bool {
			c, err := net.Dial("tcp", net.JoinHostPort(h.Address, echoPort))
			testkit.Must(t, err)
			lines = bufio.NewReader(c)
			_, err = io.WriteString(c, "hello\n")
			if err == nil {
				_, err = lines.ReadString('\n')
			}
			conn = c
			return err == nil
		})
		t.Cleanup(func() { _ = conn.Close() })
		say = func(text string) { testkit.Value(io.WriteString(conn, text+"\n"))(t) }
		heard = func(text string, within time.Duration) bool {
			testkit.Must(t, conn.SetReadDeadline(time.Now().Add(within)))
			line, err := lines.ReadString('\n')
			return err == nil && line == text+"\n"
		}
		return say, heard
	}
	say, heard := talk(first)
	sayOther, heardOther := talk(second)

	listener, address, err := network.Serve()
	testkit.Must(t, err)
	defer listener.Close()
	caller := on(t, first, "caller", address)
	called := testkit.Value(listener.Accept())(t)
	testkit.Value(io.WriteString(called, "before\n"))(t)
	testkit.Eventually(t, "the caller hears nothing", func() bool { return strings.Contains(caller.Printed(), "before") })

	first.Cut(t)
	say("held back")
	sayOther("passed")
	testkit.Value(io.WriteString(called, "after\n"))(t)
	testkit.That(t, !heard("held back", moment), "a host that was cut off answers")
	testkit.That(t, heardOther("passed", patience), "another host does not")
	testkit.That(t, !strings.Contains(caller.Printed(), "after"), "a host that was cut off hears what is said on its own connection")
	_, err = net.DialTimeout("tcp", net.JoinHostPort(first.Address, echoPort), patience)
	testkit.Check(t, err, "a connection to a host that was cut off is taken, and hears nothing")
	first.Join(t)
	testkit.That(t, heard("held back", patience), "a host that was joined does not answer")
	testkit.Eventually(t, "a host that was joined hears nothing", func() bool { return strings.Contains(caller.Printed(), "after") })
}

// A program that is killed ends its connections as the kernel does, and one that does not listen is refused.
func TestProxiesEndWhatEnds(t *testing.T) {
	h := NewProxies(t, 1).Host(0)
	address := net.JoinHostPort(h.Address, echoPort)
	inner := testkit.Value(h.Listen(echoPort))(t)
	ends := func(within time.Duration) bool {
		conn, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNRESET) { // it has ended before it was there
			return true
		}
		testkit.Must(t, err)
		defer conn.Close()
		testkit.Must(t, conn.SetDeadline(time.Now().Add(within)))
		_, err = conn.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	testkit.That(t, ends(30*time.Second), "a connection to nobody lasts")
	p := on(t, h, "echo", inner)
	testkit.Eventually(t, "the host does not listen", func() bool { return !ends(time.Second) })
	conn := testkit.Value(net.Dial("tcp", address))(t)
	defer conn.Close()
	testkit.Must(t, p.End("KILL"))
	testkit.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err := conn.Read(make([]byte, 1))
	testkit.That(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "it ends with %v", err)
}

// Namespaces are taken where they are to be had, and proxies where they are refused.
func TestAnyNetwork(t *testing.T) {
	refused := anyNetwork(t, 2, func(*Network, int) error { return os.ErrPermission })
	testkit.That(t, refused.Loopback() == canFindOwners, "where namespaces are refused: %+v", refused)
	allowed := anyNetwork(t, 2, func(*Network, int) error { return nil })
	testkit.That(t, allowed != nil && !allowed.Loopback(), "where namespaces are to be had: %+v", allowed)
}
