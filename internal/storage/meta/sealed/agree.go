package sealed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrOtherKey: the nodes that share the store have a secret key that this one was not given. It
// comes with ErrUnknownKey.
var ErrOtherKey = errors.New("this node has another secret key than the yard")

// ErrUnknownToOthers: the key that this node would seal with was never given to a node behind another.
// What it seals the others could not open.
var ErrUnknownToOthers = errors.New("the newest secret key is not known to the other nodes")

// checkKey is the key of an entry that says with which secret key it was sealed, and which keys nodes
// were given. It is the first entry of a shared store, and sealed anew with all others.
const checkKey = "storage/secret-key"

// check is that entry.
type check struct {
	// Keys are the ids of all keys that a node was given.
	Keys []string `json:"keys"`
}

// Agree makes sure that this node has the secret key of all others that share the store, and that they
// were given the one that it seals with. The first node of all notes its keys; of several the store
// decides which is the first. It is durable when the call returns. Errors: ErrOtherKey,
// ErrUnknownToOthers, the store's.
func (s *Store) Agree(ctx context.Context) error {
	for {
		noted, revision, err := s.noted(ctx)
		if err != nil {
			return err
		}
		given := s.keys.names()
		if revision != 0 && !slices.Contains(noted.Keys, given[0]) {
			return fmt.Errorf("%w: put it behind the old one and restart every node so, then before it", ErrUnknownToOthers)
		}
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(noted.Keys, given))))
		if revision != 0 && len(all) == len(noted.Keys) {
			return nil
		}
		value, err := json.Marshal(check{all})
		if err == nil {
			_, err = s.CompareAndSet(ctx, checkKey, revision, value)
		}
		// Where it is not known what was stored, to look again finds out.
		if err == nil || !errors.Is(err, meta.ErrConflict) && !errors.Is(err, meta.ErrUncertain) {
			return err
		}
	}
}

// noted reads the check entry; revision zero if there is none. One in clear was put there by somebody
// who has no key, and would let any other in.
func (s *Store) noted(ctx context.Context) (noted check, revision meta.Revision, err error) {
	entry, err := s.Store.Get(ctx, checkKey)
	if errors.Is(err, meta.ErrNotFound) {
		return check{}, 0, nil
	}
	if err != nil {
		return check{}, 0, fmt.Errorf("find out which secret key the yard has: %w", err)
	}
	if !isSealed(entry.Value) {
		return check{}, 0, fmt.Errorf("%s is not sealed: it was not written by a yard", checkKey)
	}
	value, _, err := s.keys.Open(checkKey, entry.Value)
	if errors.Is(err, ErrUnknownKey) {
		err = fmt.Errorf("%w: give all nodes the same key: %w", ErrOtherKey, err)
	}
	if err == nil {
		err = json.Unmarshal(value, &noted)
	}
	return noted, entry.Revision, err
}
