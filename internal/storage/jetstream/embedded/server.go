// Package embedded runs a NATS server inside this process, as one of the three or five of a cluster.
// All of them sync before they acknowledge, and know each other by certificates: whoever has none of
// the cluster's authority is let in neither as a server nor as a client. The process itself uses its
// server without a socket.
package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// MaxPayload is the largest message that a server takes, in bytes.
const MaxPayload = 8 << 20

const (
	// pingEvery and maxPings find another server that is gone within 6 s.
	pingEvery = 2 * time.Second
	maxPings  = 2
	// readyTime is how long a server that has read its data may take to listen, on a busy machine.
	readyTime = time.Minute
	// stopTime is how long a server may take to stop. It has been seen locked up in itself after its disk
	// was full, and a process that waits for it never ends.
	stopTime = 30 * time.Second
	// reportEvery is after how many failed attempts to reach another server, of which there is about one a
	// second, the next one is reported.
	reportEvery = 600
	// loopback is where the server itself listens.
	loopback = "127.0.0.1"
	// handshakeTime is how long a stranger may take to show a certificate, in seconds; servers that
	// have much to do at once take their time, too.
	handshakeTime = 5
)

// Config is how a server runs. All fields but Log are needed.
type Config struct {
	// Name is the server's, unique in its cluster, and Cluster the same for all its servers: one with
	// another is refused.
	Name, Cluster string
	// Listen is where the other servers are listened to, Address where they reach this one.
	// Routes are the addresses of all servers, this one's included: how many there are says how many
	// make a majority. All are HOST:PORT.
	Listen, Address string
	Routes          []string
	// Names are those of all servers: a certificate of another name lets nobody in as a server. None: any.
	Names []string
	// Nodes is where clients of other processes are let in, who have to show a certificate of the cluster;
	// empty: nowhere.
	Nodes string
	// TLS has a certificate of the cluster, and takes no others.
	TLS *tls.Config
	// Dir is the server's alone, and there.
	Dir string
	// MaxStoreBytes and MaxMemoryBytes bound what streams may take; what would go beyond is refused.
	MaxStoreBytes, MaxMemoryBytes int64
	// Log takes what the server reports; nil means slog.Default().
	Log *slog.Logger
}

var (
	// ErrListen: the address for other servers cannot be listened at. It comes with the system's error.
	ErrListen = errors.New("the address for other peers cannot be used")
	// ErrRuns: a server with the same certificate runs elsewhere.
	ErrRuns = errors.New("another process runs with the same bundle")
)

// Server is a server that runs.
type Server struct {
	cfg   Config
	inner *server.Server
	gate  *gate
	nodes *gate // nil: no clients of other processes are let in
	log   *reporter
	once  sync.Once
}

// Open starts a server. It returns when others can reach it, which may take minutes where much is
// stored and the process was killed before: all of it is read. It does not wait for other servers.
// Errors: ErrListen, ErrRuns, and those of the disk.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if err := cfg.Free(ctx); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: &reporter{log: cfg.Log.With("server", cfg.Name)}}
	var err error
	if s.gate, err = openGate(cfg.Listen, cfg.Routes, s.log.log); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	if cfg.Nodes != "" {
		if s.nodes, err = openGate(cfg.Nodes, cfg.Routes, s.log.log); err != nil {
			s.gate.close()
			return nil, fmt.Errorf("%w: for nodes without a server: %w", ErrListen, err)
		}
	}
	admit := &admission{name: cfg.Name, peers: cfg.Names, gate: s.gate, report: s.log}
	options := cfg.options()
	options.CustomRouterAuthentication = admit
	if s.inner, err = server.NewServer(options); err != nil {
		s.gates().close()
		return nil, fmt.Errorf("start the server inside: %w", err)
	}
	admit.inner = s.inner
	s.inner.SetLogger(s.log, false, false)
	s.inner.Start()
	for late := time.Now().Add(readyTime); ; {
		if err := s.log.failure(); err != nil {
			s.Close()
			return nil, fmt.Errorf("start the server inside: %w", err)
		}
		if s.inner.ReadyForConnections(100 * time.Millisecond) {
			s.gate.serve(s.inner.ClusterAddr().String())
			if s.nodes != nil {
				s.nodes.serve(s.inner.Addr().String())
			}
			return s, nil
		}
		if time.Now().After(late) {
			s.Close()
			return nil, fmt.Errorf("start the server inside: it does not listen at %s", cfg.Listen)
		}
	}
}

// Free says why the server cannot start now, for who listens at its addresses. It is found out before
// anything is opened: the server itself would fail when it has read all data, or not at all. It blocks for
// some seconds at most. Errors: ErrListen, ErrRuns.
func (c Config) Free(ctx context.Context) error {
	probe, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrListen, err)
	}
	if err := probe.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrListen, err)
	}
	if c.TLS == nil {
		return nil // of a broken bundle, which is found out elsewhere
	}
	if name, err := Ask(ctx, c.Address, c.TLS); err == nil {
		return fmt.Errorf("%w: %s answers at %s", ErrRuns, name, c.Address)
	}
	return nil // who cannot be reached, or is a stranger, does not answer for this server
}

// options are the server's. Other servers come by the gate to a port of loopback, and clients of other
// processes by another gate to another such port. Without clients nobody uses that, and it is there all the
// same: a server without one opens no routes.
func (c Config) options() *server.Options {
	o := &server.Options{
		ServerName: c.Name, Host: loopback, Port: server.RANDOM_PORT,
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		TLS: true, TLSVerify: true, TLSConfig: c.TLS.Clone(), TLSTimeout: handshakeTime,
		ConnectErrorReports: reportEvery, ReconnectErrorReports: reportEvery,
		MaxPayload: MaxPayload, PingInterval: pingEvery, MaxPingsOut: maxPings,
		JetStream: true, StoreDir: c.Dir, SyncAlways: true, JetStreamMaxStore: c.MaxStoreBytes, JetStreamMaxMemory: c.MaxMemoryBytes,
		// By then no client of this process is left to be sent away; others find another server.
		LameDuckDuration: time.Second, LameDuckGracePeriod: time.Millisecond,
		Cluster: server.ClusterOpts{
			Name: c.Cluster, Host: loopback, Port: server.RANDOM_PORT, Advertise: c.Address, NoAdvertise: true,
			TLSConfig: c.TLS.Clone(), TLSTimeout: handshakeTime, PingInterval: pingEvery, MaxPingsOut: maxPings,
		},
	}
	for _, address := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: address})
	}
	return o
}

// InProcessConn is a connection to the server without a socket; see nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.inner.InProcessConn() }

// Client is the address at which clients with a certificate of the cluster are let in.
func (s *Server) Client() string { return s.inner.Addr().String() }

// Status is what a server knows of its cluster.
type Status struct {
	Name, Version string
	// Stopped is why it takes no part in storing any more, or not in all of it, until it is opened again:
	// its disk failed, or was full. Empty: it stores.
	Stopped string
	// Leader is the server that decides on new streams; empty: most servers are out of reach.
	Leader string
	// Reached are the other servers that this one is connected to, by name.
	Reached map[string]bool
}

// Status asks the server itself and no other.
func (s *Server) Status() Status {
	status := Status{Name: s.cfg.Name, Version: server.VERSION, Stopped: s.log.stopped(), Reached: map[string]bool{}}
	if info, err := s.inner.Jsz(nil); err == nil {
		if info.Disabled {
			status.Stopped = cmp.Or(status.Stopped, "JetStream is off")
		}
		if info.Meta != nil {
			status.Leader = info.Meta.Leader
		}
	}
	if routes, err := s.inner.Routez(nil); err == nil {
		for _, r := range routes.Routes {
			status.Reached[r.RemoteName] = true
		}
	}
	return status
}

// Close stops the server when others lead what it has led; who has used it is gone by then. It takes
// about a second, and stopTime at most. Safe twice.
func (s *Server) Close() {
	s.once.Do(func() {
		stops := stopsWithin(stopTime, func() {
			s.inner.LameDuckShutdown() // does nothing where it never began to listen
			s.inner.Shutdown()
			s.inner.WaitForShutdown()
		})
		if !stops {
			s.cfg.Log.Error("the server inside does not stop and is left to itself: what it has acknowledged is stored",
				"server", s.cfg.Name, "waited", stopTime)
		}
		s.gates().close()
	})
}

// gates are those that there are.
type gates []*gate

func (s *Server) gates() (all gates) {
	for _, g := range []*gate{s.gate, s.nodes} {
		if g != nil {
			all = append(all, g)
		}
	}
	return all
}

func (all gates) close() {
	for _, g := range all {
		g.close()
	}
}

// stopsWithin tells whether stop returned in time. If not, it goes on by itself until the process ends.
func stopsWithin(limit time.Duration, stop func()) bool {
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	select {
	case <-stopped:
		return true
	case <-time.After(limit):
		return false
	}
}
