package meta

import "context"

// KeyReader is a Store that reads keys without their values.
type KeyReader interface {
	// Keys is Store.List of keys alone.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Keys gives the keys under a prefix, as Store.List orders them. A store that cannot read them alone
// reads whole entries.
func Keys(ctx context.Context, store Store, prefix string) ([]string, error) {
	if s, ok := store.(KeyReader); ok {
		return s.Keys(ctx, prefix)
	}
	entries, err := store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = e.Key
	}
	return keys, nil
}
