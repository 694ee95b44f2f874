package topics

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// RotateKey adds a signing key of the algorithm (see signature) and lets the others expire after
// overlap; the new one is the last. Those that have expired are forgotten.
func (k *Registry) RotateKey(ctx context.Context, source Source, name, algorithm string, overlap time.Duration) (Subscription, error) {
	if overlap < 0 {
		return Subscription{}, invalid("overlap of %v: give how long the present keys are to sign, zero for no longer", overlap)
	}
	added, err := signature.New(algorithm)
	if err != nil {
		return Subscription{}, invalid("%w", err)
	}
	key, err := k.keyOf(source, name)
	if err != nil {
		return Subscription{}, err
	}
	r, err := k.change(ctx, key, func(r *record) error {
		return r.rotate(added, now(), overlap)
	})
	if errors.Is(err, meta.ErrNotFound) {
		return Subscription{}, notFound(source, name)
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("rotate key of subscription %q: %w", name, err)
	}
	k.log.Info("signing key of subscription rotated", "subscription", r.Name, "source", r.Source, "overlap", overlap)
	return r.Subscription, nil
}

// rotate changes what is proposed, too: else that would take the new key away again.
func (r *record) rotate(added signature.Key, now time.Time, overlap time.Duration) error {
	before := r.Keys
	if err := r.Settings.rotate(added, now, overlap); err != nil {
		return err
	}
	for _, key := range before {
		if !containsKeys(r.Keys, []signature.Key{key}) {
			r.Retired = append(r.Retired, keyPrint(key))
		}
	}
	r.Updated = now
	r.Retired = r.Retired[max(0, len(r.Retired)-maxRetired):]
	if r.Proposal == nil {
		return nil
	}
	return r.Proposal.Settings.rotate(added, now, overlap)
}

// knows reports whether all keys given are among the present ones, or were and have been rotated
// out.
func (r *record) knows(given []signature.Key) bool {
	return !slices.ContainsFunc(given, func(key signature.Key) bool {
		return !containsKeys(r.Keys, []signature.Key{key}) && !slices.Contains(r.Retired, keyPrint(key))
	})
}

// containsKeys reports whether some keys are among others, whenever they expire.
func containsKeys(all, some []signature.Key) bool {
	return !slices.ContainsFunc(some, func(s signature.Key) bool {
		return !slices.ContainsFunc(all, func(a signature.Key) bool { return a.Text == s.Text })
	})
}

// maxRetired is how many keys that were rotated out are remembered.
const maxRetired = 32

// keyPrint tells keys apart and does not give them away: they have 24 random bytes at least.
func keyPrint(key signature.Key) string {
	sum := sha256.Sum256([]byte(key.Text))
	return hex.EncodeToString(sum[:8])
}

func (s *Settings) rotate(added signature.Key, now time.Time, overlap time.Duration) error {
	if s.Webhook == nil {
		return invalid("only webhooks are signed")
	}
	until := now.Add(overlap)
	var keys []signature.Key
	for _, key := range s.Keys {
		if key.Expires.IsZero() || key.Expires.After(until) {
			key.Expires = until
		}
		if key.Expires.After(now) {
			keys = append(keys, key)
		}
	}
	if len(keys) >= maxKeys {
		return invalid("%d keys are signing already: wait until one expires, or give a shorter overlap", len(keys))
	}
	s.Keys = append(keys, added)
	return nil
}
