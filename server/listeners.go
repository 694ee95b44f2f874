package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/eventhubs"
	"github.com/eventyard/eventyard/internal/api/azureblob"
	"github.com/eventyard/eventyard/internal/api/eventgrid"
	"github.com/eventyard/eventyard/internal/api/frame"
	v1 "github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/kafka"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Bounds on what a slow or idle HTTP client may cost. Streams move their own write
// deadline along with each write, and a WebSocket that was taken over has none of these.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = frame.BodyTimeout
	answerTimeout = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	// maxStreams of a connection may be under way at once. Clients that want more open another.
	maxStreams = 100
)

// listeners are all listeners of a yard: one AMQP server behind the AMQP listeners and the
// WebSockets of both HTTP ones, one HTTP server and one Kafka server. They open and stop together: a
// stopping yard lets nobody in at any listener while it lets those inside finish. The AMQP
// server is also behind the way in from this process, which is there with every listener off.
type listeners struct {
	open   openListeners
	inside *inside
	amqp   *amqp.Server
	http   *http.Server
	kafka  *kafka.Server
	// api answers every request but those of devStorage's listener, which emulator answers.
	api, emulator *frame.Frame
	// visitors are the connections of the HTTP server.
	visitors *visitors
	// ledger has the turns of handshakes.
	ledger *admission.Ledger
	// development: guarded against web pages, as the key is known to everybody.
	development bool
	// nodes hear of endpoints while clients are served there.
	nodes     *cluster.Nodes
	endpoints cluster.Endpoints
	host      string      // the operator's name for the yard; empty if none
	tls       *tls.Config // nil where no listener has TLS

	// stopping ends when announce is called: tails and long polls end, and probes hear that the
	// yard is not ready. There is no state before that: who is let in finds everything open.
	stopping context.Context
	announce func()
	// cut ends the contexts of all requests.
	cut context.CancelFunc
	// active is held for reading by each request; who gets it for writing knows that
	// all have ended.
	active sync.RWMutex
}

// newListeners puts the AMQP server, the Kafka server and the API in front of a yard.
func (s *Server) newListeners(in *inside) (*listeners, error) {
	y, cfg, log := in.yard, s.cfg, s.cfg.Log
	memory := admission.DefaultMemory()
	front, err := eventhubs.New(eventhubs.Config{
		Broker: y.broker, Access: y.access, Groups: y.groups, Reserved: y.runner.Reserved, Memory: memory, Log: log, Metrics: y.registry, Tracer: cfg.Tracer,
	})
	if err != nil {
		return nil, fmt.Errorf("make the AMQP listener: %w", err)
	}
	shares := cfg.shares()
	if cfg.lacks(shares) {
		log.Warn("the limit of open files allows few connections: raise it, or configure fewer",
			"amqp", shares.Clients[0], "http", shares.Clients[1], "kafka", shares.Clients[2])
	}
	ledger := admission.New(shares.Limits())
	server, err := amqp.New(amqp.Config{
		Handler: front, Auth: front, IdleTimeout: cfg.AMQPIdleTimeout,
		Admission: ledger.Listener(shares.Clients[0]), Memory: memory,
		Log: log, Metrics: y.registry,
	})
	if err != nil {
		return nil, fmt.Errorf("make the AMQP server: %w", err)
	}
	kafkaServer, err := y.newKafka(ledger.Listener(shares.Clients[2]), memory)
	if err != nil {
		return nil, err
	}
	stopping, announce := context.WithCancelCause(context.Background())
	requests, cut := context.WithCancel(context.Background())
	d := &listeners{
		open: y.open, inside: in, amqp: server, kafka: kafkaServer, development: y.development(), host: cfg.Host,
		ledger:   ledger,
		visitors: newVisitors(ledger.Listener(shares.Clients[1]), y.registry),
		nodes:    y.nodes, endpoints: y.open.endpoints(cfg),
		stopping: stopping, announce: func() { announce(errStopping) }, cut: cut,
	}
	y.connections.serving(d)
	var secure *tls.Config // of the HTTP server
	if y.certs != nil {
		d.tls = y.certs.TLS()
		takeTurns(d.tls)
		// One server behind a plain and a TLS listener makes itself ready for HTTP/2 only if that
		// is named before either begins. WebSockets come over HTTP/1.1, for which their clients
		// ask.
		secure = d.tls.Clone()
		secure.NextProtos = []string{"h2", "http/1.1"}
	}
	blobs := azureblob.New(azureblob.Config{Blobs: y.blobs, Access: y.access, Log: log, Metrics: y.registry})
	link := frame.Open("the link's signed token is what lets in")
	apis := []frame.API{
		blobs.API(), // first: the account's host has no paths but blobs'
		d.webSockets(),
		frame.Plain("notices", notify.Serves, y.notices,
			frame.Route{Method: http.MethodGet, Path: notify.PathPrefix + "{token}", Need: link},
			frame.Route{Method: http.MethodPost, Path: notify.PathPrefix + "{token}", Need: link}),
		eventgrid.New(eventgrid.Config{
			Topics: y.topics, Pull: y.grid.pull, Access: y.access,
			Endpoint: func(r *http.Request, topic string) string {
				return cmp.Or(y.publishURL(r, topic, false), y.publishURL(r, topic, true))
			},
			Stopping: stopping, Log: log, Metrics: y.registry, Notes: y.notes, Tracer: cfg.Tracer,
		}).API(),
	}
	apis = append(apis, d.console(y, stopping)...)
	apis = append(apis, v1.New(v1.Config{
		Broker: y.broker, Groups: y.groups, KafkaGroups: kafkagroups.Operator{Coordinator: y.kafkaGroups.Coordinator}, Version: cfg.Version, Engine: y.storage.Engine,
		Access:    &rootRegistry{y.access, y.root, log},
		Listeners: s.Addresses, Endpoint: y.open.endpointFor(cfg.Host), BlobEndpoint: y.open.blobEndpointFor(cfg.Host),
		SignContainer: azureblob.SignContainer,
		Memory:        memory, Log: log, Tracer: cfg.Tracer, TraceURL: cfg.TraceURL, Registry: y.registry, Cluster: y.status, CA: y.authority, Ready: y.ready, Stopping: stopping,
		Grid: &v1.Grid{
			Topics: y.topics, Delivery: y.grid.delivery, Dead: y.grid.dead, Endpoint: y.publishURL, ValidationURL: y.validationURL,
		},
		Functions: functionsOfAll{y.runner, y.calls}, Poison: y.box, Notices: y.notices,
		Backup: y.backups(), Maintenance: y.maintenance(), Figures: y.figures, Keys: y.figures.keys.count, Activity: y.journal, Connections: y.connections.list, Storage: y.condition,
	}).APIs()...)
	around := frame.Config{LoopbackOnly: d.development, Host: cfg.Host, Visitors: d.visitors, Refused: y.access.Refused, Stopping: stopping, Log: log}
	d.api, d.emulator = frame.New(around, apis...), frame.New(around, blobs.Emulator())
	d.http = &http.Server{
		Handler:   d,
		TLSConfig: secure,
		BaseContext: func(l net.Listener) context.Context {
			_, emulator := l.(emulatorListener)
			return context.WithValue(requests, emulatorListener{}, emulator)
		},
		ConnContext:       d.visitors.come,
		ConnState:         d.visitors.changed,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       -1, // visitors see to it
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return d, nil
}

// run serves at every listener until it is stopped, ctx ends or any listener fails, and returns
// when no connection and no request is left.
func (d *listeners) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer context.AfterFunc(ctx, func() {
		d.cut()
		_ = d.http.Close()
	})()
	defer d.cut()
	d.nodes.Announce(d.endpoints)
	var all sync.WaitGroup
	failures := make(chan error, len(d.open)) // the way from inside cannot fail
	all.Go(func() { _ = d.amqp.Serve(ctx, d.inside.listener) })
	for _, listener := range d.open {
		all.Go(func() {
			if err := d.serve(ctx, listener); err != nil {
				failures <- fmt.Errorf("%s: %w", listener.Name, err)
				fail(err)
			}
		})
	}
	all.Wait()
	d.active.Lock() // the HTTP server returns when stopping begins; requests may go on
	defer d.active.Unlock()
	close(failures)
	return <-failures
}

// serve returns when the listener takes nobody more. Only what was not asked for is an error.
func (d *listeners) serve(ctx context.Context, listener openListener) error {
	var err error
	switch listener.Name {
	case "amqp":
		err = d.amqp.Serve(ctx, listener.listener)
	case "amqps":
		err = d.amqp.Serve(ctx, tls.NewListener(turnListener{listener.listener, d.ledger}, d.tls))
	case "kafka":
		err = d.kafka.Serve(ctx, listener.listener)
	case "kafkas":
		err = d.kafka.Serve(ctx, tls.NewListener(turnListener{listener.listener, d.ledger}, d.tls))
	case "http":
		err = d.http.Serve(headListener{listener.listener})
	case config.DevStorage:
		err = d.http.Serve(emulatorListener{headListener{listener.listener}})
	case "https":
		err = d.http.ServeTLS(headListener{turnListener{listener.listener, d.ledger}}, "", "")
	}
	if ctx.Err() != nil || d.stopping.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop closes all listeners at once, then lets links, requests and Kafka's answers finish, none waiting
// for the others.
func (d *listeners) stop(ctx context.Context) error {
	d.announce()
	d.nodes.Announce(cluster.Endpoints{}) // others lead nobody here any more, long before this node is gone
	d.open.close()
	var all sync.WaitGroup
	var links, requests, answers error
	all.Go(func() {
		links = d.amqp.Stop(ctx) // which closes the listener from inside, too
		d.inside.close()         // now that they have heard what became of all they sent
	})
	all.Go(func() {
		requests = d.http.Shutdown(ctx)
		if errors.Is(requests, net.ErrClosed) { // a listener of those above, which Serve had not let go of yet
			requests = nil
		}
	})
	all.Go(func() { answers = d.kafka.Stop(ctx) })
	all.Wait()
	return errors.Join(links, requests, answers)
}

// ServeHTTP bounds how long a body may take to arrive. http.Server's own bound would
// also end streams, which read nothing and last.
func (d *listeners) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.active.RLock()
	defer d.active.RUnlock()
	done, ok := d.visitors.ask(r)
	if !ok {
		return
	}
	defer done()
	if r.ContentLength != 0 {
		body := http.NewResponseController(w)
		_ = body.SetReadDeadline(time.Now().Add(bodyTimeout))
		if r.ProtoMajor == 2 { // or the deadline keeps a request that was taken back until it comes
			defer func() { _ = body.SetReadDeadline(time.Time{}) }()
		}
	}
	if emulator, _ := r.Context().Value(emulatorListener{}).(bool); emulator {
		d.emulator.ServeHTTP(w, r)
		return
	}
	d.api.ServeHTTP(w, r)
}

// emulatorListener marks the requests of the devStorage listener.
type emulatorListener struct{ net.Listener }
