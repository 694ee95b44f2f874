package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

var _ meta.Snapshotter = (*Store)(nil)

// Snapshot visits all entries in one transaction; see meta.Snapshotter. While it runs, pages that
// changes free are not used again, and the file cannot be mapped anew where it has to grow.
func (s *Store) Snapshot(ctx context.Context, visit func(meta.Entry) error) error {
	err := s.view(func(entries *bbolt.Bucket) error {
		return entries.ForEach(func(key, record []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			entry, err := copyEntry(string(key), record)
			if err == nil {
				err = visit(entry)
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("read all entries: %w", err)
	}
	return nil
}

// Raise has every change from now on get a revision above the given one, durably. Whoever fills a
// store from a backup calls it first: clients that remember revisions of the store it was made from
// must not meet the same ones again, for other values.
func (s *Store) Raise(ctx context.Context, above meta.Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	var now meta.Revision
	err := s.update(func(tx *bbolt.Tx) error {
		sum, err := loadTally(tx)
		if err != nil {
			return err
		}
		sum.revision = max(sum.revision, above)
		now = sum.revision
		return sum.save(tx)
	})
	if err != nil {
		return fmt.Errorf("raise revisions above %d: %w", above, err)
	}
	s.durable.Store(uint64(now))
	return nil
}
