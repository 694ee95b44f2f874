package meta

import "context"

// Snapshotter is a store that can give all entries as of one moment without having them in memory at
// once. A store need not be one.
type Snapshotter interface {
	// Snapshot calls visit for every entry in byte order of the keys, as they all were at one moment
	// between its call and the first visit, not older than what anybody has seen acknowledged. An
	// error of visit ends it and is given back. Changes go on meanwhile, but the store may grow by
	// them, or have them wait when it does: visit is to be quick, and waits for no client.
	//
	// A store that keeps its keys in several places that count for themselves gives each of them as of
	// a moment of its own, between the call and the first visit, and all definitions as they were at
	// all of these moments. So what depends on a definition is never there without it, or the reverse.
	Snapshot(ctx context.Context, visit func(Entry) error) error
}

// Snapshot visits the entries of any store: of one that is no Snapshotter as List gives them.
func Snapshot(ctx context.Context, store Store, visit func(Entry) error) error {
	if s, ok := store.(Snapshotter); ok {
		return s.Snapshot(ctx, visit)
	}
	all, err := store.List(ctx, "")
	for _, e := range all {
		if err == nil {
			err = visit(e)
		}
	}
	return err
}
