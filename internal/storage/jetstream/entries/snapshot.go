package entries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

var _ meta.Snapshotter = (*Store)(nil)

// snapshotPatience is how long it is tried to find definitions unchanged.
const snapshotPatience = time.Minute

// errRestless: there was always somebody who changed definitions.
var errRestless = errors.New("hubs, topics, subscriptions, functions or policies are changed all the time: try again later")

// Snapshot is meta.Snapshotter's. The replica has each bucket as it was at some moment, and the buckets
// have no common order. But definitions are changed by people: where three looks in a row have the same,
// they are those of all moments from the end of the first look to the beginning of the third, and so of
// all that the second has. All entries are in memory meanwhile, as they are in any case.
func (s *Store) Snapshot(ctx context.Context, visit func(meta.Entry) error) error {
	var all, last []meta.Entry
	late := time.Now().Add(snapshotPatience)
	for looks, alike := 0, 0; alike < 2; looks++ {
		again, err := s.look(ctx)
		switch {
		case err != nil:
		case looks > 0 && s.sameDefinitions(last, again):
			alike++
		case time.Now().After(late):
			err = errRestless
		default:
			if alike = 0; looks > 0 {
				err = sleep.About(ctx, 50*time.Millisecond)
			}
		}
		if err != nil {
			return fmt.Errorf("read all entries: %w", err)
		}
		all, last = last, again
	}
	for _, e := range all {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// look gives all entries, not older than the call.
func (s *Store) look(ctx context.Context) ([]meta.Entry, error) {
	if err := s.Fresh(ctx, ""); err != nil {
		return nil, err
	}
	return s.List(ctx, "")
}

// sameDefinitions: nothing that other buckets depend on has changed from one look to the next.
func (s *Store) sameDefinitions(before, after []meta.Entry) bool {
	others := func(e meta.Entry) bool { return !s.isDefinition(e.Key) }
	return slices.EqualFunc(slices.DeleteFunc(slices.Clone(before), others), slices.DeleteFunc(slices.Clone(after), others),
		func(a, b meta.Entry) bool { return a.Key == b.Key && a.Revision == b.Revision })
}

// restless are what changes all the time in the bucket of definitions: nothing in another depends on it.
var restless = []string{"nodes/", "blobs/", "holds/"}

func (s *Store) isDefinition(key string) bool {
	return s.layout.bucketOf(key) == definitions &&
		!slices.ContainsFunc(restless, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
