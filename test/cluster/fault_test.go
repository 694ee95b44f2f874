package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fault is something that happens to the yard, for a time.
type fault struct {
	name       string
	lasts      time.Duration
	begin, end func(testing.TB, *yard)
}

func killServer(i int) fault {
	return fault{fmt.Sprintf("server %d was killed", i), 2 * time.Second,
		func(t testing.TB, y *yard) { y.servers.Kill(t, i) }, func(t testing.TB, y *yard) { y.servers.Restart(t, i) }}
}

func killAllServers() fault {
	return fault{"all servers were killed at once", time.Second,
		func(t testing.TB, y *yard) {
			for i := range size {
				y.servers.Kill(t, i)
			}
		},
		func(t testing.TB, y *yard) {
			for i := range size {
				y.servers.Restart(t, i)
			}
		}}
}

func freezeServer(i int, d time.Duration) fault {
	return fault{fmt.Sprintf("server %d was frozen", i), d,
		func(t testing.TB, y *yard) { y.servers.Freeze(t, i) }, func(t testing.TB, y *yard) { y.servers.Thaw(t, i) }}
}

func cutServer(i int, d time.Duration) fault {
	return fault{fmt.Sprintf("server %d was cut off", i), d,
		func(t testing.TB, y *yard) { y.network.Host(i).Cut(t) }, func(t testing.TB, y *yard) { y.network.Host(i).Join(t) }}
}

func killNode(i int) fault {
	return fault{fmt.Sprintf("node %d was killed", i), time.Second,
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.End("KILL")) },
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].start()) }}
}

func restartNode(i int) fault {
	return fault{fmt.Sprintf("node %d was restarted", i), 0,
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.End("TERM")) },
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].start()) }}
}

func freezeNode(i int, d time.Duration) fault {
	return fault{fmt.Sprintf("node %d was frozen", i), d,
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.Freeze()) },
		func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.Thaw()) }}
}

func cutNode(i int, d time.Duration) fault {
	return fault{fmt.Sprintf("node %d was cut off", i), d,
		func(t testing.TB, y *yard) { y.nodes[i].host.Cut(t) }, func(t testing.TB, y *yard) { y.nodes[i].host.Join(t) }}
}

// draw gives any fault, of up to 12 seconds.
func draw(random *rand.Rand) fault {
	i, d := random.IntN(size), time.Duration(1+random.IntN(12))*time.Second
	switch random.IntN(8) {
	case 0:
		return killServer(i)
	case 1:
		return killAllServers()
	case 2:
		return freezeServer(i, d)
	case 3:
		return cutServer(i, d)
	case 4:
		return killNode(i)
	case 5:
		return restartNode(i)
	case 6:
		return freezeNode(i, d)
	default:
		return cutNode(i, d)
	}
}
