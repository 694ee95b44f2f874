package parts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

var networks atomic.Int32

// newNetwork names a network by its process, so that what a killed one has left is known.
func newNetwork() *Network {
	sweep()
	return &Network{name: fmt.Sprintf("ey%dn%d", os.Getpid(), networks.Add(1))} // at most 15 bytes with what follows
}

// make uses addresses that are set aside for tests of networks, 198.18.0.0/15, by the process: two
// packages are tested at once.
func (n *Network) make(hosts int) error {
	pid := os.Getpid()
	prefix := fmt.Sprintf("198.%d.%d.", 18+pid>>8%2, pid%256)
	n.Address = prefix + "1"
	if err := ip("link", "add", n.name+"s", "type", "bridge"); err != nil {
		return err
	}
	if err := errors.Join(ip("addr", "add", n.Address+"/24", "dev", n.name+"s"), ip("link", "set", n.name+"s", "up")); err != nil {
		return err
	}
	for i := range hosts {
		h := &Host{Address: fmt.Sprint(prefix, 10+i), space: fmt.Sprintf("%sh%d", n.name, i), port: fmt.Sprintf("%sp%d", n.name, i)}
		n.hosts = append(n.hosts, h)
		for _, step := range [][]string{
			{"netns", "add", h.space},
			{"link", "add", h.port, "type", "veth", "peer", "name", "net0", "netns", h.space},
			{"link", "set", h.port, "master", n.name + "s", "up"},
			{"-n", h.space, "addr", "add", h.Address + "/24", "dev", "net0"},
			{"-n", h.space, "link", "set", "net0", "up"},
			{"-n", h.space, "link", "set", "lo", "up"},
		} {
			if err := ip(step...); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove takes back what is there of the network.
func (n *Network) remove() error {
	var errs []error
	for _, h := range n.hosts {
		if _, err := os.Stat(spaces + h.space); err == nil {
			errs = append(errs, ip("netns", "del", h.space)) // the port goes with it
		}
	}
	if ip("link", "show", n.name+"s") == nil {
		errs = append(errs, ip("link", "del", n.name+"s"))
	}
	return errors.Join(errs...)
}

// spaces is the folder of all namespaces that have a name.
const spaces = "/var/run/netns/"

// sweep removes what test processes have left that were killed.
func sweep() {
	left, _ := filepath.Glob(spaces + "ey*")
	switches, _ := filepath.Glob("/sys/class/net/ey*s")
	for _, path := range slices.Concat(left, switches) {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(path), "ey%dn", &pid); err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		if strings.HasPrefix(path, spaces) {
			_ = ip("netns", "del", filepath.Base(path))
		} else {
			_ = ip("link", "del", filepath.Base(path))
		}
	}
}
