package processor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/hub"
)

// Hub is what a processor reads. *hub.Hub is one.
type Hub interface {
	Namespace() string
	Name() string
	Info(ctx context.Context) (hub.Info, error)
	Partition(ctx context.Context, id string) (hub.PartitionInfo, error)
	Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error)
}

// Processor is one instance. It runs once.
type Processor struct {
	hub     Hub
	cfg     Config
	started atomic.Bool
	running atomic.Pointer[instance]
}

// New makes an instance; nothing runs before Run, RunHost or Partitions.
func New(h Hub, cfg Config) *Processor {
	if cfg.ID == "" {
		cfg.ID = NewID()
	}
	return &Processor{hub: h, cfg: cfg.withDefaults()}
}

// NewID is an id for an instance that has none of its own: the machine's name, for those who
// read the table of owners, and something that nobody else has.
func NewID() string {
	host, _ := os.Hostname()
	host = strings.Map(func(r rune) rune {
		if !validID(string(r)) {
			return '-'
		}
		return r
	}, host)
	return cmp.Or(host[:min(len(host), 60)], "instance") + "-" + strings.ToLower(rand.Text()[:10])
}

// ID is the instance's id.
func (p *Processor) ID() string { return p.cfg.ID }

// Handler is called with batches. Calls for one partition never overlap (with Lanes: for one key).
// An error brings the same batch again after a while, unless Config.Continue; ErrUndone is none.
// ctx ends, with its cause, when the partition is taken away: what is returned after the lease was
// lost counts for nothing.
type Handler func(ctx context.Context, b *Batch) error

// Run takes partitions and calls the handler until ctx ends; then it stops gracefully (calls end,
// marked checkpoints are written, leases released) and returns nil, or ErrNotHandedOver where calls
// have not ended within Config.Stop. Other errors are those that nothing can be done about: a
// configuration that makes no sense, ErrDuplicateID, and at the start no such hub or group, no
// right to read. A store or hub that is down is none, and neither is a hub or group that is removed
// later: it is reported to OnError and waited for.
func (p *Processor) Run(ctx context.Context, handle Handler) error {
	return p.run(ctx, func(*Partition) Worker { return handlerWorker{handle} })
}

// RunHost is Run with one worker per partition.
func (p *Processor) RunHost(ctx context.Context, worker func(partition string) Worker) error {
	return p.run(ctx, func(part *Partition) Worker { return worker(part.ID()) })
}

// Status gives that of all partitions that this instance owns.
func (p *Processor) Status() []Status {
	in := p.running.Load()
	if in == nil {
		return nil
	}
	list := []Status{}
	for _, p := range in.ownPumps() {
		list = append(list, p.status())
	}
	sortByPartition(list, func(s Status) string { return s.Partition })
	return list
}

func (p *Processor) run(ctx context.Context, worker func(*Partition) Worker) error {
	if p.started.Swap(true) {
		return errors.New("run processor: it has run already; make a new one")
	}
	if err := p.cfg.validate(); err != nil {
		return err
	}
	store, err := storeOf(p.hub, p.cfg.Store)
	if err != nil {
		return fmt.Errorf("run processor: %w", err)
	}
	in := &instance{
		cfg: p.cfg, hub: p.hub, store: store, id: p.cfg.ID, nonce: rand.Text(), started: time.Now(),
		group:     Group{Namespace: p.hub.Namespace(), Hub: p.hub.Name(), Group: p.cfg.Group},
		newWorker: worker, values: context.WithoutCancel(ctx),
		wakeup: make(chan struct{}, 1), attaching: make(chan struct{}, maxAttaching), fatal: make(chan error, 1), pumps: map[string]*pump{},
	}
	p.running.Store(in)
	c := &coordinator{instance: in, presence: newHeartbeat(in), wishes: &wishes{instance: in},
		observer: newObserver(in.cfg.Lease), held: map[string]*holding{}, barred: map[string]*bar{}, floor: map[string]int64{}}
	c.presence.onEnd = c.loseHanging
	return c.run(ctx)
}

// StoreOf is the store of a hub's processors that are given none: that of the yard which has the
// hub, reached over the hub's own connection. Nothing is sent yet. An error where h is neither a
// *hub.Hub nor a wrapper of one with a method Unwrap() *hub.Hub.
func StoreOf(h Hub) (Store, error) { return storeOf(h, nil) }

func storeOf(h Hub, configured Store) (Store, error) {
	if configured != nil {
		return configured, nil
	}
	if wrapper, ok := h.(interface{ Unwrap() *hub.Hub }); ok {
		h = wrapper.Unwrap()
	}
	if h, ok := h.(*hub.Hub); ok {
		return newYard(h), nil
	}
	return nil, errors.New("this hub keeps no leases and checkpoints: set a store")
}
