package deadletter

import (
	"context"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ClearEpochs has entries be as one machine writes them, which holds all shards under epoch 0: for a yard
// that is moved to one. Nobody else uses the store. It may be called again after an error.
func ClearEpochs(ctx context.Context, store meta.Store) error {
	entries, err := store.List(ctx, entryPrefix)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.Contains(strings.TrimPrefix(e.Key, entryPrefix), "/") {
			continue // a list of letters, which has none
		}
		found, err := stateCodec.Read(e)
		if err != nil {
			return err
		}
		if found.Value.Epoch == 0 {
			continue
		}
		if _, err := stateCodec.Change(ctx, store, e.Key, found, func(s *state) { s.Epoch = 0 }); err != nil {
			return err
		}
	}
	return nil
}
