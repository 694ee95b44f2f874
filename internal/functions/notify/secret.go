package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	secretKey   = "notices/secret"
	secretBytes = 32
)

// openSecret gives the secret that links are signed with. The first node makes it; the store
// decides which is the first. Who deletes the key makes all links that are out worthless.
func openSecret(ctx context.Context, store meta.Store) ([]byte, error) {
	for {
		e, err := store.Get(ctx, secretKey)
		if err == nil && len(e.Value) != secretBytes {
			return nil, fmt.Errorf("the secret of links, %s, has %d bytes instead of %d: delete it, and links that are out end with it", secretKey, len(e.Value), secretBytes)
		}
		if err == nil {
			return e.Value, nil
		}
		if !errors.Is(err, meta.ErrNotFound) {
			return nil, fmt.Errorf("read the secret of links: %w", err)
		}
		fresh := make([]byte, secretBytes)
		rand.Read(fresh) // never fails
		_, err = store.CompareAndSet(ctx, secretKey, 0, fresh)
		if err == nil {
			return fresh, nil
		}
		if !errors.Is(err, meta.ErrConflict) { // another was first: its secret is read
			return nil, fmt.Errorf("store a secret for links: %w", err)
		}
	}
}
