package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fillServers fills the disks of some servers and frees them again. A server that has stopped storing for it is
// restarted, as its operator would.
func fillServers(s several, d time.Duration) fault {
	return fault{name: "disk full of " + s.named("server"), lasts: d, fills: true,
		begin: func(t testing.TB, y *yard) { s.each(func(i int) { y.network.Host(i).Disk.Fill(t) }) },
		end:   func(t testing.TB, y *yard) { s.each(func(i int) { y.makeRoom(t, i) }) }}
}

// makeRoom frees the disk of a server, and starts it if it does not run or has stopped storing. One that has is killed,
// as systems do with those that do not end in time: asked to, it may lock up in its own shutdown.
func (y *yard) makeRoom(t testing.TB, server int) {
	t.Helper()
	y.network.Host(server).Disk.Free(t)
	if y.servers.StoppedStoring(server) {
		y.servers.Kill(t, server)
	}
	y.servers.Restart(t, server)
}

// startServerOnFullDisk kills a server and starts it while its disk is full, which it refuses or does not bear
// for long.
func startServerOnFullDisk(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("server %d was killed and started on a full disk", i), lasts: d, fills: true,
		begin: func(t testing.TB, y *yard) {
			y.network.Host(i).Disk.Fill(t)
			y.servers.Kill(t, i)
			y.servers.TryStart(i)
		},
		end: func(t testing.TB, y *yard) { y.makeRoom(t, i) }}
}

// fillNodes fills the disks of some nodes with servers inside and frees them again. Each says that it has stopped
// storing, and ends when it has room; then it is started, as the system would.
func fillNodes(s several, d time.Duration) fault {
	return fault{name: "disk full of " + s.named("node"), lasts: d, fills: true,
		begin: func(t testing.TB, y *yard) { s.each(func(i int) { y.nodes[i].host.Disk.Fill(t) }) },
		until: func(t testing.TB, r *trial) {
			s.each(func(i int) { r.yard.nodes[i].saysNotReady(t, "has stopped storing", r.yard.nodes[i].name) })
		},
		end: func(t testing.TB, y *yard) {
			s.each(func(i int) { y.nodes[i].host.Disk.Free(t) })
			s.each(func(i int) { y.nodes[i].endsByItself(t) })
			y.startAll(t)
		}}
}

// startNodeOnFullDisk kills a node with a server inside and starts it while its disk is full, which it refuses
// or does not bear for long.
func startNodeOnFullDisk(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("node %d was killed and started on a full disk", i), lasts: d, fills: true,
		begin: func(t testing.TB, y *yard) {
			n := y.nodes[i]
			n.host.Disk.Fill(t)
			n.end(t, "KILL")
			testkit.Must(t, n.program.Start(func(string) bool { return true }))
		},
		end: func(t testing.TB, y *yard) {
			n := y.nodes[i]
			n.host.Disk.Free(t)
			eventually(t, n.name+" neither ends nor is ready when it has room", func() bool { return n.program.Died() || n.ready() })
			if n.program.Died() {
				n.endsByItself(t)
			}
			testkit.Must(t, n.start())
		}}
}
