package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// lockTimeout is how long a second process waits for the lock.
const lockTimeout = time.Second

const format = "1"

// The names of the file's buckets; doc.go says what they hold.
func entriesBucket() []byte { return []byte("facts") }
func aboutBucket() []byte   { return []byte("about") }
func formatKey() []byte     { return []byte("format") }
func tallyKey() []byte      { return []byte("tally") }

// database is the open file: bbolt's view of it, and the handle beneath, which bbolt
// keeps to itself.
type database struct {
	*bbolt.DB
	file   *os.File
	noSync bool
}

// openDatabase opens or creates the file, ready for changes: nothing in it is in doubt.
func openDatabase(cfg Config) (*database, error) {
	if _, err := os.Stat(cfg.Path); errors.Is(err, fs.ErrNotExist) {
		if cfg.MustExist {
			return nil, fmt.Errorf("%w: the logs beside it belong to hubs that only it describes; "+
				"restore %s from a backup, or move the log folder away to begin anew", fs.ErrNotExist, filepath.Base(cfg.Path))
		}
		if err := createDatabase(cfg.Path); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	// bbolt maps the file and trusts its pages: a damaged or missing one is a panic on a goroutine
	// of its own, or a bus error, and the end of the process. Read page by page, it is an error.
	db, err := openToRead(cfg.Path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(inspect(db), db.Close()); err != nil {
		return nil, err
	}
	db, err = openBolt(cfg.Path, bbolt.Options{NoSync: cfg.NoSync})
	if err != nil {
		return nil, err
	}
	if err := db.prepare(cfg.Path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openBolt opens an existing file, with a lock of its own or, for reading, a shared one.
func openBolt(path string, options bbolt.Options) (*database, error) {
	db := &database{noSync: options.NoSync}
	options.Timeout = lockTimeout
	options.FreelistType = bbolt.FreelistMapType
	options.NoFreelistSync = true
	options.NoStatistics = true
	options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		file, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
		db.file = file
		return file, err
	}
	var err error
	db.DB, err = bbolt.Open(path, 0o600, &options)
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, vfs.ErrLocked
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: neither of its two meta pages is valid: %w", ErrCorrupt, err)
	case err != nil:
		return nil, err
	}
	return db, nil
}

// createDatabase makes an empty store under another name and gives it its own when it
// is whole and durable: a power cut leaves no half of one. A link never replaces a
// file that another process has put there meanwhile.
func createDatabase(path string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newSuffix+"*")
	if err != nil {
		return err
	}
	name := temp.Name()
	defer func() { _ = os.Remove(name) }() // best effort, prepare removes what is left
	if err := temp.Close(); err != nil {
		return err
	}
	if err := fillDatabase(name); err != nil {
		return err
	}
	err = os.Link(name, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, statErr := os.Stat(path); statErr == nil {
		return nil
	}
	return os.Rename(name, path) // a file system without links
}

const newSuffix = ".new-"

func fillDatabase(path string) error {
	db, err := openBolt(path, bbolt.Options{})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(entriesBucket()); err != nil {
			return err
		}
		about, err := tx.CreateBucket(aboutBucket())
		if err != nil {
			return err
		}
		if err := about.Put(formatKey(), []byte(format)); err != nil {
			return err
		}
		return new(tally).save(tx)
	})
	return errors.Join(err, db.Close())
}

// prepare does what must be done before the first change.
func (db *database) prepare(path string) error {
	if err := db.View(checkFormat); err != nil {
		return err
	}
	if err := db.resync(); err != nil {
		return err
	}
	if err := removeUnfinished(path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path)) // the file's name must be as durable as its entries
}

func checkFormat(tx *bbolt.Tx) error {
	about := tx.Bucket(aboutBucket())
	if about == nil || tx.Bucket(entriesBucket()) == nil {
		return fmt.Errorf("%w: it has no bucket %q or %q", ErrFormat, aboutBucket(), entriesBucket())
	}
	if got := string(about.Get(formatKey())); got != format {
		return fmt.Errorf("%w: it has format %q, want %q", ErrFormat, got, format)
	}
	_, err := loadTally(tx)
	return err
}

// resync makes durable what can be seen. After a failed sync the kernel may count the
// meta pages as clean though they never reached the disk; writing them again as they
// are makes the sync that follows speak for them. The pages they refer to were synced
// before. No transaction may be under way.
func (db *database) resync() error {
	if db.noSync {
		return nil
	}
	pages := make([]byte, 2*db.Info().PageSize)
	if _, err := db.file.ReadAt(pages, 0); err != nil {
		return fmt.Errorf("read meta pages: %w", err)
	}
	if _, err := db.file.WriteAt(pages, 0); err != nil {
		return fmt.Errorf("write meta pages again: %w", err)
	}
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync meta pages: %w", err)
	}
	return nil
}

// revision is the newest one that can be seen.
func (db *database) revision() (revision meta.Revision, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		revision = meta.Revision(tx.Bucket(entriesBucket()).Sequence())
		return nil
	})
	return revision, err
}

// removeUnfinished clears away what creations cut short have left. We hold the store's
// lock: whoever is creating just now will find the store there and lose nothing.
func removeUnfinished(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !IsUnfinished(entry.Name(), filepath.Base(path)) {
			continue
		}
		err := os.Remove(filepath.Join(filepath.Dir(path), entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// IsUnfinished knows the names that a creation cut short leaves beside the store's own, base.
func IsUnfinished(name, base string) bool {
	number, ok := strings.CutPrefix(name, base+newSuffix)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there, and need not be
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
