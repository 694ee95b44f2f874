package access

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// orphanAge is how old a policy has to be before it is removed because its hub is not
// there: the hub may be new, and not known to this node yet.
const orphanAge = 24 * time.Hour

// sweep removes policies of hubs that were deleted. Nobody can use them; this is only to
// keep nothing for ever. What fails is left to the next sweep.
func (k *Registry) sweep(ctx context.Context) {
	for _, p := range k.policies.Items() {
		if !k.orphaned(p.Value) {
			continue
		}
		if err := k.policies.Delete(ctx, p); err != nil && !mirror.GoneOrChanged(err) {
			k.log.Warn("policy of a deleted hub is still there", "policy", p.Value.Name, "hub", p.Value.Hub, "error", err)
			return
		}
	}
}

func (k *Registry) orphaned(r record) bool {
	if r.Hub == "" {
		return false
	}
	created, exists := k.hub(r.Hub)
	if exists {
		return r.level.created.Before(created)
	}
	return time.Since(r.Created) > orphanAge
}
