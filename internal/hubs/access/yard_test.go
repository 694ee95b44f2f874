package access

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hubs are those that a registry is told of.
type hubs struct {
	mu      sync.Mutex
	created map[string]time.Time // by folded name; guarded by mu
}

func newHubs(names ...string) *hubs {
	h := &hubs{created: make(map[string]time.Time)}
	for _, name := range names {
		h.make(name, time.UnixMilli(1700000000000))
	}
	return h
}

func (h *hubs) make(name string, created time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.created[auth.Fold(name)] = created
}

func (h *hubs) delete(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.created, auth.Fold(name))
}

func (h *hubs) find(name string) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	created, ok := h.created[auth.Fold(name)]
	return created, ok
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, cfg Config) *Registry {
	t.Helper()
	if cfg.Meta == nil {
		cfg.Meta = newMemStore()
	}
	if cfg.Hub == nil {
		cfg.Hub = newHubs().find
	}
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	return testkit.Value(Open(t.Context(), cfg))(t)
}

func mustCreate(t *testing.T, k *Registry, hub, name string, rights auth.Rights) Policy {
	t.Helper()
	return testkit.Value(k.Create(t.Context(), Policy{Hub: hub, Name: name, Rights: rights}))(t)
}

// namespace is the place of what concerns all hubs.
var namespace auth.Entity

// sign makes a token for a resource that is good for an hour.
func sign(resource string, p Policy) string {
	return auth.Sign(resource, p.Name, p.Primary, time.Now().Add(time.Hour))
}

// names lists the policies of a hub.
func names(t *testing.T, k *Registry, hub string) []string {
	t.Helper()
	list := testkit.Value(k.Policies(hub))(t)
	var got []string
	for _, p := range list {
		got = append(got, p.Name)
	}
	return got
}

// running is a registry that follows the others until stop.
func running(t *testing.T, k *Registry) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		testkit.Check(t, <-ended, "run ended with")
	}
}

// stored lists the keys of all policies in a store.
func stored(t *testing.T, store meta.Store) []string {
	t.Helper()
	entries := testkit.Value(store.List(t.Context(), policiesPrefix))(t)
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}
