// Package runner runs functions that are reached over HTTP inside the yard, and keeps their
// definitions. It also sees the circuits of all functions, whoever runs them.
//
// A definition is an entry in the meta store, under functions/ and its name in lower case. Whoever
// makes a change writes it there by compare-and-set; every node watches, and runs one
// functions.Host for each definition (run.go, job.go). The hosts of several nodes share the
// partitions, as those of any group do.
//
// All else that there is of a function lies in the records of its group, written by its hosts:
// circuit, failures and work. A function is deleted in three steps: its definition is marked, its
// hosts stop, its records and then the definition are removed. What is interrupted is finished by
// the next start, or by whoever makes or deletes one of that name.
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/functions/local"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/tracing"
)

// What callers branch on.
var (
	ErrNotFound  = errors.New("no such function")
	ErrExists    = errors.New("function exists already")
	ErrInvalid   = errors.New("function is not allowed")
	ErrNoCircuit = errors.New("no such circuit")
	// ErrAmbiguous: functions of several groups have that name; the error names them.
	ErrAmbiguous = errors.New("several functions have that name")
)

// Defaults of Config.
const (
	DefaultLease = 10 * time.Second
	DefaultStop  = 5 * time.Second
)

// Config is the registry's. Meta, Broker and Groups are required.
type Config struct {
	Meta   meta.Store
	Broker *broker.Broker
	Groups *groups.Registry
	// HTTP calls endpoints (guarded); CheckEndpoint says what is wrong with a URL.
	HTTP          *http.Client
	CheckEndpoint func(url string) error
	// CheckTarget says what is wrong with a notice's target; Targets are those of all functions.
	CheckTarget func(target string) error
	Targets     []string
	// Publish is the grid, for poison to topics; CheckTopic says whether there is one. A grid that
	// also has topics.Registry's Topic is asked for the schema; else it is Event Grid's.
	Topics interface {
		Publish(ctx context.Context, topic string, events [][]byte, by *quota.Meter) error
	}
	CheckTopic func(topic string) error
	Box        *box.Box
	// Instance is this node's id in the groups of functions, of those that NewInstance makes;
	// empty: another at each start. One that a node has for itself and keeps lets it take up soon,
	// after a crash, what it had before; otherwise its leases have to run out first.
	Instance string
	// Lease, Stop: the processors' (0: 10 s and 5 s).
	Lease, Stop time.Duration
	Log         *slog.Logger
	Metrics     prometheus.Registerer
	// Notes takes what becomes of functions; nil means nobody does.
	Notes activity.Notes
	// Tracer makes spans of calls; nil means that there are none.
	Tracer tracing.Tracer
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Stop = cmp.Or(c.Stop, DefaultStop)
	if c.CheckEndpoint == nil {
		c.CheckEndpoint = func(string) error { return nil }
	}
	if c.CheckTarget == nil {
		c.CheckTarget = func(string) error { return nil }
	}
	if c.CheckTopic == nil {
		c.CheckTopic = func(string) error { return nil }
	}
	return c
}

// Registry keeps definitions and runs them. All methods may be called by many goroutines at once;
// Run by one.
type Registry struct {
	*catalog
	*supervisor
	*circuits
}

var _ notify.Circuits = (*Registry)(nil)

// Open reads the definitions. A definition that cannot be read is told of as failing, and left
// alone. It starts no goroutine; Run does the rest.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if cfg.Meta == nil || cfg.Broker == nil || cfg.Groups == nil {
		return nil, errors.New("open functions: a meta store, a broker and the groups are required")
	}
	cfg = cfg.withDefaults()
	c := &catalog{cfg: cfg, log: cfg.Log}
	k := &Registry{catalog: c, circuits: &circuits{catalog: c}, supervisor: &supervisor{
		catalog: c, id: cmp.Or(cfg.Instance, NewInstance("")), changed: make(chan struct{}, 1),
		jobs: make(map[string]*job), hubs: local.New(cfg.Broker, cfg.Log), calls: newCallMemory(),
	}}
	c.definitions = mirror.New(mirror.Config[*entry]{
		Store: cfg.Meta, Prefix: keyPrefix, Name: "functions", Encode: (*entry).encode, Made: cfg.noteFunction, Log: cfg.Log,
		Apply: func(updates []mirror.Update[*entry]) {
			c.groups.apply(updates)
			k.applied(updates)
		},
		Decode: func(e meta.Entry) (*entry, error) { return decode(e), nil },
	})
	if err := k.definitions.Load(ctx); err != nil {
		return nil, fmt.Errorf("open functions: %w", err)
	}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(newCollector(k)); err != nil {
			return nil, fmt.Errorf("open functions: %w", err)
		}
	}
	return k, nil
}

// maxNode is how much of a node's name is told: it is part of keys that are bounded.
const maxNode = 40

// NewInstance makes an id of those that processors take, unlike any other, from the name of a
// machine.
func NewInstance(node string) string {
	name := strings.Map(func(r rune) rune {
		if alphanumeric(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, node)
	if name = name[:min(len(name), maxNode)]; name == "" {
		name = "yard"
	}
	return name + "-" + strings.ToLower(rand.Text()[:8])
}
