package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/sleep"
)

// heartbeat is this instance's presence: the record by which the others see that it lives. The
// coordinator's goroutine alone uses it.
type heartbeat struct {
	*instance
	entry   Entry     // as last written
	began   time.Time // when that write began: leases that hang on the entry are ours for a lease time from then
	life    string    // what such leases name; another after others have ended it
	onEnd   func()    // called when it was ended, before the next begins
	leaving bool      // the instance stops: it is to count no more
	said    bool      // that an instance with our id has been here
}

func newHeartbeat(in *instance) *heartbeat {
	return &heartbeat{instance: in, life: newLife(), onEnd: func() {}}
}

// newLife is long enough that no two instances of a group have the same.
func newLife() string { return rand.Text()[:13] }

// announce writes the presence before anything is claimed. Where there is one of our id it is
// watched for a while: if it goes on changing, another process is using the id; if not, it is what an
// earlier life of ours has left behind, and taken over. One that is leaving is waited for.
func (a *heartbeat) announce(ctx context.Context) error {
	there, err := a.read(ctx)
	if err != nil {
		return err
	}
	left := a.isAnothers(there)
	if left {
		if !a.said {
			a.said = true
			a.logWaiting("an instance with this id has been here: waiting to see whether it lives", "unchanged_for", a.watchFor())
		}
		if there, err = a.observe(ctx, there); err != nil {
			return err
		}
	}
	err = a.put(ctx, there.Version)
	switch {
	case left && errors.Is(err, ErrConflict):
		return a.announce(ctx) // it has changed in this moment: what it is now decides
	case errors.Is(err, hub.ErrUnauthorized) && (left || a.hasLeases(ctx)): // to a yard it lives until its leases have run out
		return fmt.Errorf("take over the presence that an earlier instance has left: %v", err) // not %w: it passes
	}
	return err
}

// isAnothers: the presence is not ours, and has not ended. Who takes it for dead ends or removes it, and a
// write of ours whose answer was lost may come late: neither shows that another process is using the id.
func (a *heartbeat) isAnothers(f Entry) bool {
	_, p := decodePresence(f)
	return f.Version != "" && p.Nonce != a.nonce && !p.Ended
}

// duplicate is ErrDuplicateID with what to do about it.
func (a *heartbeat) duplicate() error {
	return fmt.Errorf("instance %q: %w: leave Config.ID empty, or give each instance an id of its own", a.id, ErrDuplicateID)
}

// observe watches a presence for one and a half times as long as a living instance leaves it
// unchanged, counted from its last change. A process that has ended may still change it once, by a write that
// was long under way, and one that is leaving may do so more often; whatever else changes it is alive.
func (a *heartbeat) observe(ctx context.Context, there Entry) (Entry, error) {
	changes := 0
	for end := time.Now().Add(a.watchFor()); time.Now().Before(end); {
		if err := sleep.For(ctx, min(a.cfg.Renew/4, time.Until(end)), nil); err != nil {
			return Entry{}, err
		}
		now, err := a.read(ctx)
		if err != nil {
			return Entry{}, err
		}
		if !a.isAnothers(now) {
			return now, nil // it has left, or has been ended
		}
		if now.Version == there.Version {
			continue
		}
		if _, p := decodePresence(now); !p.Leaving {
			changes++
		}
		if changes > 1 {
			return Entry{}, a.duplicate()
		}
		there, end = now, time.Now().Add(a.watchFor())
	}
	return there, nil
}

func (a *heartbeat) watchFor() time.Duration { return watchFor(a.cfg.Renew) }

// watchFor is how long a presence that is renewed so often is unchanged before it is taken for one
// that was left behind.
func watchFor(renew time.Duration) time.Duration { return renew * 3 / 2 }

// read reads the presence of our id; no Version: there is none.
func (a *heartbeat) read(ctx context.Context) (Entry, error) {
	ctx, cancel := a.storeContext(ctx)
	defer cancel()
	entries, err := a.store.Entries(ctx, a.group, presencePrefix)
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(entries, func(f Entry) bool { return f.Key == presencePrefix+a.id })
	if i < 0 {
		return Entry{}, nil
	}
	return entries[i], nil
}

// hasLeases tells whether leases are known to be in our name.
func (a *heartbeat) hasLeases(ctx context.Context) bool {
	ctx, cancel := a.storeContext(ctx)
	defer cancel()
	leases, err := a.store.Leases(ctx, a.group)
	return err == nil && slices.ContainsFunc(leases, func(l Lease) bool { return l.Owner == a.id })
}

func (a *heartbeat) isOurs(f Entry) bool {
	_, p := decodePresence(f)
	return p.Nonce == a.nonce
}

func (a *heartbeat) put(ctx context.Context, v Version) error {
	ctx, cancel := a.storeContext(ctx)
	defer cancel()
	f := presenceEntry(a.id, presence{Nonce: a.nonce, Life: a.life, Started: a.started, Version: 1, Leaving: a.leaving}, v)
	start := time.Now()
	f, err := a.store.Put(ctx, a.group, f)
	if err == nil {
		a.entry, a.began = f, start
	}
	return err
}

// write rewrites the presence. After a lost answer, or when someone took us for dead and ended or
// removed it, what is there decides: what hangs on a life that has ended is lost, and only then
// does another begin.
func (a *heartbeat) write(ctx context.Context) error {
	err := a.put(ctx, a.entry.Version)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	there, err := a.read(ctx)
	if err != nil {
		return err
	}
	if there.Version != "" && !a.isOurs(there) {
		return a.duplicate()
	}
	if _, p := decodePresence(there); there.Version == "" || p.Ended || p.Life != a.life {
		a.onEnd()
		a.life = newLife()
	}
	return a.put(ctx, there.Version)
}

// end ends the life of another instance's presence in the version that was found unchanged for a
// lease time. From then on it cannot renew what hangs on it: its next write conflicts. false: it
// lives after all, or the store has to wait a little longer, or another was quicker.
func (a *heartbeat) end(ctx context.Context, i instanceSeen) (bool, error) {
	ctx, cancel := a.storeContext(ctx)
	defer cancel()
	id, p := decodePresence(i.entry)
	p.Ended = true
	_, err := a.store.Put(ctx, a.group, presenceEntry(id, p, i.entry.Version))
	if errors.Is(err, ErrConflict) || errors.Is(err, hub.ErrUnauthorized) {
		return false, nil
	}
	return err == nil, err
}

// duplicated: another process has written a presence under our id.
func (a *heartbeat) duplicated(w world) error {
	if i, ok := w.instances[a.id]; ok && i.Nonce != a.nonce {
		return a.duplicate()
	}
	return nil
}

// vanish removes the presence, unless it is another's.
func (a *heartbeat) vanish(ctx context.Context) {
	ctx, cancel := a.storeContext(ctx)
	defer cancel()
	err := ErrConflict // not known to have been written: what is there decides
	if a.entry.Version != "" {
		err = a.store.Remove(ctx, a.group, a.entry)
	}
	if errors.Is(err, ErrConflict) {
		there, rerr := a.read(ctx)
		if rerr != nil || there.Version == "" || !a.isOurs(there) {
			return
		}
		err = a.store.Remove(ctx, a.group, there)
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		a.report("remove the presence", err)
	}
}
