package bolt

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// maxProblems bounds how many problems one check reports.
const maxProblems = 20

// Check reads a whole store and verifies all that can be verified: the file's
// structure, bbolt's own account of its pages, the checksum of every entry. It changes
// nothing, and fails with vfs.ErrLocked while a process has the store open.
func Check(path string) error {
	db, err := openToRead(path)
	if err != nil {
		return fmt.Errorf("check meta store %s: %w", path, err)
	}
	if err := errors.Join(checkDatabase(db), db.Close()); err != nil {
		return fmt.Errorf("check meta store %s: %w", path, err)
	}
	return nil
}

// Entries gives each entry of a store that Check finds sound, changing nothing.
func Entries(path string, visit func(key string, value []byte) error) (err error) {
	db, err := openToRead(path)
	if err != nil {
		return fmt.Errorf("read meta store %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(entriesBucket()).ForEach(func(key, record []byte) error {
			_, value, err := openRecord(record, string(key))
			if err != nil {
				return err
			}
			return visit(string(key), value)
		})
	})
}

// IsStore tells whether a file is a store, be it of another version's form or damaged. Of one that
// another process has open, or that cannot be read, it is assumed.
func IsStore(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	db, err := openToRead(path)
	if err != nil {
		return !errors.Is(err, ErrCorrupt)
	}
	defer db.Close()
	if inspect(db) != nil {
		return true // bbolt's, but damaged
	}
	ours := false
	err = db.View(func(tx *bbolt.Tx) error {
		ours = tx.Bucket(aboutBucket()) != nil && tx.Bucket(entriesBucket()) != nil
		return nil
	})
	return ours || err != nil
}

func checkDatabase(db *database) error {
	if err := inspect(db); err != nil { // first: it makes the rest safe
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if err := checkFormat(tx); err != nil {
			return err
		}
		// bbolt's own check is run to its end: it goes on in the background until everything it
		// has to say was taken.
		var problems []error
		for problem := range tx.Check() {
			problems = appendProblem(problems, problem)
		}
		return errors.Join(errors.Join(problems...), checkEntries(tx))
	})
}

// checkEntries verifies each entry, and that none is missing.
func checkEntries(tx *bbolt.Tx) error {
	want, err := loadTally(tx)
	if err != nil {
		return err
	}
	got := tally{revision: want.revision}
	var problems []error
	err = tx.Bucket(entriesBucket()).ForEach(func(key, record []byte) error {
		if err := checkEntry(string(key), record, want.revision); err != nil {
			problems = appendProblem(problems, err)
			return nil
		}
		got.add(record)
		return nil
	})
	if len(problems) == 0 && got != want {
		problems = appendProblem(problems, fmt.Errorf("%w: it holds %d entries with the sum %d, but %d with the sum %d were stored",
			ErrCorrupt, got.entries, got.sums, want.entries, want.sums))
	}
	return errors.Join(append(problems, err)...)
}

func checkEntry(key string, record []byte, newest meta.Revision) error {
	revision, value, err := openRecord(record, key)
	if err != nil {
		return err
	}
	if err := errors.Join(meta.CheckKey(key), meta.CheckValue(value)); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if revision == 0 || revision > newest {
		return fmt.Errorf("%w: %q has revision %d, the newest is %d", ErrCorrupt, key, revision, newest)
	}
	return nil
}

func appendProblem(problems []error, problem error) []error {
	if len(problems) >= maxProblems {
		return problems
	}
	if !errors.Is(problem, ErrCorrupt) && !errors.Is(problem, ErrFormat) {
		problem = fmt.Errorf("%w: %w", ErrCorrupt, problem)
	}
	return append(problems, problem)
}
