package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/cluster/natswire"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/bodies"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/embedded"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// NATS is how storage on NATS servers is opened.
type NATS struct {
	// Node is the name of this process among those that share the storage.
	Node string
	// Unsafe starts on servers that may lose what they acknowledge.
	Unsafe bool
}

// openNATS opens storage on NATS servers. What is said wrongly is refused before anything is asked of
// them.
func openNATS(ctx context.Context, url string, cfg Config) (*Storage, error) {
	settings, err := connect.Parse(url)
	if err != nil {
		return nil, err
	}
	if _, err := cfg.SecretKey.given(ctx); err != nil {
		return nil, err
	}
	return joinNATS(ctx, settings, cfg, nil)
}

// natsNode is what a node has open on NATS servers.
type natsNode struct {
	cfg      connect.Config
	log      *slog.Logger
	inside   *inside // nil: all servers are elsewhere
	peers    *Peer   // whose bundle lets this node in to the servers inside others; nil: it has no bundle, or is a peer
	conns    *connect.Conns
	report   connect.Report
	entries  *entries.Store
	bodies   *bodies.Store
	streams  *natsstreams.Storage
	engine   *logs.Engine
	clock    connect.Clock
	life     context.Context    // of following entries and the clock
	stop     context.CancelFunc // ends it
	followed sync.WaitGroup
}

// joinNATS connects, waits until the servers can be used, and shares what is on them. One that runs
// inside this process, if there is one, is stopped when all else was closed.
func joinNATS(ctx context.Context, settings connect.Settings, cfg Config, in *inside) (_ *Storage, err error) {
	n := newNATSNode(settings, cfg)
	if in != nil {
		n.inside, n.cfg.Inside = in, in.server
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := n.dial(ctx); err != nil {
		return nil, err
	}
	if cfg.MustExist {
		if err := n.patiently(ctx, n.exists); err != nil {
			return nil, err
		}
	}
	if err := n.load(ctx); err != nil {
		return nil, err
	}
	wire, err := natswire.New(n.conns.Control, settings.Yard)
	if err != nil {
		return nil, err
	}
	return Share(ctx, Parts{
		Log: n.engine, Meta: n.entries, Bodies: n.bodies, Wire: wire, Writable: n.writable, Servers: n.servers, Ready: n.ready, Watch: n.watch, Tidy: n.tidy,
		Scrub: n.scrub, SetReplicas: n.setReplicas, Engine: "nats", Replicas: settings.Replicas, DiskFolder: in.diskFolder(), Local: n.report.Local, Close: n.close,
	}, cfg)
}

// exists fails with ErrNoYard where the servers have nothing of the yard.
func (n *natsNode) exists(ctx context.Context) error {
	names, err := connect.Streams(ctx, n.conns.Control, n.cfg.Yard)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%w %s on these servers", ErrNoYard, n.cfg.Yard)
	}
	return err
}

func newNATSNode(settings connect.Settings, cfg Config) *natsNode {
	n := &natsNode{
		log: cmp.Or(cfg.Log, slog.Default()),
		cfg: connect.Config{Settings: settings, Node: cfg.NATS.Node, Unsafe: cfg.NATS.Unsafe, Log: cfg.Log},
	}
	if cfg.Peer != nil && cfg.Peer.Bundle.IsNode() {
		n.peers = cfg.Peer
		n.cfg.TLSConfig, _ = cfg.Peer.Bundle.TLS() // read before
	}
	return n
}

// dial connects, and waits until the servers can be used.
func (n *natsNode) dial(ctx context.Context) (err error) {
	if n.conns, err = connect.Dial(ctx, n.cfg); err != nil {
		return err
	}
	if err := n.patiently(ctx, n.check); err != nil {
		return err
	}
	for _, warning := range n.report.Warnings {
		n.log.Warn("NATS servers: " + warning)
	}
	return nil
}

// check finds out whether the servers can be used. Those inside the nodes are as they have to be: there
// only a majority is asked for.
func (n *natsNode) check(ctx context.Context) (err error) {
	if n.inside != nil {
		n.report = n.inside.report(n.inside.server.Status())
		if err := n.inside.restart(); err != nil {
			return err // waiting is of no use
		}
		return n.inside.complaint()
	}
	if n.peers != nil { // where they have no majority, reading the entries waits for it
		n.report = n.peers.report(embedded.Status{})
		return nil
	}
	n.report, err = n.conns.Check(ctx, n.cfg)
	return err
}

// ready says what keeps servers inside the nodes from storing; nil: nothing, or nothing is known.
func (n *natsNode) ready() error {
	if n.inside == nil {
		return nil
	}
	return n.inside.complaint()
}

// watch waits until this process has to be started again for the server inside to store.
func (n *natsNode) watch(ctx context.Context) error {
	if n.inside == nil {
		<-ctx.Done()
		return nil
	}
	return n.inside.watch(ctx, n.log)
}

// tidy keeps the streams of entries compact until ctx ends.
func (n *natsNode) tidy(ctx context.Context) error { return entries.Tidy(ctx, n.entries) }

// load makes what a new yard has on the servers, and reads the entries of an old one.
func (n *natsNode) load(ctx context.Context) (err error) {
	if err := n.loadEntries(ctx); err != nil {
		return err
	}
	return n.loadLogs(ctx)
}

// fillers are those of the forms that a yard stores: who reads a frame fills in where it stands.
var fillers = logs.Fillers(record.Fillers())

func (n *natsNode) loadLogs(ctx context.Context) (err error) {
	n.bodies = bodies.New(n.conns.Publish, n.conns.Read, bodies.Config{Yard: n.cfg.Yard, Replicas: n.cfg.Replicas})
	if err := n.patiently(ctx, n.bodies.Load); err != nil {
		return err
	}
	n.streams, err = natsstreams.Open(natsstreams.Conns(*n.conns), natsstreams.Config{Yard: n.cfg.Yard, Replicas: n.cfg.Replicas})
	if err != nil {
		return err
	}
	n.warnReplicas(ctx)
	n.clock.Hold(n.report.Skew)
	n.followed.Go(func() { n.holdClock(n.life) })
	n.engine = logs.New(logs.Config{
		Storage: yardStreams{n.streams, n}, Store: n.entries, Fill: fillers, Replicas: n.cfg.Replicas,
		HubStreams: n.cfg.HubStreams, MaxStreamBytes: n.cfg.StreamBytes, Ahead: n.clock.Ahead, Log: n.log,
	})
	return nil
}

func (n *natsNode) loadEntries(ctx context.Context) (err error) {
	n.entries, err = entries.New(n.conns.Control, entries.Config{Yard: n.cfg.Yard, Replicas: n.cfg.Replicas, Log: n.log})
	if err != nil {
		return err
	}
	n.life, n.stop = context.WithCancel(context.Background())
	n.followed.Go(func() {
		if err := n.entries.Run(n.life); err != nil {
			n.log.Error("entries are not followed any more", "error", err)
		}
	})
	return n.patiently(ctx, n.entries.Load)
}

// writable finds out whether entries can be written, by a barrier in each of their streams, and whether
// logs can as far as somebody has tried.
func (n *natsNode) writable(ctx context.Context) error {
	if err := n.entries.Fresh(ctx, ""); err != nil {
		return fmt.Errorf("write entries: %w", err)
	}
	if err := n.engine.Writable(ctx); err != nil {
		return fmt.Errorf("write logs: %w", err)
	}
	return nil
}

// measureEvery is how often this node's clock is compared with the servers'.
const measureEvery = 30 * time.Second

// holdClock keeps this node's clock close to the servers', until ctx ends. What cannot be measured now
// stays as it is: clocks do not jump because servers are away.
func (n *natsNode) holdClock(ctx context.Context) {
	for held := n.clock.Skew().Held(); sleep.About(ctx, measureEvery) == nil; {
		skew, err := n.conns.Skew(ctx, n.bodies.Stream())
		if err != nil {
			continue
		}
		n.clock.Hold(skew)
		was := held
		switch held = skew.Held(); {
		case held && !was:
			n.log.Warn(skew.String() + "; times of events are corrected, retries, expiry and tokens are not")
		case was && !held:
			n.log.Info("the clock of this node is right again")
		}
	}
}

// sayEvery is how often it is said that the servers are waited for.
const sayEvery = 10 * time.Second

// patiently does something again while the servers have no majority, until ctx ends, and says so.
func (n *natsNode) patiently(ctx context.Context, do func(context.Context) error) error {
	for said := (time.Time{}); ; {
		err := do(ctx)
		if !errors.Is(err, connect.ErrUnavailable) && !errors.Is(err, meta.ErrUnavailable) && !n.awaitsPeers(err) {
			return err
		}
		if time.Since(said) >= sayEvery {
			n.sayWaiting(err, said.IsZero())
			said = time.Now()
		}
		if sleep.About(ctx, time.Second) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// awaitsPeers: a stream cannot be made before all its servers were heard of, which is so when a yard
// begins. Servers that are elsewhere may also be too few, which waiting does not change.
func (n *natsNode) awaitsPeers(err error) bool {
	said, is := errors.AsType[*jetstream.APIError](err)
	return (n.inside != nil || n.peers != nil) && is && connect.LacksServers(said)
}

// sayWaiting says what is waited for. That peers start one after the other is no reason to warn.
func (n *natsNode) sayWaiting(err error, first bool) {
	if n.inside == nil {
		n.log.Warn("the NATS servers cannot be used, waiting: most of them have to run and reach each other", "error", err)
		return
	}
	say := n.log.Warn
	if first {
		say = n.log.Info
	}
	say("waiting for the other peers: most of them have to run and reach each other, and all for the first start of a yard",
		"missing", n.inside.missing(n.inside.server.Status()), "error", err)
}

// inspectTime is how long the servers may take to be reached and to answer.
const inspectTime = 20 * time.Second

// inspectNATS finds out how the servers are set.
func inspectNATS(ctx context.Context, url string) (Findings, error) {
	settings, err := connect.Parse(url)
	if err != nil {
		return Findings{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	cfg := connect.Config{Settings: settings, Node: "doctor", Log: slog.New(slog.DiscardHandler)}
	conns, err := connect.Dial(ctx, cfg)
	if err != nil {
		return Findings{}, err
	}
	defer conns.Close()
	report, err := conns.Check(ctx, cfg)
	if errors.Is(err, connect.ErrUnfit) {
		err = nil
	}
	found := Findings{Problems: report.Problems, Warnings: report.Warnings}
	for _, s := range report.Servers {
		found.Servers = append(found.Servers, s.Name)
	}
	return found, err
}

// close ends all that is open, the last first.
func (n *natsNode) close() (err error) {
	if n.engine != nil {
		err = n.engine.Close()
	}
	if n.streams != nil {
		err = errors.Join(err, n.streams.Close())
	}
	if n.entries != nil {
		err = errors.Join(err, n.entries.Close())
	}
	if n.stop != nil {
		n.stop()
		n.followed.Wait()
	}
	if n.conns != nil {
		n.conns.Close()
	}
	return errors.Join(err, n.inside.close())
}
