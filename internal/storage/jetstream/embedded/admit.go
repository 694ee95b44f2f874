package embedded

import (
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// saySecond is how often it is said that a second server with the same name is refused, which tries again
// every second.
const saySecond = time.Minute

// admission judges other servers that connect and have shown a certificate of the cluster. Of two with
// one name the second is refused: servers would count what both say as the word of one, so that a message
// could be acknowledged and yet be on fewer disks than it has to.
type admission struct {
	name   string
	peers  []string // all who may be servers; none: any
	gate   *gate
	inner  *server.Server // set before it listens
	report *reporter

	mu   sync.Mutex
	said time.Time // guarded by mu
}

var _ server.Authentication = (*admission)(nil)

// Check is called by the server, for each connection of another.
func (a *admission) Check(c server.ClientAuthentication) bool {
	state := c.GetTLSConnectionState()
	if state == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	name, id := state.PeerCertificates[0].Subject.CommonName, c.GetOpts().Name
	if len(a.peers) > 0 && !slices.Contains(a.peers, name) {
		return false // a node is a client, and would be counted in majorities here
	}
	if !a.taken(name, id) {
		return true
	}
	a.refused(name, a.gate.origin(c.RemoteAddress()))
	return false
}

// taken tells whether a name is that of another server, by the random id that each has while it runs.
func (a *admission) taken(name, id string) bool {
	if name == a.name {
		return id != a.inner.ID() // a server meets itself where it is told its own address
	}
	routes, err := a.inner.Routez(nil)
	if err != nil {
		return false // it never fails without options
	}
	for _, r := range routes.Routes {
		if r.RemoteName == name && r.RemoteID != id {
			return true
		}
	}
	return false
}

func (a *admission) refused(name string, from net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.said) < saySecond {
		return
	}
	a.said = time.Now()
	a.report.log.Warn("a second peer with the same bundle is not let in: stop it, or give it the bundle of its own machine", "peer", name, "from", from)
}
