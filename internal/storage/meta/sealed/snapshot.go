package sealed

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Stored visits all entries as of one moment with their values as they are stored, secrets sealed, as
// meta.Snapshot does. What is to be sealed and is not yet, is sealed for the visitor.
func (s *Store) Stored(ctx context.Context, visit func(meta.Entry) error) error {
	return meta.Snapshot(ctx, s.Store, func(e meta.Entry) error {
		if !isPlain(e.Key) && !isSealed(e.Value) && len(e.Value)+s.keys.Overhead() <= meta.MaxValueBytes {
			e.Value = s.keys.Seal(e.Key, e.Value)
		}
		return visit(e)
	})
}

// KeyOf is the id of the key that a value is sealed with, in hexadecimal digits, and false where it is
// not sealed.
func KeyOf(value []byte) (id string, ok bool) {
	if !isSealed(value) || len(value) < head {
		return "", false
	}
	return hex.EncodeToString(value[len(magic):head]), true
}

// Has tells whether the key with an id, as KeyOf gives it, is among the keys.
func (k *Keys) Has(id string) bool {
	return slices.ContainsFunc(k.ids, func(own string) bool { return hex.EncodeToString([]byte(own)) == id })
}
