package access

import (
	"cmp"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hubs are those that a registry knows of: when each was created, by folded name.
type hubs struct{ created sync.Map }

func newHubs(names ...string) *hubs {
	h := &hubs{}
	for _, name := range names {
		h.make(name, time.UnixMilli(1700000000000))
	}
	return h
}

func (h *hubs) make(name string, created time.Time) { h.created.Store(auth.Fold(name), created) }

func (h *hubs) delete(name string) { h.created.Delete(auth.Fold(name)) }

func (h *hubs) find(name string) (time.Time, bool) {
	created, _ := h.created.Load(auth.Fold(name))
	at, exists := created.(time.Time)
	return at, exists
}

func open(t *testing.T, cfg Config) *Registry {
	t.Helper()
	if cfg.Meta == nil {
		cfg.Meta = storagetest.Entries(t)
	}
	if cfg.Hub == nil {
		cfg.Hub = newHubs().find
	}
	cfg.Log = cmp.Or(cfg.Log, testkit.Quiet())
	return testkit.Value(Open(t.Context(), cfg))(t)
}

func mustCreate(t *testing.T, k *Registry, hub, name string, rights auth.Rights) Policy {
	t.Helper()
	return testkit.Value(k.Create(t.Context(), Policy{Hub: hub, Name: name, Rights: rights}))(t)
}

// namespace is the entity of what concerns all hubs.
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
