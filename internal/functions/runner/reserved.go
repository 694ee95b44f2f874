package runner

import (
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// groupsInUse are the groups that have a function, also one that is being deleted: what is kept in
// them is for this registry's hosts alone. It is asked with every change that a client makes.
type groupsInUse struct {
	mu  sync.RWMutex
	all map[processor.Group]int // how many; guarded by mu
}

func (u *groupsInUse) apply(updates []mirror.Update[*entry]) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[processor.Group]int{}
	}
	for _, one := range updates {
		if one.Old.Exists() {
			g := one.Old.Value.group("").Canonical()
			if u.all[g]--; u.all[g] <= 0 {
				delete(u.all, g)
			}
		}
		if one.New.Exists() {
			u.all[one.New.Value.group("").Canonical()]++
		}
	}
}

// Reserved tells whether a group is that of a function of the yard: nobody else changes anything
// there, or events could be passed over without a trace.
func (k *Registry) Reserved(hub, group string) bool {
	u := &k.catalog.groups
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.all[processor.Group{Hub: hub, Group: group}.Canonical()] > 0
}
