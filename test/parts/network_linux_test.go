package parts

import (
	"net"
	"os/exec"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A host that was cut off reaches nobody until it is joined again, and the others do.
func TestNetworkCutsHostsOff(t *testing.T) {
	network := NewNetwork(t, 2)
	first, second := network.Host(0), network.Host(1)
	listener := testkit.Value(net.Listen("tcp", network.Address+":0"))(t)
	defer listener.Close()
	reaches := func(h *Host) bool {
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		args := h.Args("timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/"+network.Address+"/"+port)
		return exec.Command(args[0], args[1:]...).Run() == nil
	}
	testkit.MustThat(t, reaches(first) && reaches(second), "the hosts do not reach the test")
	first.Cut(t)
	testkit.That(t, !reaches(first), "a host that was cut off reaches the test")
	testkit.That(t, reaches(second), "the other host does not")
	first.Join(t)
	testkit.Eventually(t, "a host that was joined does not reach the test", func() bool { return reaches(first) })
}
