package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/eventyard/eventyard/internal/testkit"
)

// shows is who connects as a server with a certificate of a name.
type shows struct {
	server.ClientAuthentication
	name string
}

func (s shows) GetTLSConnectionState() *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: s.name}}}}
}

func (s shows) GetOpts() *server.ClientOpts { return &server.ClientOpts{Name: "ID" + s.name} }

// C1: a node without a server has a certificate of the cluster, and is let in as a server by none: it would
// count in majorities.
func TestOnlyPeersAreServers(t *testing.T) {
	s := start(t, cluster(t)[0])
	a := &admission{name: "a", peers: []string{"a", "b", "c"}, gate: s.gate, inner: s.inner, report: s.log}
	for name, want := range map[string]bool{"b": true, "c": true, "far-1": false, "": false} {
		testkit.Equal(t, a.Check(shows{name: name}), want, "%q is let in", name)
	}
}
