package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrOtherKey: the nodes that share the store have a secret key that this one was not given. It
// comes with ErrUnknownKey.
var ErrOtherKey = errors.New("this node has another secret key than the yard")

// checkKey is the key of an entry that says nothing but with which secret key it was sealed. It is
// the first entry of a shared store, and sealed anew with all others.
const checkKey = "storage/secret-key"

// Agree makes sure that this node has the secret key of all others that share the store. The first
// node of all notes its key; of several the store decides which is the first. It is durable when the
// call returns. Errors: ErrOtherKey, the store's.
func (s *Store) Agree(ctx context.Context) error {
	for {
		entry, err := s.Store.Get(ctx, checkKey)
		if err == nil {
			return s.fits(entry)
		}
		if !errors.Is(err, meta.ErrNotFound) {
			return fmt.Errorf("find out which secret key the yard has: %w", err)
		}
		_, err = s.CompareAndSet(ctx, checkKey, 0, []byte("{}"))
		// Where it is not known what was stored, to look again finds out.
		if err == nil || !errors.Is(err, meta.ErrConflict) && !errors.Is(err, meta.ErrUncertain) {
			return err
		}
	}
}

// fits tells whether the check entry can be opened. One in clear was put there by somebody who has no
// key, and would let any other in.
func (s *Store) fits(check meta.Entry) error {
	if !isSealed(check.Value) {
		return fmt.Errorf("%s is not sealed: it was not written by a yard", checkKey)
	}
	_, _, err := s.keys.Open(checkKey, check.Value)
	if errors.Is(err, ErrUnknownKey) {
		err = fmt.Errorf("%w: give all nodes the same key: %w", ErrOtherKey, err)
	}
	return err
}
