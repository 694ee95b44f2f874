package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fault is something that happens to the yard, for a time.
type fault struct {
	name       string
	lasts      time.Duration
	begin, end func(testing.TB, *yard)
	// fills: a disk is full, after which servers may lack what others have.
	fills bool
	// severs gives the nodes that live and have no majority while it lasts; nil: there is one.
	severs func(*yard) []*node
	// until goes on before the end, if there is one.
	until func(testing.TB, *trial)
}

func killServer(i int) fault {
	return fault{name: fmt.Sprintf("server %d was killed", i), lasts: 2 * time.Second,
		begin: func(t testing.TB, y *yard) { y.servers.Kill(t, i) }, end: func(t testing.TB, y *yard) { y.servers.Restart(t, i) }}
}

// several are some of all servers, or of all nodes, the first of which is one of them.
type several struct{ first, count, all int }

func (s several) each(do func(i int)) {
	for i := range s.count {
		do((s.first + i) % s.all)
	}
}

// named is how a fault calls them.
func (s several) named(what string) string {
	switch s.count {
	case 1:
		return fmt.Sprintf("%s %d", what, s.first)
	case s.all:
		return "all " + what + "s"
	}
	return fmt.Sprintf("%d %ss from %d on", s.count, what, s.first)
}

func killServers(s several) fault {
	return fault{name: s.named("server") + " were killed at once", lasts: time.Second,
		begin: func(t testing.TB, y *yard) { s.each(func(i int) { y.servers.Kill(t, i) }) },
		end:   func(t testing.TB, y *yard) { s.each(func(i int) { y.servers.Restart(t, i) }) }}
}

func freezeServer(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("server %d was frozen", i), lasts: d,
		begin: func(t testing.TB, y *yard) { y.servers.Freeze(t, i) }, end: func(t testing.TB, y *yard) { y.servers.Thaw(t, i) }}
}

func cutServer(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("server %d was cut off", i), lasts: d,
		begin: func(t testing.TB, y *yard) { y.network.Host(i).Cut(t) }, end: func(t testing.TB, y *yard) { y.network.Host(i).Join(t) }}
}

func killNode(i int) fault {
	return fault{name: fmt.Sprintf("node %d was killed", i), lasts: time.Second,
		begin: func(t testing.TB, y *yard) { y.nodes[i].end(t, "KILL") },
		end:   func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].start()) }}
}

func restartNode(i int) fault {
	return fault{name: fmt.Sprintf("node %d was restarted", i), lasts: 0,
		begin: func(t testing.TB, y *yard) { y.nodes[i].end(t, "TERM") },
		end:   func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].start()) }}
}

func freezeNode(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("node %d was frozen", i), lasts: d,
		begin: func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.Freeze()) },
		end:   func(t testing.TB, y *yard) { testkit.Must(t, y.nodes[i].program.Thaw()) }}
}

func cutNode(i int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("node %d was cut off", i), lasts: d,
		begin: func(t testing.TB, y *yard) { y.nodes[i].host.Cut(t) }, end: func(t testing.TB, y *yard) { y.nodes[i].host.Join(t) }}
}

// isolateNode cuts a node off until the others do its work, which it does not know of.
func isolateNode(i int) fault {
	f := cutNode(i, 0)
	f.until = func(t testing.TB, r *trial) { r.goesOn(t, "without node "+strconv.Itoa(i)) }
	return f
}

// loseNode kills a node, which stays away until the others do its work.
func loseNode(i int) fault {
	f := killNode(i)
	f.name = fmt.Sprintf("node %d was lost", i)
	f.until = func(t testing.TB, r *trial) { r.goesOn(t, "without node "+strconv.Itoa(i)) }
	return f
}

func killAllNodes() fault {
	return fault{name: "all nodes were killed at once", lasts: time.Second,
		begin: func(t testing.TB, y *yard) {
			for _, n := range y.nodes {
				n.end(t, "KILL")
			}
		},
		end: func(t testing.TB, y *yard) { y.startAll(t) }}
}

// nodeAlone kills all nodes but one: where servers are inside, it has no majority.
func nodeAlone(alone int, d time.Duration) fault {
	return fault{name: fmt.Sprintf("node %d was alone", alone), lasts: d,
		begin: func(t testing.TB, y *yard) {
			for i, n := range y.nodes {
				if i != alone {
					n.end(t, "KILL")
				}
			}
		},
		severs: func(y *yard) []*node { return y.nodes[alone : alone+1] },
		end:    func(t testing.TB, y *yard) { y.startAll(t) }}
}

// withoutMajority kills all servers but one.
func withoutMajority(alone int, d time.Duration) fault {
	each := func(y *yard, do func(i int)) {
		for i := range y.servers.Replicas {
			if i != alone {
				do(i)
			}
		}
	}
	return fault{name: fmt.Sprintf("server %d was alone", alone), lasts: d,
		begin:  func(t testing.TB, y *yard) { each(y, func(i int) { y.servers.Kill(t, i) }) },
		severs: func(y *yard) []*node { return y.nodes },
		end:    func(t testing.TB, y *yard) { each(y, func(i int) { y.servers.Restart(t, i) }) }}
}

// rollNodes restarts one node after the other, each when all gets on again. With servers inside, all
// have all data by then.
func rollNodes() fault {
	return fault{name: "all nodes were restarted in turn", begin: nothing, end: nothing, until: func(t testing.TB, r *trial) {
		for i := range size {
			f := restartNode(i)
			f.begin(t, r.yard)
			f.end(t, r.yard)
			if r.yard.servers == nil {
				r.yard.whole(t)
			}
			r.goesOn(t, "after "+f.name)
		}
	}}
}

// rollServers restarts one server after the other, each when all have all data again.
func rollServers() fault {
	return fault{name: "all servers were restarted in turn", begin: nothing, end: nothing, until: func(t testing.TB, r *trial) {
		for i := range r.yard.servers.Replicas {
			r.yard.servers.Stop(t, i)
			r.yard.servers.Restart(t, i)
			r.yard.complete(t)
			r.goesOn(t, fmt.Sprintf("after server %d was restarted", i))
		}
	}}
}

func nothing(testing.TB, *yard) {}

// complete waits until every stream has a leader and all its replicas have all data.
func (y *yard) complete(t testing.TB) {
	t.Helper()
	conn := testkit.Value(nats.Connect(strings.TrimSuffix(y.servers.URL(), "/"), nats.Timeout(tryTime)))(t)
	defer conn.Close()
	js := testkit.Value(jetstream.New(conn))(t)
	eventually(t, "the servers do not have all data", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		list := js.ListStreams(ctx)
		n := 0
		for info := range list.Info() {
			if !y.current(info.Cluster) {
				return false
			}
			n++
		}
		return list.Err() == nil && n > 0
	})
}

func (y *yard) current(c *jetstream.ClusterInfo) bool {
	return c != nil && c.Leader != "" && len(c.Replicas) == y.servers.Replicas-1 &&
		!slices.ContainsFunc(c.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline })
}
