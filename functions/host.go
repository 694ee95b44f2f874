package functions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/processor"
)

// Host runs functions. Many hosts with the same functions, wherever, share their partitions; a Host
// is one instance of them, and runs once.
type Host struct {
	space Namespace // nil: there is no client
	cfg   Config
	id    string
	solo  *solo

	mu        sync.Mutex
	functions []*function // guarded by mu; each is bound once running is set
	running   bool        // guarded by mu
}

// NewHost makes one; nothing runs before Run.
func NewHost(client *hub.Client, cfg Config) *Host {
	if client == nil {
		return NewHostIn(nil, cfg)
	}
	return NewHostIn(Dialed(client), cfg)
}

// NewHostIn is NewHost for hubs that are reached in another way than by a client.
func NewHostIn(space Namespace, cfg Config) *Host {
	cfg.Log = or(cfg.Log, slog.Default())
	h := &Host{space: space, cfg: cfg, id: cfg.ID, solo: newSolo()}
	if h.id == "" {
		h.id = processor.NewID()
	}
	return h
}

// ID is the instance's id.
func (h *Host) ID() string { return h.id }

// Handle adds a function, before Run: later it panics. Names are 1 to 100 letters, digits, '-', '_'
// and '.', and not . or .. alone. Run returns what is wrong with it.
func (h *Host) Handle(name string, handler Handler, b Binding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running {
		panic("functions: Handle after Run")
	}
	b = b.withDefaults(name)
	h.functions = append(h.functions, &function{
		Binding: b, name: name, host: h, raw: handler, policy: b.Retry.policy(),
		log: h.cfg.Log.With(keyFunction, name, keyHub, b.Hub, keyGroup, b.Group),
		bad: sparing{every: time.Minute}, putAway: sparing{every: 10 * time.Second}, tracer: h.cfg.Tracer, onCall: h.cfg.OnCall,
	})
}

// Run runs all functions until ctx ends; then it stops in good order, as a processor does, and
// returns nil, or processor.ErrNotHandedOver where calls have not ended within Config.Stop. It
// returns early, having stopped all functions, for what waiting cannot mend: a binding that makes
// no sense, no such hub or group, no poison hub (with the command that makes it),
// processor.ErrDuplicateID.
func (h *Host) Run(ctx context.Context) error {
	functions, err := h.start()
	if err != nil {
		return fmt.Errorf("run functions: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	run := func(f *function) error {
		err := f.run(ctx)
		if err != nil {
			stop() // the others, in good order
		}
		return err
	}
	errs := make(chan error, len(functions))
	for _, f := range functions[1:] {
		go func() { errs <- run(f) }()
	}
	err = run(functions[0])
	for range functions[1:] {
		if failed := <-errs; err == nil {
			err = failed
		}
	}
	return err
}

// start binds all functions, each of which has a name and a group of its own.
func (h *Host) start() ([]*function, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.running:
		return nil, errors.New("this host has run already: make a new one")
	case h.space == nil:
		return nil, errors.New("there is no client: hub.Dial gives one")
	case len(h.functions) == 0:
		return nil, errors.New("there is none: call Handle before Run")
	}
	for _, f := range h.functions {
		if err := f.bind(); err != nil {
			return nil, err
		}
	}
	names, groups := map[string]bool{}, map[processor.Group]string{}
	for _, f := range h.functions {
		if names[f.name] {
			return nil, fmt.Errorf("two functions are called %s: give each a name of its own", f.name)
		}
		g := f.group.Canonical()
		if other := groups[g]; other != "" {
			return nil, fmt.Errorf("functions %s and %s share the group %s of hub %s, so that each would get a part of the events: "+
				"give each a group of its own", other, f.name, f.Group, f.Hub)
		}
		names[f.name], groups[g] = true, f.name
	}
	h.running = true
	return h.functions, nil
}

// Hold opens a function's circuit for all instances: no further call starts, calls in progress end,
// checkpoints stay, until Resume. Run has begun. Where the circuit is in a yard's store it takes
// the right Manage, and so does Resume.
func (h *Host) Hold(ctx context.Context, function, reason string) error {
	return h.change(ctx, function, func(r breaker.Record) (breaker.Record, bool) {
		return breaker.Hold(r, strings.ToLower(rand.Text()), h.id, reason, time.Now())
	})
}

// Resume closes a function's circuit for all instances, whatever opened it. Each continues
// from its checkpoint, and events that had failed get a fresh round of retries. Run has begun.
func (h *Host) Resume(ctx context.Context, function string) error {
	return h.change(ctx, function, func(r breaker.Record) (breaker.Record, bool) {
		return breaker.Resume(r, h.id, "resumed", time.Now())
	})
}

func (h *Host) change(ctx context.Context, function string, change func(breaker.Record) (breaker.Record, bool)) error {
	for _, f := range h.started() {
		if f.name == function {
			_, err := circuit.Change(ctx, f.store, f.group, f.name, change)
			return err
		}
	}
	return fmt.Errorf("function %q does not run in this host", function)
}

// started gives the functions once they are bound.
func (h *Host) started() []*function {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return nil
	}
	return h.functions
}
