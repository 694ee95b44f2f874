// Package server is the whole yard in your process: storage, hubs and listeners, wired
// together and run as one. The eventyard command is a thin shell around it.
//
//	yard, err := server.New(server.Config{DataDir: "data", Hubs: []server.Hub{{Name: "orders", Partitions: 4}}})
//	…
//	ended := make(chan error, 1)
//	go func() { ended <- yard.Run(ctx) }()
//	select {
//	case err := <-ended: // it could not start
//		return err
//	case <-yard.Started():
//	}
//	client, err := yard.Dial(ctx, hub.Config{}) // all rights, without a socket
//	err = client.Hub("orders").Send(ctx, event.Event{Body: []byte("hello")})
//
// When ctx ends the yard stops, and Run returns. For tests there is package servertest.
package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage"
)

var (
	// ErrLocked: another yard uses the data folder.
	ErrLocked = storage.ErrLocked
	// ErrUsed: a server runs once; create another.
	ErrUsed = errors.New("this server has run already")
	// ErrForeign: the data folder holds files of others and no yard's data. ErrNewerData: a newer
	// version has written it.
	ErrForeign   = storage.ErrForeign
	ErrNewerData = storage.ErrNewerData
	// ErrMetaLost: the data folder holds events, but not the file that says whose they
	// are. It comes with fs.ErrNotExist.
	ErrMetaLost = storage.ErrMetaLost
	// ErrRestoring: a restore into the data folder, or the yard on servers, is under way, or was
	// interrupted. ErrOccupied: the data folder is not empty, so that nothing is restored there;
	// ErrYardOccupied: there is a yard of that name on the servers. ErrNoKey: a backup is sealed with a
	// secret key that was not given. ErrNoYard: there is nothing to copy.
	ErrRestoring    = storage.ErrRestoring
	ErrOccupied     = storage.ErrOccupied
	ErrYardOccupied = storage.ErrYardOccupied
	ErrNoKey        = storage.ErrNoKey
	ErrNoYard       = storage.ErrNoYard
	// ErrKeyLost: the secret key that the data was sealed with is not there. ErrUnknownKey: another one is.
	ErrKeyLost    = storage.ErrKeyLost
	ErrUnknownKey = storage.ErrUnknownKey

	errStopping = errors.New("the yard is stopping")
)

// Server is one yard.
type Server struct {
	cfg     Config
	started chan struct{}
	ended   chan struct{} // closed when Run stops serving, or never could

	mu        sync.Mutex
	used      bool              // guarded by mu
	addresses map[string]string // guarded by mu; by listener
	access    Access            // guarded by mu
	inside    *inside           // guarded by mu; nil before started
}

// New checks the configuration. It touches neither disk nor network.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure yard: %w", err)
	}
	return &Server{cfg: cfg, started: make(chan struct{}), ended: make(chan struct{})}, nil
}

// Started is closed once every listener is open. It is never closed if Run fails before that: wait
// for Run's error as well, as the package's example does.
func (s *Server) Started() <-chan struct{} { return s.started }

// Node is the name of this process among the nodes that share the yard.
func (s *Server) Node() string { return s.cfg.nodeName() }

// Addresses gives the URL of each open listener by the listener's name. It is empty before Started.
func (s *Server) Addresses() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.addresses)
}

// Access is what clients need to be let in. It is empty before Started.
func (s *Server) Access() Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.access
}

// Reload looks at once at the files of the certificate, which happens once a minute otherwise. It does
// nothing before Started. The error is why the certificate in the files cannot be used; the one before goes on.
func (s *Server) Reload() error {
	s.mu.Lock()
	in := s.inside
	s.mu.Unlock()
	if in != nil && in.yard.certs != nil {
		return in.yard.certs.Refresh()
	}
	return nil
}

// Run serves until ctx ends and everything is closed again; then it returns nil. If the yard cannot
// start the error is, by errors.Is or errors.As, a *ListenerError (an address is in use, say),
// ErrLocked, ErrForeign, ErrNewerData, ErrMetaLost, ErrPeerFolder, ErrOtherPeer, ErrUsed for a second Run, or one of the disk, of
// a certificate or of a definition in the configuration.
//
// Requests in progress may finish within the grace period. The order of stopping is: functions, listeners close, links and requests drain,
// delivery to webhooks stops, dead letters, topics, access, the broker, the engine, the meta store, the NATS server inside.
func (s *Server) Run(ctx context.Context) (err error) {
	s.mu.Lock()
	used := s.used
	s.used = true
	s.mu.Unlock()
	if used {
		return ErrUsed
	}
	defer close(s.ended)
	// The addresses first: nothing is touched if another program has one of them.
	open, err := listen(s.cfg)
	if err != nil {
		return err
	}
	defer open.close()
	y, err := openYard(ctx, s.cfg, open)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it had started
		}
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	in := newInside(y, open.connectTo(s.cfg.Host).Endpoint)
	listeners, err := s.newListeners(in)
	if err != nil {
		return err
	}
	defer in.close()
	addresses := map[string]string{}
	for _, d := range open {
		addresses[d.Name] = d.URL()
	}
	s.mu.Lock()
	s.addresses, s.access, s.inside = addresses, y.reported, in
	s.mu.Unlock()
	close(s.started)
	parts := y.parts(service.Part{Name: "listeners", Run: listeners.run, Stop: listeners.stop})
	return service.Group{Parts: parts, Grace: s.cfg.Grace, Log: s.cfg.Log}.Run(ctx)
}
