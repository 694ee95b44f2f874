package meta

import "context"

// Selecting is a Store that need not tell a watch of keys that its reader does not want.
type Selecting interface {
	// WatchSome is Store.Watch of those keys under the prefix that are wanted. wants is called for each
	// change, with locks of the store held: it looks at the key, and does nothing else.
	WatchSome(ctx context.Context, prefix string, wants func(key string) bool) (Watcher, error)
}

// WatchSome watches the keys under a prefix that are wanted. A store that cannot select tells of the
// others, too.
func WatchSome(ctx context.Context, store Store, prefix string, wants func(key string) bool) (Watcher, error) {
	if s, ok := store.(Selecting); ok {
		return s.WatchSome(ctx, prefix, wants)
	}
	return store.Watch(ctx, prefix)
}
