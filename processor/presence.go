package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// announce writes the presence before anything is claimed. Where there is one of our id it is
// watched for a while: if it changes, another process is using the id; if not, it is what an earlier life of
// ours has left behind, and taken over.
func (c *coordinator) announce(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := c.tryAnnounce(ctx)
		if err == nil || errors.Is(err, ErrDuplicateID) || hopeless(err) || ctx.Err() != nil {
			return c.noGroup(err)
		}
		c.report("announce the instance", err)
		if err := sleep(ctx, c.cfg.Backoff.delay(failures)); err != nil {
			return err
		}
	}
}

func (c *coordinator) tryAnnounce(ctx context.Context) error {
	there, err := c.ownPresence(ctx)
	if err != nil {
		return err
	}
	if there.Version != "" && !c.isOurs(there) {
		c.sayBeenHere()
		if there, err = c.observe(ctx, there); err != nil {
			return err
		}
	}
	_, err = c.putPresence(ctx, there.Version, false)
	if errors.Is(err, ErrConflict) && there.Version != "" && !c.isOurs(there) {
		return c.duplicate()
	}
	return err
}

// duplicate is ErrDuplicateID with what to do about it.
func (c *coordinator) duplicate() error {
	return fmt.Errorf("instance %q: %w: leave Config.ID empty, or give each instance an id of its own", c.id, ErrDuplicateID)
}

// observe watches a presence for one and a half times as long as a living instance leaves it unchanged.
func (c *coordinator) observe(ctx context.Context, there Entry) (Entry, error) {
	for end := time.Now().Add(c.watchFor()); time.Now().Before(end); {
		if err := sleep(ctx, min(c.cfg.Renew/4, time.Until(end))); err != nil {
			return Entry{}, err
		}
		now, err := c.ownPresence(ctx)
		if err != nil {
			return Entry{}, err
		}
		if now.Version == "" {
			return now, nil // it has left
		}
		if now.Version != there.Version {
			return Entry{}, c.duplicate()
		}
	}
	return there, nil
}

func (c *coordinator) watchFor() time.Duration { return c.cfg.Renew * 3 / 2 }

// ownPresence reads the presence of our id; no Version: there is none.
func (c *coordinator) ownPresence(ctx context.Context) (Entry, error) {
	ctx, cancel := c.storeContext(ctx)
	defer cancel()
	entries, err := c.store.Entries(ctx, c.group, presencePrefix)
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(entries, func(f Entry) bool { return f.Key == presencePrefix+c.id })
	if i < 0 {
		return Entry{}, nil
	}
	return entries[i], nil
}

func (c *coordinator) isOurs(f Entry) bool {
	_, p := decodePresence(f)
	return p.Nonce == c.nonce
}

func (c *coordinator) putPresence(ctx context.Context, v Version, leaving bool) (Entry, error) {
	ctx, cancel := c.storeContext(ctx)
	defer cancel()
	f := presenceEntry(c.id, presence{Nonce: c.nonce, Started: c.started, Version: 1, Leaving: leaving}, v)
	f, err := c.store.Put(ctx, c.group, f)
	if err == nil {
		c.presence, c.presentAt = f, time.Now()
	}
	return f, err
}

// keepPresence rewrites the presence when it is due. After a lost answer, or when
// someone took us for dead and removed it, what is there decides.
func (c *coordinator) keepPresence(ctx context.Context) error {
	if time.Since(c.presentAt) < c.cfg.Renew*9/10 {
		return nil
	}
	return c.writePresence(ctx)
}

func (c *coordinator) writePresence(ctx context.Context) error {
	_, err := c.putPresence(ctx, c.presence.Version, c.leaving)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	there, err := c.ownPresence(ctx)
	if err != nil {
		return err
	}
	if there.Version != "" && !c.isOurs(there) {
		return c.duplicate()
	}
	_, err = c.putPresence(ctx, there.Version, c.leaving)
	return err
}

// duplicated: another process has written a presence under our id.
func (c *coordinator) duplicated(w world) error {
	i, ok := w.instances[c.id]
	if ok && i.Nonce != c.nonce {
		return c.duplicate()
	}
	return nil
}

// sayLeaving lets the others count without us from now on.
func (c *coordinator) sayLeaving(ctx context.Context) {
	if len(c.held) == 0 {
		return // the presence goes away at once
	}
	if err := c.writePresence(ctx); err != nil {
		c.report("tell that the instance stops", err)
	}
}

// vanish removes the presence, unless it is another's.
func (c *coordinator) vanish(ctx context.Context) {
	ctx, cancel := c.storeContext(ctx)
	defer cancel()
	err := ErrConflict // not known to have been written: what is there decides
	if c.presence.Version != "" {
		err = c.store.Remove(ctx, c.group, c.presence)
	}
	if errors.Is(err, ErrConflict) {
		there, rerr := c.ownPresence(ctx)
		if rerr != nil || there.Version == "" || !c.isOurs(there) {
			return
		}
		err = c.store.Remove(ctx, c.group, there)
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		c.report("remove the presence", err)
	}
}
