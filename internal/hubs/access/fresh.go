package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// What other nodes change comes in through Run, within milliseconds. Who makes a policy or a key
// through one node and shows it to another at once may be faster. So nobody is refused for a policy or a
// key that this node does not know before it has looked at the store, once, with fresh reads; where the store
// is out of reach he is told to come back (auth.ErrUnavailable). Names are
// free to invent, and a look costs a durable write: there are so many in a second for all (looks.Looks),
// and none for an address whose refusals have to wait already (failures).

// ReviewInterval is how often a node that has others compares what it knows with the store, by fresh
// reads. It is the bound for what Run is told late: a key that was made anew through another node, or a
// policy that was deleted, is refused here after it at the latest, and what stands on it ends, as long
// as this node reaches the store.
const ReviewInterval = 10 * time.Second

const (
	// maxReload is how many policies are read at once for a key of which nobody says whose it is.
	maxReload = 1000
	// maxNewHubs is how many hubs are looked for that this node does not know.
	maxNewHubs = 3
)

// reviewer finds out what other nodes have changed, where the watch is late. It is the part of a
// Registry that other nodes concern, and owns nothing but the bounds of its looks.
type reviewer struct {
	looks    *looks.Looks // nil: there are no other nodes
	findHub  func(ctx context.Context, name string) error
	level    func(hub string) (level, error)
	live     func() *snapshot
	policies *mirror.Table[record]
	accounts *mirror.Table[Account]
	refused  *failures
	log      *slog.Logger
}

// mayLook is Registry.MayLook.
func (v *reviewer) mayLook(ctx context.Context) bool {
	return v.looks != nil && v.refused.lookable(admission.Remote(ctx), time.Now())
}

// lookable tells whether refusals of an address need not wait; who has no address, inside the process,
// is no stranger.
func (f *failures) lookable(from string, now time.Time) bool {
	address, ok := admission.Address(from)
	if !ok {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.byAddress[address]
	return b == nil || b.Wait(now) == 0
}

// lookFor takes a policy of the namespace and of a hub, if one is named, into use as they are in the
// store by now, and the hub; false: it did not look. The error is auth.ErrUnavailable.
func (v *reviewer) lookFor(ctx context.Context, hub, policy string) (bool, error) {
	if !v.mayLook(ctx) || auth.CheckPolicyName(policy) != nil {
		return false, nil
	}
	if looked, err := v.looks.Fresh(ctx, policiesPrefix); !looked {
		return false, unchecked(err)
	}
	err := v.refresh(ctx, level{}.key(policy))
	if err != nil || hub == "" {
		return true, unchecked(err)
	}
	if err := v.lookForHub(ctx, hub); err != nil {
		return true, err
	}
	if at, err := v.level(hub); err == nil {
		return true, unchecked(v.refresh(ctx, at.key(policy)))
	}
	return true, nil
}

// lookForHub takes a hub into use that this node does not know. The error is auth.ErrUnavailable.
func (v *reviewer) lookForHub(ctx context.Context, hub string) error {
	if _, err := v.level(hub); err == nil || v.findHub == nil {
		return nil
	}
	return unchecked(v.findHub(ctx, hub))
}

// unchecked is what becomes of a token that has to be compared with what cannot be known just now.
func unchecked(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", auth.ErrUnavailable, err)
}

// lookForAny is lookFor of all policies of a name, whichever hubs they are of.
func (v *reviewer) lookForAny(ctx context.Context, policy string) (bool, error) {
	if looked, err := v.lookFor(ctx, "", policy); err != nil || !looked {
		return false, err
	}
	if len(v.live().byKey) > maxReload {
		return true, nil
	}
	if err := v.policies.Load(ctx); err != nil {
		return false, unchecked(err)
	}
	missing := 0
	for _, r := range v.live().byName[auth.Fold(policy)] {
		if _, err := v.level(r.Hub); err != nil && missing < maxNewHubs {
			missing++
			if err := v.lookForHub(ctx, r.Hub); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// refresh takes one policy into use as the store has it; one that is not there changes nothing.
func (v *reviewer) refresh(ctx context.Context, key string) error {
	if err := v.policies.Refresh(ctx, key); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("look for a policy: %w", err)
	}
	return nil
}

// keepReviewing reviews now and then until ctx ends; on one machine there is nothing to review.
func (v *reviewer) keepReviewing(ctx context.Context) {
	if v.looks == nil {
		<-ctx.Done()
		return
	}
	failed := false
	for sleep.For(ctx, ReviewInterval, nil) == nil {
		err := v.review(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			v.log.Warn("policies cannot be compared with the store: what other nodes end is not known here", "error", err)
		}
		failed = err != nil
	}
}

// review takes into use what has changed in the store, and lets go of what is gone. Where nothing has,
// nobody is told anything.
func (v *reviewer) review(ctx context.Context) error {
	known := v.policies.Items()
	ctx, cancel := context.WithTimeout(ctx, ReviewInterval)
	defer cancel()
	if err := errors.Join(v.policies.Fresh(ctx, policiesPrefix), v.accounts.Fresh(ctx, accountsPrefix)); err != nil {
		return err
	}
	stored, err := v.policies.List(ctx, policiesPrefix)
	if err != nil {
		return err
	}
	there := make(map[string]meta.Revision, len(stored))
	for _, p := range stored {
		there[p.Key] = p.Revision
		if mine, ok := v.policies.Get(p.Key); !ok || mine.Revision < p.Revision {
			if err := v.refresh(ctx, p.Key); err != nil {
				return err
			}
		}
	}
	for _, p := range known {
		if there[p.Key] == 0 {
			v.policies.Forget(p)
		}
	}
	if err := v.accounts.Refresh(ctx, blobAccount); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	return nil
}

// MayLook tells whether the address that a request comes from (admission.WithRemote) may cause a look
// at the store; on one machine nobody has to.
func (k *Registry) MayLook(ctx context.Context) bool { return k.others.mayLook(ctx) }

// Adopt gives a grant that another node has checked, and told without a view, as it stands here: on
// this node's policies, keys and hubs. Of bearer tokens, which stand on no policy, the other node's word
// is taken, if this one would take such tokens itself; of a policy's name without a key, as certificates
// bring it, it never is: none of what nodes ask each other is open to those. It may wait for storage,
// since this node may know less than the other. Errors: auth.ErrRevoked where nothing of it stands,
// auth.ErrUnsupported, auth.ErrUnavailable.
func (k *Registry) Adopt(ctx context.Context, g auth.Grant) (auth.Grant, error) {
	for _, s := range g.Scopes {
		if s.Basis.Policy == "" && !k.issuer || s.Basis.Policy != "" && s.Basis.Key == noKey {
			return auth.Grant{}, auth.ErrUnsupported
		}
	}
	g = g.While(k.stands)
	if len(g.Scopes) == 0 || g.Stands() {
		return g, nil
	}
	looked, err := k.others.looks.Fresh(ctx, policiesPrefix)
	if looked {
		for _, s := range g.Scopes {
			if strings.HasPrefix(s.Basis.Policy, policiesPrefix) {
				err = errors.Join(err, k.others.refresh(ctx, s.Basis.Policy))
			}
		}
	}
	if err != nil {
		return auth.Grant{}, unchecked(err)
	}
	if !g.Stands() {
		return auth.Grant{}, auth.ErrRevoked
	}
	return g, nil
}
