package access

import (
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// snapshot is what readers see of the policies. It is never changed, but replaced as a whole.
type snapshot struct {
	byKey  map[string]record
	byName map[string][]record // by folded name, of all levels
}

// show replaces the snapshot after policies have changed, and has the listeners called.
func (k *Registry) show([]mirror.Update[record]) {
	all := k.policies.Items()
	live := &snapshot{byKey: make(map[string]record, len(all)), byName: make(map[string][]record)}
	for _, p := range all {
		live.byKey[p.Key] = p.Value
		name := auth.Fold(p.Value.Name)
		live.byName[name] = append(live.byName[name], p.Value)
	}
	k.live.Store(live)
	k.listeners.Notify()
}
