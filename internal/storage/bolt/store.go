package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config says where the store is and how it keeps its promises.
type Config struct {
	// Path is the file; its folder exists.
	Path string
	// MustExist refuses to create a store where there is none: for a caller who knows
	// that there was one, and would lose sight of everything it described.
	MustExist bool
	// NoSync is for tests and throw-away yards only. It leaves syncing to the operating
	// system: a crash of the process loses nothing, a crash of the machine may lose the
	// whole file, not just the newest changes, because a meta page can reach the disk
	// before the pages it refers to. Zero: durable.
	NoSync bool
	// ReserveBytes is how much room is kept for changes on a full disk; zero means
	// DefaultReserveBytes, a negative number none.
	ReserveBytes int64
	// Log is told when a change in doubt was settled; nil means slog.Default().
	Log *slog.Logger
}

// Store is a meta.Store in one file.
type Store struct {
	log    *slog.Logger
	closed chan struct{} // closed by Close
	board  board         // who watches

	// durable is the newest revision known to be on disk. Written with commit held.
	durable atomic.Uint64

	// commit is held by the caller who leads a batch, from its sealing to its answers.
	commit sync.Mutex
	db     *database // set by Open; bbolt guards it itself
	// update runs one durable transaction; tests make it fail. Used with commit held.
	update func(func(*bbolt.Tx) error) error
	// resync settles doubt; tests make it fail. Used with commit held.
	resync func() error
	doubt  *doubt  // guarded by commit; nil unless a change's fate is unknown
	room   reserve // guarded by commit

	// gate is held for reading by read transactions and for writing while doubt is
	// settled, which wants no reader left on pages that may be used again.
	gate sync.RWMutex

	mu      sync.Mutex
	joining *batch // guarded by mu; the batch that still takes changes, nil if none
	ended   bool   // guarded by mu; no more batches are opened

	closeOnce sync.Once
	closeErr  error
}

var _ meta.Store = (*Store)(nil)

// Open opens the store, creating it if it is not there; where it must exist, the error
// wraps fs.ErrNotExist instead. When another process has it, the error, after about a
// second, wraps vfs.ErrLocked; when the file is damaged, ErrCorrupt.
func Open(cfg Config) (*Store, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.ReserveBytes = max(cmp.Or(cfg.ReserveBytes, DefaultReserveBytes), 0)
	db, err := openDatabase(cfg)
	if err != nil {
		return nil, fmt.Errorf("open meta store %s: %w", cfg.Path, err)
	}
	revision, err := db.revision()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open meta store %s: read its revision: %w", cfg.Path, err), db.Close())
	}
	s := &Store{
		log:    cfg.Log.With("store", cfg.Path),
		closed: make(chan struct{}),
		db:     db,
		update: db.Update,
		resync: db.resync,
		room:   reserve{file: db.file, sync: db.file.Sync, size: cfg.ReserveBytes},
	}
	if cfg.NoSync {
		s.room.sync = func() error { return nil }
	}
	if err := s.reserveRoom(); err != nil {
		return nil, errors.Join(fmt.Errorf("open meta store %s: %w", cfg.Path, err), db.Close())
	}
	s.durable.Store(uint64(revision))
	return s, nil
}

// Get reads one entry.
func (s *Store) Get(ctx context.Context, key string) (meta.Entry, error) {
	if err := meta.CheckKey(key); err != nil {
		return meta.Entry{}, fmt.Errorf("get: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return meta.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	var entry meta.Entry
	err := s.view(func(entriesBucket *bbolt.Bucket) (err error) {
		record := entriesBucket.Get([]byte(key))
		if record == nil {
			return meta.ErrNotFound
		}
		entry, err = copyEntry(key, record)
		return err
	})
	if err != nil {
		return meta.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return entry, nil
}

// List reads all entries under a prefix.
func (s *Store) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if err := meta.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	entries, _, err := s.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", prefix, err)
	}
	return entries, nil
}

// Keys reads all keys under a prefix, and no value.
func (s *Store) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if err := meta.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	err = s.view(func(entriesBucket *bbolt.Bucket) error {
		return under(ctx, entriesBucket, prefix, func(key, _ []byte) error {
			keys = append(keys, string(key))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list keys %q: %w", prefix, err)
	}
	return keys, nil
}

// Fresh has nothing to wait for: nobody else has the file.
func (s *Store) Fresh(ctx context.Context, prefix string) error {
	if err := meta.CheckPrefix(prefix); err != nil {
		return fmt.Errorf("fresh: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fresh %q: %w", prefix, err)
	}
	select {
	case <-s.closed:
		return fmt.Errorf("fresh %q: %w", prefix, meta.ErrClosed)
	default:
		return nil
	}
}

// CompareAndSet stores a value if the key's revision is the expected one.
func (s *Store) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if err := errors.Join(meta.CheckKey(key), meta.CheckValue(value)); err != nil {
		return 0, fmt.Errorf("set: %w", err)
	}
	c := &change{key: key, expected: expected, record: newRecord(value)}
	if err := s.submit(ctx, c); err != nil {
		return 0, fmt.Errorf("set %q at revision %d: %w", key, expected, err)
	}
	return c.revision, nil
}

// Delete removes a key if its revision is the expected one.
func (s *Store) Delete(ctx context.Context, key string, expected meta.Revision) error {
	if err := meta.CheckKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if expected == 0 {
		return fmt.Errorf("delete %q: %w: the expected revision is zero", key, meta.ErrInvalid)
	}
	if err := s.submit(ctx, &change{key: key, expected: expected}); err != nil {
		return fmt.Errorf("delete %q at revision %d: %w", key, expected, err)
	}
	return nil
}

// Close waits for the commit under way, then closes the file. Whatever comes later,
// waiting watchers and changes not yet begun among it, gets meta.ErrClosed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		close(s.closed)
		s.board.clear()

		s.commit.Lock()
		defer s.commit.Unlock()
		s.doubt = nil // the next Open settles it
		if s.db.noSync {
			s.closeErr = s.db.Sync()
		}
		s.closeErr = errors.Join(s.closeErr, s.db.Close())
	})
	return s.closeErr
}

// list reads a prefix together with the revision at which it was so.
func (s *Store) list(ctx context.Context, prefix string) (entries []meta.Entry, at meta.Revision, err error) {
	err = s.view(func(entriesBucket *bbolt.Bucket) error {
		at = meta.Revision(entriesBucket.Sequence())
		return under(ctx, entriesBucket, prefix, func(key, record []byte) error {
			entry, err := copyEntry(string(key), record)
			if err == nil {
				entries = append(entries, entry)
			}
			return err
		})
	})
	return entries, at, err
}

// under calls each for what is under a prefix, in the order of the keys.
func under(ctx context.Context, entriesBucket *bbolt.Bucket, prefix string, each func(key, record []byte) error) error {
	cursor := entriesBucket.Cursor()
	for key, record := cursor.Seek([]byte(prefix)); key != nil && bytes.HasPrefix(key, []byte(prefix)); key, record = cursor.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(key, record); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// view reads from a snapshot in which everything is durable.
func (s *Store) view(read func(entriesBucket *bbolt.Bucket) error) error {
	durable, err := s.viewIfDurable(read)
	if durable || err != nil {
		return err
	}
	// A commit is in its last sync, or has failed there. With the lock it is neither.
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	_, err = s.viewIfDurable(read)
	return err
}

func (s *Store) viewIfDurable(read func(entriesBucket *bbolt.Bucket) error) (durable bool, err error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	err = s.db.View(func(tx *bbolt.Tx) error {
		entriesBucket := tx.Bucket(entriesBucket())
		if durable = entriesBucket.Sequence() <= s.durable.Load(); !durable {
			return nil
		}
		return read(entriesBucket)
	})
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		err = meta.ErrClosed
	}
	return durable, err
}

// copyEntry takes an entry out of a transaction.
func copyEntry(key string, record []byte) (meta.Entry, error) {
	revision, value, err := openRecord(record, key)
	if err != nil {
		return meta.Entry{}, err
	}
	return meta.Entry{Key: key, Value: bytes.Clone(value), Revision: revision}, nil
}
