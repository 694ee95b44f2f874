package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// sharedPrefix is where probations are told to other nodes: grid/probation/HASH, the hash of what
// an endpoint is told by, which may be secret.
const sharedPrefix = "grid/probation/"

// sharedLife is how long after its probation the entry of an endpoint is removed that nobody sends to
// any more.
const sharedLife = 24 * time.Hour

func sharedKey(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return sharedPrefix + hex.EncodeToString(sum[:16])
}

// shared is the probations of endpoints as the nodes of a yard tell each other. An entry is written
// when a probation begins, is prolonged or ends, and at no other time: so a node whose requests have
// not failed yet does not have to find out by ten of its own, and one probe that succeeds is enough
// for all. What is lost of it costs a few requests. A nil shared is that of one machine, which tells
// nobody.
type shared struct {
	s *Service
	// news wakes who writes.
	news chan struct{}

	mu         sync.Mutex
	unreported map[string]retry.Health // by key, what is to be written; guarded by mu
	heard      map[string]retry.Health // by key, what others have written, or we; guarded by mu
	endpoints  map[string]*endpoint    // by key; guarded by mu
}

func newShared(s *Service) *shared {
	return &shared{
		s: s, news: make(chan struct{}, 1), unreported: make(map[string]retry.Health),
		heard: make(map[string]retry.Health), endpoints: make(map[string]*endpoint),
	}
}

// agree is what an endpoint's health becomes when another node's is heard of; the zero Health: the
// probation has ended there. Who is put aside for longer counts, and an end counts for all.
func agree(own, heard retry.Health, now time.Time) retry.Health {
	switch {
	case heard.Until.IsZero() && own.Until.IsZero(): // failures that were counted here stay
		return own
	case heard.Until.IsZero():
		return retry.Health{}
	case heard.Until.After(own.Until) && heard.Until.After(now):
		return heard
	}
	return own
}

// enter makes an endpoint known, which begins with what others have told of it.
func (p *shared) enter(e *endpoint, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := sharedKey(e.identity)
	p.endpoints[key] = e
	e.hear(p.heard[key], now)
}

func (p *shared) leave(e *endpoint) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.endpoints, sharedKey(e.identity))
}

// report has others hear of a probation that has begun here, was prolonged or has ended. It does not
// wait for the store.
func (p *shared) report(identity string, h retry.Health) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreported[sharedKey(identity)] = h
	nudge(p.news)
}

// write writes what is to be told, until ctx ends. What cannot be written is tried once more and then
// left: the next change is written again.
func (p *shared) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
		}
		p.mu.Lock()
		unreported := p.unreported
		p.unreported = make(map[string]retry.Health)
		p.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(unreported)) {
			err := p.put(ctx, key, unreported[key])
			if err != nil && sleep.For(ctx, firstPause, nil) == nil {
				err = p.put(ctx, key, unreported[key])
			}
			if err != nil && ctx.Err() == nil {
				p.s.log.Warn("other nodes cannot be told of an endpoint's probation", "error", err)
			}
		}
	}
}

// put stores a health, or removes the entry of an endpoint that is well. Of two who write at once the
// last counts.
func (p *shared) put(ctx context.Context, key string, h retry.Health) error {
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	for range maxConflicts {
		there, err := p.s.cfg.Meta.Get(ctx, key)
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		switch {
		case !h.Until.IsZero():
			_, err = p.s.cfg.Meta.CompareAndSet(ctx, key, there.Revision, value)
		case there.Revision != 0:
			err = p.s.cfg.Meta.Delete(ctx, key, there.Revision)
		default:
			return nil
		}
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("tell of a probation: %w", meta.ErrConflict)
}

// follow hears what other nodes tell, until ctx ends.
func (p *shared) follow(ctx context.Context) {
	err := mirror.Follow(ctx, p.watch, func(err error) {
		p.s.log.Warn("the watch of endpoints' probations was lost, beginning anew", "error", err)
	})
	if err != nil && !ended(err) {
		p.s.log.Error("this node does not hear of endpoints' probations any more", "error", err)
	}
}

func (p *shared) watch(ctx context.Context, begun func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := p.s.cfg.Meta.Watch(ctx, sharedPrefix)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		if first {
			p.forget(changes)
			begun()
		}
		for _, c := range changes {
			p.learn(c)
		}
	}
}

// forget lets probations end of which a watch that begins anew does not tell any more.
func (p *shared) forget(present []meta.Change) {
	p.mu.Lock()
	gone := maps.Clone(p.heard)
	p.mu.Unlock()
	for _, c := range present {
		delete(gone, c.Key)
	}
	for key := range gone {
		p.learn(meta.Change{Entry: meta.Entry{Key: key}, Deleted: true})
	}
}

// learn takes in what one entry says.
func (p *shared) learn(c meta.Change) {
	var h retry.Health
	if !c.Deleted {
		if err := json.Unmarshal(c.Value, &h); err != nil {
			p.s.log.Warn("what another node tells of an endpoint cannot be read", "key", strings.TrimPrefix(c.Key, sharedPrefix), "error", err)
			return
		}
	}
	p.mu.Lock()
	if p.heard[c.Key] = h; h.Until.IsZero() {
		delete(p.heard, c.Key)
	} else if time.Since(h.Until) > sharedLife && p.endpoints[c.Key] == nil {
		p.unreported[c.Key] = retry.Health{}
		nudge(p.news)
	}
	e := p.endpoints[c.Key]
	p.mu.Unlock()
	if e != nil {
		e.hear(h, time.Now())
	}
}
