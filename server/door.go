package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/httpapi"
	"github.com/eventyard/eventyard/internal/service"
)

// Bounds on what a slow or idle client may cost. Streams move their own write
// deadline along with each write.
const (
	headerTimeout  = 10 * time.Second
	bodyTimeout    = 2 * time.Minute
	answerTimeout  = 2 * time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// listen opens the HTTP door's address; nil where the door is closed.
func (s *Server) listen() (net.Listener, error) {
	if s.cfg.HTTP == Off {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.cfg.HTTP)
	if err != nil {
		return nil, fmt.Errorf("open the HTTP door: %w", err)
	}
	// A name may mean anything by the time it is looked up; what counts is what the
	// door is bound to.
	if err := config.CheckLoopback(listener.Addr().String()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the HTTP door at %s: %w", s.cfg.HTTP, err), listener.Close())
	}
	return listener, nil
}

// open tells the world that the yard serves.
func (s *Server) open(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = map[string]string{}
	if listener != nil {
		s.addresses["http"] = "http://" + listener.Addr().String()
	}
	close(s.started)
}

// door is the HTTP door with its listener.
type door struct {
	server   *http.Server
	listener net.Listener
	handler  http.Handler
	// announce tells tails and long polls to end, and probes that the yard is not ready.
	// There is no state before that: who is let in finds everything open.
	announce func()
	// cut ends the contexts of all requests.
	cut context.CancelFunc
	// active is held for reading by each request; who gets it for writing knows that
	// all have ended.
	active sync.RWMutex
}

func (s *Server) newDoor(listener net.Listener, y *yard) *door {
	stopping, announce := context.WithCancelCause(context.Background())
	requests, cut := context.WithCancel(context.Background())
	d := &door{
		listener: listener,
		handler: httpapi.New(httpapi.Config{
			Broker: y.broker, Version: s.cfg.Version, Engine: "disk", Doors: s.Addresses,
			Log: s.cfg.Log, Registry: y.registry, Stopping: stopping, LoopbackOnly: true,
		}),
		announce: func() { announce(errStopping) },
		cut:      cut,
	}
	d.server = &http.Server{
		Handler:           d,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	return d
}

func (d *door) part() service.Part {
	return service.Part{Name: "http door", Run: d.run, Stop: d.stop}
}

// run serves until it is stopped or ctx ends, and returns when no request is left.
func (d *door) run(ctx context.Context) error {
	release := context.AfterFunc(ctx, func() {
		d.cut()
		_ = d.server.Close()
	})
	defer release()
	defer d.cut()
	err := d.server.Serve(d.listener)
	d.active.Lock() // Serve returns when stopping begins; requests may go on
	defer d.active.Unlock()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop closes the listener and waits for requests to finish.
func (d *door) stop(ctx context.Context) error {
	d.announce()
	return d.server.Shutdown(ctx)
}

// ServeHTTP bounds how long a body may take to arrive. http.Server's own bound would
// also end streams, which read nothing and last.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.active.RLock()
	defer d.active.RUnlock()
	if r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	d.handler.ServeHTTP(w, r)
}
