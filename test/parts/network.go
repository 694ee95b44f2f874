package parts

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Network is some hosts on this machine, joined by a switch that the test process is at as well. Each
// host is a network namespace with an address of its own, so that cutting one off drops its packets
// as a pulled cable does: connections stay, and nobody hears of it. A process has one at a time.
type Network struct {
	// Address is the test process's.
	Address string

	name  string
	hosts []*Host
}

// Host is one of a network.
type Host struct {
	// Address is its IP address.
	Address string
	// Disk is its own, if it was given one; nil: it shares that of the machine.
	Disk *Disk

	space, port string // the namespace, and the host's port of the switch
}

// NewNetwork makes a network that is there until the test ends. It takes Linux and root, and a kernel
// that allows namespaces. Nothing that could be installed makes up for that, so that the test is
// skipped where it is refused.
func NewNetwork(t testing.TB, hosts int) *Network {
	t.Helper()
	n := newNetwork()
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Errorf("remove the network: %v", err)
		}
	})
	if err := n.make(hosts); err != nil {
		t.Skipf("no network of namespaces can be made: %v", err)
	}
	return n
}

// Host gives one of the hosts, which count from 0.
func (n *Network) Host(i int) *Host { return n.hosts[i] }

// Args is the command line that runs a program on the host. The process has the program's own id.
func (h *Host) Args(args ...string) []string {
	return append([]string{"ip", "netns", "exec", h.space}, args...)
}

// Cut has nothing pass to the host or from it, and Join ends that.
func (h *Host) Cut(t testing.TB)  { h.set(t, "down") }
func (h *Host) Join(t testing.TB) { h.set(t, "up") }

func (h *Host) set(t testing.TB, state string) {
	t.Helper()
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
