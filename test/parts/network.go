package parts

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// Network is some hosts on this machine, joined by a switch that the test process is at as well. Each
// host is a network namespace with an address of its own, so that cutting one off drops its packets
// as a pulled cable does: connections stay, and nobody hears of it. A process has one at a time.
//
// Where namespaces are refused hosts are addresses of loopback, and all that they say to each other and
// to the test process passes through proxies of the test process, which hold it back at a cut.
type Network struct {
	// Address is the test process's.
	Address string

	name    string
	hosts   []*Host
	proxies *proxies // nil: hosts are namespaces
}

// Host is one of a network.
type Host struct {
	// Address is its IP address.
	Address string
	// Disk is its own, if it was given one; nil: it shares that of the machine.
	Disk *Disk

	space, port string // the namespace, and the host's port of the switch

	proxies  *proxies // nil: it is a namespace
	inner    string   // where its programs listen
	cut      bool     // guarded by proxies.mu
	programs []string // their folders; guarded by proxies.mu
}

// NewNetwork makes a network that is there until the test ends. It takes Linux and root, and a kernel
// that allows namespaces. Nothing that could be installed makes up for that, so that the test is
// skipped where it is refused.
func NewNetwork(t testing.TB, hosts int) *Network {
	t.Helper()
	n, err := newSpaces(t, hosts, (*Network).make)
	if err != nil {
		t.Skipf("no network of namespaces can be made: %v", err)
	}
	return n
}

// AnyNetwork makes a network of namespaces or, where they are refused, of proxies, which is there until the
// test ends. It is nil, and the test is told, where there can be neither.
func AnyNetwork(t testing.TB, hosts int) *Network {
	t.Helper()
	return anyNetwork(t, hosts, (*Network).make)
}

func anyNetwork(t testing.TB, hosts int, spaces func(*Network, int) error) *Network {
	t.Helper()
	n, err := newSpaces(t, hosts, spaces)
	if err == nil {
		return n
	}
	t.Logf("no network of namespaces can be made, so proxies cut: %v", err)
	if n, err = newProxies(t, hosts); err != nil {
		t.Logf("nothing is cut: %v", err)
		return nil
	}
	return n
}

// NewProxies makes a network of proxies, which is there until the test ends. It takes Linux, without which
// the test is skipped.
func NewProxies(t testing.TB, hosts int) *Network {
	t.Helper()
	n, err := newProxies(t, hosts)
	if err != nil {
		t.Skip(err)
	}
	return n
}

// newSpaces makes a network of namespaces in some way.
func newSpaces(t testing.TB, hosts int, make func(*Network, int) error) (*Network, error) {
	n := newNetwork()
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Errorf("remove the network: %v", err)
		}
	})
	return n, make(n, hosts)
}

// Host gives one of the hosts, which count from 0.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Loopback tells whether all addresses are of loopback.
func (n *Network) Loopback() bool { return n != nil && n.proxies != nil }

// Serve has the test process listen at its address, and gives the address at which hosts reach that.
func (n *Network) Serve() (listener net.Listener, address string, err error) {
	if n.proxies == nil {
		listener, err = net.Listen("tcp", net.JoinHostPort(n.Address, "0"))
	} else {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, "", err
	}
	address = listener.Addr().String()
	if n.proxies != nil {
		_, port, _ := net.SplitHostPort(address)
		outer := net.JoinHostPort(n.Address, port)
		if err := n.proxies.pass(outer, address, nil); err != nil {
			return nil, "", errors.Join(err, listener.Close())
		}
		address = outer
	}
	return listener, address, nil
}

// Program is a program that runs on the host, not started yet; see NewProgram. The process has the
// program's own id. No host is this machine itself.
func (h *Host) Program(dir string, args ...string) *Program {
	switch {
	case h == nil:
	case h.proxies == nil:
		args = h.Args(args...)
	default:
		h.proxies.add(h, dir)
	}
	return NewProgram(dir, args...)
}

// Args is the command line that runs a program on the host of a network of namespaces.
func (h *Host) Args(args ...string) []string {
	return append([]string{"ip", "netns", "exec", h.space}, args...)
}

// Listen gives the address at which a program of the host has to listen for others to reach it at the
// host's own address and that port.
func (h *Host) Listen(port string) (string, error) {
	address := net.JoinHostPort(h.Address, port)
	if h.proxies == nil {
		return address, nil
	}
	inner := net.JoinHostPort(h.inner, port)
	return inner, h.proxies.pass(address, inner, h)
}

// Cut has nothing pass to the host or from it, and Join ends that.
func (h *Host) Cut(t testing.TB)  { h.set(t, "down") }
func (h *Host) Join(t testing.TB) { h.set(t, "up") }

func (h *Host) set(t testing.TB, state string) {
	t.Helper()
	if h.proxies != nil {
		h.proxies.set(h, state == "down")
		return
	}
	if err := ip("link", "set", h.port, state); err != nil {
		t.Fatal(err)
	}
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
