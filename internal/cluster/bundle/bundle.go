// Package bundle makes and reads what each peer of a cluster is given: one file with the names and
// addresses of all peers, the yard's name and secret key, and a certificate by which peers know each
// other. A peer is a node that runs one of the yard's NATS servers inside its process. Nodes without a
// server have bundles as well, by which the peers let them in.
package bundle

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
)

// Format is the version of bundles that this program makes and reads.
const Format = 1

// Suffix ends the name of a bundle's file.
const Suffix = ".bundle"

// DefaultYard is the name of a yard that is given none.
const DefaultYard = "eventyard"

// Bundle is what one peer or node is given. All fields but Node, Certificate and Key are the same for all peers
// of a yard.
type Bundle struct {
	Format int `json:"format"`
	// Yard is the yard's name. Cluster is a random id: data of another cluster is never mixed in, be
	// its yard's name the same.
	Yard    string `json:"yard"`
	Cluster string `json:"cluster"`
	// Node is the peer, or one of the Nodes, that the bundle is for.
	Node  string `json:"node"`
	Peers []Peer `json:"peers"`
	// Nodes are the names of nodes without a server. Most clusters have none.
	Nodes []string `json:"nodes,omitempty"`
	// SecretsKey seals the secrets of the yard.
	SecretsKey string `json:"secretsKey"`
	// Authority signed the certificates of all peers; nobody has its key. Certificate and Key are this
	// peer's. All are PEM.
	Authority   string `json:"authority"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

var yardName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Make makes the bundles of a new cluster, one for each peer, then for each node without a server. It is pure
// but for the randomness of keys.
func Make(yard string, peers []Peer, now time.Time, nodes ...string) ([]Bundle, error) {
	return issue(Bundle{Format: Format, Yard: yard, Cluster: rand.Text(), Peers: peers, Nodes: nodes, SecretsKey: sealed.NewKey()}, now)
}

// Renew makes the bundles of the same cluster anew, with other certificates. Peers, if there are any,
// are where they are from now on; their names stay. Nodes, if there are any, are those that there are from now
// on.
func (b Bundle) Renew(peers []Peer, now time.Time, nodes ...string) ([]Bundle, error) {
	if len(nodes) > 0 {
		b.Nodes = nodes
	}
	if len(peers) > 0 {
		if slices.Compare(names(b.Peers), names(peers)) != 0 {
			return nil, fmt.Errorf("the peers of this cluster are %s, and stay so: give each as NAME=HOST:PORT with its name", strings.Join(names(b.Peers), ", "))
		}
		b.Peers = peers
	}
	return issue(b, now)
}

// issue completes a bundle for each peer, with certificates of a new authority.
func issue(base Bundle, now time.Time) ([]Bundle, error) {
	if !yardName.MatchString(base.Yard) {
		return nil, fmt.Errorf("yard %.40q: use 1 to 32 letters, digits, '-' and '_'", base.Yard)
	}
	if err := errors.Join(checkPeers(base.Peers), checkNodes(base.Peers, base.Nodes)); err != nil {
		return nil, err
	}
	authority, err := newAuthority(base.Yard, now)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	base.Authority = authority.pem()
	var all []Bundle
	for _, p := range base.Peers {
		b := base
		b.Node = p.Name
		if b.Certificate, b.Key, err = authority.issue(p, now); err != nil {
			return nil, fmt.Errorf("make the certificate of %s: %w", p.Name, err)
		}
		all = append(all, b)
	}
	for _, name := range base.Nodes {
		b := base
		b.Node = name
		if b.Certificate, b.Key, err = authority.issueNode(name, now); err != nil {
			return nil, fmt.Errorf("make the certificate of %s: %w", name, err)
		}
		all = append(all, b)
	}
	return all, nil
}

// IsNode tells whether the bundle is for a node without a server.
func (b Bundle) IsNode() bool { return slices.Contains(b.Nodes, b.Node) }

// Self is the peer that the bundle is for; none where it is for a node without a server.
func (b Bundle) Self() Peer {
	i := slices.IndexFunc(b.Peers, func(p Peer) bool { return p.Name == b.Node })
	if i < 0 {
		return Peer{} // Parse refuses such a bundle
	}
	return b.Peers[i]
}

// Parse reads a bundle. Its errors hold no secret.
func Parse(text []byte) (Bundle, error) {
	var b Bundle
	switch err := json.Unmarshal(text, &b); {
	case err != nil || b.Format == 0:
		return Bundle{}, errors.New("it is no bundle, or not whole: copy it again; bundles are made by: eventyard cluster init")
	case b.Format > Format:
		return Bundle{}, fmt.Errorf("it has format %d, and this program knows formats up to %d: run the program that made it, or a newer one", b.Format, Format)
	case !yardName.MatchString(b.Yard) || b.Cluster == "":
		return Bundle{}, errors.New("it names no yard")
	case b.Self() == Peer{} && !b.IsNode():
		return Bundle{}, fmt.Errorf("it is for %.80q, who is none of its peers", b.Node)
	}
	if err := errors.Join(checkPeers(b.Peers), checkNodes(b.Peers, b.Nodes)); err != nil {
		return Bundle{}, err
	}
	if _, err := sealed.ParseKeys(b.SecretsKey); err != nil {
		return Bundle{}, errors.New("its secret key cannot be read")
	}
	if _, err := b.TLS(); err != nil {
		return Bundle{}, err
	}
	return b, nil
}

// Check says what is wrong with the bundle now, by this machine's clock.
func (b Bundle) Check(now time.Time) error {
	pair, err := tls.X509KeyPair([]byte(b.Certificate), []byte(b.Key))
	if err != nil {
		return errBroken
	}
	switch leaf := pair.Leaf; {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("this machine's clock says %s, and the bundle was made after that, at %s: set the clock",
			now.UTC().Format(time.RFC3339), leaf.NotBefore.Add(clockSkew).Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("its certificate ended at %s, and this machine's clock says %s: set the clock if it is wrong; else make new bundles for all peers with: eventyard cluster init --renew BUNDLE",
			leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// Ends is when the certificate ends.
func (b Bundle) Ends() time.Time {
	pair, err := tls.X509KeyPair([]byte(b.Certificate), []byte(b.Key))
	if err != nil {
		return time.Time{} // Parse refuses such a bundle
	}
	return pair.Leaf.NotAfter
}

var errBroken = errors.New("its certificates cannot be read, or do not belong together: copy it again")

// TLS is how a peer's server speaks to the others, and to nodes: both sides show a certificate of this cluster's
// authority, and no other is taken.
func (b Bundle) TLS() (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(b.Certificate), []byte(b.Key))
	peers := x509.NewCertPool()
	if err != nil || !peers.AppendCertsFromPEM([]byte(b.Authority)) {
		return nil, errBroken
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		RootCAs: peers, ClientCAs: peers, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// Read reads the bundle in a file, which nobody but its owner and group may read.
func Read(file string) (Bundle, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Bundle{}, fmt.Errorf("read the bundle: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
		return Bundle{}, fmt.Errorf("read the bundle: everybody can read %s, and there are keys in it: chmod 600 %s", file, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Bundle{}, fmt.Errorf("read the bundle: %w", err)
	}
	b, err := Parse(text)
	if err != nil {
		return Bundle{}, fmt.Errorf("bundle %s: %w", file, err)
	}
	return b, nil
}

// Write writes bundles to a folder, for their owner only, and gives the names of the files. It makes the
// folder, or takes an empty one, and writes over nothing.
func Write(folder string, all []Bundle) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the bundles: %w", err)
	}
	if there, err := os.ReadDir(folder); err != nil || len(there) > 0 {
		return nil, errors.Join(err, fmt.Errorf("%s is not empty: name a folder that does not exist yet with --out", folder))
	}
	for _, b := range all {
		file := filepath.Join(folder, b.Node+Suffix)
		if err := b.write(file); err != nil {
			return files, fmt.Errorf("write the bundle of %s: %w", b.Node, err)
		}
		files = append(files, file)
	}
	return files, nil
}

// write makes a file and syncs it: there is no other copy of the keys in it.
func (b Bundle) write(file string) (err error) {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return f.Sync()
}
