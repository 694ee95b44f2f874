package access

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// snapshot is what readers see of the policies. It is never changed, but replaced as a whole.
type snapshot struct {
	byKey  map[string]record
	byName map[string][]record // by folded name, of all levels
	// digests are those of the keys that are good for a policy, by its key in the store.
	digests map[string][][sha256.Size]byte
}

// quotaOf gives the meter of a policy: the one that it has, if it was there before.
func (s *snapshot) quotaOf(key string, r record, nodes func() int) *quota.Meter {
	if s != nil {
		if old, there := s.byKey[key]; there && old.Created.Equal(r.Created) {
			if old.Quota != r.Quota {
				old.quota.Set(r.Quota, time.Now())
			}
			return old.quota
		}
	}
	m := quota.NewMeter(fmt.Sprintf("policy %q", r.Name), "events").Among(nodes)
	m.Set(r.Quota, time.Now())
	return m
}

// digestsOf gives the digests of a policy's keys: each grant asks for them whenever it is used. They are
// those that it has, if it had the same keys before.
func (k *Registry) digestsOf(before *snapshot, key string, r record) (all [][sha256.Size]byte) {
	if before != nil {
		if old, there := before.byKey[key]; there && old.Primary == r.Primary && old.Secondary == r.Secondary {
			return before.digests[key]
		}
	}
	for _, good := range k.keysOf(r) {
		all = append(all, digest(good))
	}
	return all
}

// Quota gives the meter of what an account publishes, as auth.Grant.Account names it; nil: it is no
// policy's.
func (k *Registry) Quota(account string) *quota.Meter { return k.live.Load().byKey[account].quota }

// show replaces the snapshot after policies have changed, and has the listeners called.
func (k *Registry) show([]mirror.Update[record]) {
	all := k.policies.Items()
	live := &snapshot{byKey: make(map[string]record, len(all)), byName: make(map[string][]record),
		digests: make(map[string][][sha256.Size]byte, len(all))}
	before := k.live.Load()
	for _, p := range all {
		r := p.Value
		r.quota = before.quotaOf(p.Key, r, k.nodes)
		live.digests[p.Key] = k.digestsOf(before, p.Key, r)
		live.byKey[p.Key] = r
		name := auth.Fold(r.Name)
		live.byName[name] = append(live.byName[name], r)
	}
	k.live.Store(live)
	k.listeners.Notify()
}
