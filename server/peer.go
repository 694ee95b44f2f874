package server

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage"
)

var (
	// ErrPeerFolder: the data folder is that of a peer, and holds no whole yard. ErrOtherPeer: it is not
	// that of the peer whose bundle was given.
	ErrPeerFolder = storage.ErrPeerFolder
	ErrOtherPeer  = storage.ErrOtherPeer
)

// Peer makes this process one of the three or five nodes that have the yard's NATS servers inside. The
// zero value does not.
type Peer struct {
	// Bundle is what this peer was given: its name, the others, and what lets them in to each other.
	Bundle *Bundle
	// Listen is the address at which other peers are listened to. Empty means that of the bundle, or all
	// IPv4 addresses of this machine where the bundle has a host name.
	Listen string
	// ListenNodes is the address at which nodes without a server are let in, where the bundles have some. Empty
	// means that of the bundle, or all IPv4 addresses, at a port 2000 below that for peers.
	ListenNodes string
	// Replicas is how many peers keep each event; zero means all.
	Replicas int
	// MaxStoreBytes is how much this peer keeps on disk; zero means what it has and three quarters of
	// what is free. MaxMemoryBytes bounds streams in memory; zero means 64 MiB.
	MaxStoreBytes, MaxMemoryBytes int64
	// HubStreams is how many streams a new hub is spread over, 1 to 16; zero means one for each 16 partitions.
	// StreamBytes is how much a stream may hold, 1 GiB or more; zero means that only MaxStoreBytes counts.
	HubStreams  int
	StreamBytes int64
}

// Bundle is what a peer is given: one file, made by `eventyard cluster init` or NewBundles.
type Bundle struct{ content bundle.Bundle }

// ReadBundle reads a file, which only its owner and group may read. Errors: fs.ErrNotExist and
// sentences for the operator, which hold no secret.
func ReadBundle(file string) (*Bundle, error) {
	b, err := bundle.Read(file)
	if err != nil {
		return nil, err
	}
	return &Bundle{b}, nil
}

// BundlePeer is a peer as its bundle has it, or a node without a server, which has no Address.
type BundlePeer struct {
	Name, Address string
	// File is its bundle, where bundles were written.
	File string
}

// NewBundles makes a cluster: the bundles of its peers, in a folder that is made or empty. Peers are
// [NAME=]HOST[:PORT], divided by commas; an empty yard means eventyard. Nodes are the names of those without a
// server, which get a bundle each as well.
func NewBundles(folder, yard, peers string, nodes ...string) ([]BundlePeer, error) {
	parsed, err := bundle.ParsePeers(peers)
	if err != nil {
		return nil, err
	}
	if yard == "" {
		yard = bundle.DefaultYard
	}
	all, err := bundle.Make(yard, parsed, time.Now(), nodes...)
	if err != nil {
		return nil, err
	}
	return writeBundles(folder, all)
}

// Renew makes bundles of the same cluster with new certificates, in a folder that is made or empty: all
// peers have to be stopped, and started with them. Peers are where they are from now on; empty means
// where they were. Nodes are those without a server from now on; none means those that there were.
func (b *Bundle) Renew(folder, peers string, nodes ...string) ([]BundlePeer, error) {
	var parsed []bundle.Peer
	if peers != "" {
		var err error
		if parsed, err = bundle.ParsePeers(peers); err != nil {
			return nil, err
		}
	}
	all, err := b.content.Renew(parsed, time.Now(), nodes...)
	if err != nil {
		return nil, err
	}
	return writeBundles(folder, all)
}

func writeBundles(folder string, all []bundle.Bundle) ([]BundlePeer, error) {
	files, err := bundle.Write(folder, all)
	if err != nil {
		return nil, err
	}
	var peers []BundlePeer
	for i, b := range all {
		peers = append(peers, BundlePeer{Name: b.Node, Address: b.Self().Address, File: files[i]})
	}
	return peers, nil
}

// Node is the peer or node that the bundle is for.
func (b *Bundle) Node() string { return b.content.Node }

// HasServer tells whether the bundle is that of a peer, which has a server inside. A node without needs no
// data folder.
func (b *Bundle) HasServer() bool { return !b.content.IsNode() }

// Yard is the name of the yard.
func (b *Bundle) Yard() string { return b.content.Yard }

// Ends is when its certificate ends.
func (b *Bundle) Ends() time.Time { return b.content.Ends() }

// Peers are all, this one included.
func (b *Bundle) Peers() []BundlePeer {
	var all []BundlePeer
	for _, p := range b.content.Peers {
		all = append(all, BundlePeer{Name: p.Name, Address: p.Address})
	}
	return all
}

// CheckPeers says whether the bundle is of these peers, written as for NewBundles.
func (b *Bundle) CheckPeers(peers string) error {
	parsed, err := bundle.ParsePeers(peers)
	if err != nil {
		return err
	}
	if b.content.Same(parsed) {
		return nil
	}
	var all []string
	for _, p := range b.content.Peers {
		all = append(all, p.String())
	}
	return fmt.Errorf("the bundle has the peers %s: leave out --cluster-peers, or use a bundle that was made for those", strings.Join(all, ","))
}

// storage is how it is opened; nil where this process is no peer.
func (p Peer) storage() *storage.Peer {
	if p.Bundle == nil {
		return nil
	}
	return &storage.Peer{
		Bundle: p.Bundle.content, Listen: p.Listen, ListenNodes: p.ListenNodes, Replicas: p.Replicas,
		MaxStoreBytes: p.MaxStoreBytes, MaxMemoryBytes: p.MaxMemoryBytes, HubStreams: p.HubStreams, StreamBytes: p.StreamBytes,
	}
}

// validatePeer says what does not go with a bundle, or cannot be without one.
func (c Config) validatePeer() error {
	p := c.Peer
	switch {
	case p == Peer{}:
		return nil
	case p.Bundle == nil:
		return errors.New("a peer needs its bundle")
	case c.Engine != "" && c.Engine != "disk":
		return errors.New("a peer has its engine inside: give no other")
	case c.Node != "" && c.Node != p.Bundle.Node():
		return fmt.Errorf("node %s: the bundle is that of %s", c.Node, p.Bundle.Node())
	case c.Secrets != Secrets{}:
		return errors.New("the secret key is in the bundle: give no other")
	}
	return p.storage().Check()
}
