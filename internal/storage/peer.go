package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/embedded"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Peer is how storage is opened on NATS servers that run inside the nodes.
type Peer struct {
	// Bundle is what this peer was given.
	Bundle bundle.Bundle
	// Listen is the address at which other peers are listened to. Empty: that of the bundle, or all
	// IPv4 addresses of this machine where the bundle has a host name.
	Listen string
	// ListenNodes is the address at which nodes without a server are let in, where the bundle has some. Empty:
	// that of the bundle, or all IPv4 addresses.
	ListenNodes string
	// Replicas is how many peers keep each event; zero: all.
	Replicas int
	// MaxStoreBytes is how much this peer keeps on disk; zero: what it has and three quarters of what
	// is free. MaxMemoryBytes bounds streams in memory, of which a yard has none; zero: 64 MiB.
	MaxStoreBytes, MaxMemoryBytes int64
	// HubStreams and StreamBytes are those of connect.Settings.
	HubStreams  int
	StreamBytes int64
}

// PeerOf is the URL of storage on servers inside the nodes, of which this one's has the folder.
func PeerOf(folder string) string { return peerScheme + folder }

const (
	peerScheme = "peer://"
	// peerDir has what the server inside keeps, in the data folder. The server makes storeDir in it.
	peerDir  = "nats"
	storeDir = "jetstream"

	defaultMemory = 64 << 20
	// unknownStore is the bound where the free space of the disk cannot be found out.
	unknownStore = 1 << 40
)

// Check says what is wrong with it by itself.
func (p Peer) Check() error {
	if p.Replicas != 0 && (p.Replicas > len(p.Bundle.Peers) || p.Replicas%2 == 0) {
		return fmt.Errorf("%d replicas on %d peers: use 1, 3 or, with five peers, 5", p.Replicas, len(p.Bundle.Peers))
	}
	if _, _, err := net.SplitHostPort(p.listen()); err != nil {
		return fmt.Errorf("the address for other peers %q: use HOST:PORT", p.Listen)
	}
	return nil
}

// listen is where other peers are listened to.
func (p Peer) listen() string {
	self := p.Bundle.Self()
	if p.Listen != "" {
		return p.Listen
	}
	if _, err := netip.ParseAddr(self.Host()); err == nil || self.Local() {
		return self.Address
	}
	_, port, _ := net.SplitHostPort(self.Address) // the bundle was checked
	return net.JoinHostPort("0.0.0.0", port)
}

// listenNodes is where nodes without a server are let in; empty where there are none.
func (p Peer) listenNodes() string {
	address := p.Bundle.Self().NodesAddress()
	host, port, err := net.SplitHostPort(address)
	switch {
	case len(p.Bundle.Nodes) == 0 || err != nil:
		return ""
	case p.ListenNodes != "":
		return p.ListenNodes
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return address
	}
	return net.JoinHostPort("0.0.0.0", port)
}

// nodeSettings are those of the connections of a node without a server.
func (p Peer) nodeSettings() connect.Settings {
	s := p.settings()
	s.TLS, s.Servers = true, nil
	for _, one := range p.Bundle.Peers {
		s.Servers = append(s.Servers, one.NodesAddress())
	}
	return s
}

// name is that of the cluster at its servers.
func (p Peer) name() string { return p.Bundle.Yard + "-" + p.Bundle.Cluster }

// settings are those of the connections to the server inside.
func (p Peer) settings() connect.Settings {
	s := connect.Settings{
		Yard: p.Bundle.Yard, Replicas: cmp.Or(p.Replicas, len(p.Bundle.Peers)), HubStreams: p.HubStreams, StreamBytes: p.StreamBytes,
	}
	for _, one := range p.Bundle.Peers {
		s.Servers = append(s.Servers, one.Address)
	}
	return s
}

// inside is the server that runs in this process, with its folder.
type inside struct {
	peer   Peer
	folder string
	server *embedded.Server
	lock   io.Closer
}

// openPeer starts the server of this peer and joins the others. A folder that is not this peer's is not
// touched.
func openPeer(ctx context.Context, folder string, cfg Config) (*Storage, error) {
	if cfg.Peer != nil && cfg.Peer.Bundle.IsNode() {
		return openNode(ctx, cfg)
	}
	if cfg.MustExist {
		found, err := admitPeer(folder, cfg)
		if err == nil && found.kind == empty {
			err = fmt.Errorf("%w in %s", ErrNoYard, folder)
		}
		if err != nil {
			return nil, err
		}
	}
	in, err := startPeer(ctx, folder, cfg)
	if err != nil {
		return nil, err
	}
	cfg.SecretKey = SecretKey{Key: in.peer.Bundle.SecretsKey}
	return joinNATS(ctx, in.peer.settings(), cfg, in)
}

// openNode joins the servers inside the peers, as a node that has none. It needs no folder.
func openNode(ctx context.Context, cfg Config) (*Storage, error) {
	p := *cfg.Peer
	if err := errors.Join(p.Check(), p.Bundle.Check(time.Now())); err != nil {
		return nil, fmt.Errorf("bundle of %s: %w", p.Bundle.Node, err)
	}
	cfg.SecretKey = SecretKey{Key: p.Bundle.SecretsKey}
	return joinNATS(ctx, p.nodeSettings(), cfg, nil)
}

// LendPeer runs the server of this peer and no node, until ctx ends: others need it while one of them fills
// the yard. running is called when it runs. Errors are as those of Open.
func LendPeer(ctx context.Context, folder string, cfg Config, running func()) error {
	in, err := startPeer(ctx, folder, cfg)
	if err != nil {
		return err
	}
	running()
	<-ctx.Done()
	return in.close()
}

// startPeer starts the server of this peer.
func startPeer(ctx context.Context, folder string, cfg Config) (*inside, error) {
	if cfg.Peer == nil {
		return nil, errors.New("a peer needs its bundle")
	}
	p := *cfg.Peer
	if err := errors.Join(p.Check(), p.Bundle.Check(time.Now())); err != nil {
		return nil, fmt.Errorf("bundle of %s: %w", p.Bundle.Node, err)
	}
	if p.Bundle.IsNode() {
		return nil, fmt.Errorf("the bundle is that of %s, a node without a server: use that of a peer", p.Bundle.Node)
	}
	lock, err := claimPeer(folder, cfg)
	if err != nil {
		return nil, err
	}
	in := &inside{peer: p, folder: folder, lock: lock}
	if in.server, err = embedded.Open(ctx, p.config(folder, cfg.Log)); err != nil {
		return nil, errors.Join(p.explain(err), in.close())
	}
	return in, nil
}

// config is that of the server.
func (p Peer) config(folder string, log *slog.Logger) embedded.Config {
	tls, _ := p.Bundle.TLS() // read before
	cfg := embedded.Config{
		Name: p.Bundle.Node, Cluster: p.name(), Listen: p.listen(), Address: p.Bundle.Self().Address, TLS: tls, Routes: p.settings().Servers,
		Nodes: p.listenNodes(),
		Dir:   filepath.Join(folder, peerDir), MaxMemoryBytes: cmp.Or(p.MaxMemoryBytes, defaultMemory), MaxStoreBytes: p.MaxStoreBytes, Log: log,
	}
	for _, one := range p.Bundle.Peers {
		cfg.Names = append(cfg.Names, one.Name)
	}
	if cfg.MaxStoreBytes == 0 {
		cfg.MaxStoreBytes = storeRoom(folder)
	}
	return cfg
}

// storeRoom is how much a peer may keep that was given no bound: what it has, and three quarters of what
// is free.
func storeRoom(folder string) int64 {
	free, _, err := Space(folder)
	if err != nil {
		return unknownStore
	}
	used, err := folderBytes(filepath.Join(folder, peerDir))
	if err != nil {
		return unknownStore
	}
	return used + free/4*3
}

// explain says what to try where the server does not start.
func (p Peer) explain(err error) error {
	const other = "choose another with --cluster-listen if others still reach it at "
	switch {
	case errors.Is(err, embedded.ErrRuns):
		return fmt.Errorf("%w: two processes must not be %s: stop that one, or give this machine its own bundle", err, p.Bundle.Node)
	case strings.Contains(err.Error(), syscall.ENOSPC.Error()): // the server gives a text alone
		return fmt.Errorf("%w: make room on the disk of the data folder, and start the node again: the others go on meanwhile", err)
	case !errors.Is(err, embedded.ErrListen):
		return err
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop who listens there, perhaps another yard, or %s%s", err, other, p.Bundle.Self().Address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have that address: see that the bundle is this machine's, it is of %s, or %s%s",
			err, p.Bundle.Node, other, p.Bundle.Self().Address)
	}
	return fmt.Errorf("%w: %s%s", err, other, p.Bundle.Self().Address)
}

// close stops the server, whose clients are gone by then, and frees the folder.
func (in *inside) close() error {
	if in == nil {
		return nil
	}
	if in.server != nil {
		in.server.Close()
	}
	return in.lock.Close()
}

// diskFolder is where the server keeps what it has; empty where there is none.
func (in *inside) diskFolder() string {
	if in == nil {
		return ""
	}
	return in.folder
}

// report is what is known of the peers' servers: each runs this program, which syncs what it
// acknowledges.
func (in *inside) report(status embedded.Status) connect.Report { return in.peer.report(status) }

func (p Peer) report(status embedded.Status) connect.Report {
	r := connect.Report{Local: p.settings().Local(nil)}
	for _, one := range p.Bundle.Peers {
		s := connect.Server{Name: one.Name, MaxPayload: embedded.MaxPayload, Sync: true, SyncKnown: true}
		if one.Name == status.Name {
			s.Version = status.Version
		}
		r.Servers = append(r.Servers, s)
	}
	return r
}

// missing are the peers that this one does not reach, by name.
func (in *inside) missing(status embedded.Status) (names []string) {
	for _, p := range in.peer.Bundle.Peers {
		if p.Name != status.Name && !status.Reached[p.Name] {
			names = append(names, p.Name)
		}
	}
	return names
}

// complaint says what keeps the peers from storing, as this one sees it; nil: nothing.
func (in *inside) complaint() error {
	status := in.server.Status()
	missing := in.missing(status)
	switch {
	case status.Stopped != "":
		return fmt.Errorf("%w: %w", connect.ErrUnavailable, stoppedError(status))
	case status.Leader == "" && len(missing) > 0:
		return fmt.Errorf("%w: this peer does not reach %s", connect.ErrUnavailable, strings.Join(missing, ", "))
	case status.Leader == "":
		return fmt.Errorf("%w: the peers have no leader yet", connect.ErrUnavailable)
	}
	return nil
}

// show adds what is known of peers to what is shown of servers.
func (in *inside) show(s *Servers) {
	status := in.server.Status()
	s.Inside, s.Leader = true, status.Leader
	for _, p := range in.peer.Bundle.Peers {
		i := slices.IndexFunc(s.Known, func(one Server) bool { return one.Name == p.Name })
		if i < 0 {
			continue // each was reported at the start
		}
		s.Known[i].Address = p.Address
		s.Known[i].Unreached = p.Name != status.Name && !status.Reached[p.Name]
	}
	if status.Stopped != "" {
		s.Warnings = append(slices.Clone(s.Warnings), stoppedError(status).Error())
	}
}

// claimPeer makes a folder this peer's, if it is nobody's, and locks it.
func claimPeer(folder string, cfg Config) (_ io.Closer, err error) {
	if _, err := admitPeer(folder, cfg); err != nil {
		return nil, err
	}
	files := vfs.OS(folder)
	if err := files.MkdirAll("."); err != nil { // durably, for its owner only
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := files.Lock(lockName)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	found, err := admitPeer(folder, cfg) // again: another process may have been here before the lock
	if err != nil {
		return nil, err
	}
	if found.kind == empty {
		b := cfg.Peer.Bundle
		own := &peerMark{Format: peerFormat, Yard: b.Yard, Cluster: b.Cluster, Node: b.Node}
		if err := cfg.put(folder, mark{Format: restoringFormat, Program: cfg.Program, Peer: own}); err != nil {
			return nil, err
		}
		cmp.Or(cfg.Log, slog.Default()).Warn("this peer begins with an empty folder, and gets what the others have: at its first start that is right, later a disk may not be mounted", "peer", b.Node, "folder", folder)
	}
	if err := files.MkdirAll(peerDir); err != nil {
		return nil, fmt.Errorf("make the folder of the server inside: %w", err)
	}
	return lock, nil
}

// admitPeer finds out whether a folder is this peer's, or empty, changing nothing.
func admitPeer(folder string, cfg Config) (examined, error) {
	found, err := examine(folder, append([]string{peerDir, filepath.Join(peerDir, storeDir)}, cfg.Own...))
	if err != nil || found.kind == empty {
		return found, err
	}
	return found, found.peerRefusal(folder, cfg.Peer.Bundle)
}
