package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// tally counts the entries and adds up their checksums, in the same transaction that
// changes them. bbolt's pages have no checksums: a page that lost an element, or was
// never written though the disk said so, looks sound. The tally shows it.
type tally struct {
	revision meta.Revision // the newest given
	entries  uint64
	sums     uint64 // of the records' checksums
}

const tallyBytes = 16

func (t *tally) add(record []byte) {
	t.entries++
	t.sums += uint64(recordSumOf(record))
}

func (t *tally) remove(record []byte) {
	t.entries--
	t.sums -= uint64(recordSumOf(record))
}

// loadTally reads the tally, which must agree with the entries' revision.
func loadTally(tx *bbolt.Tx) (tally, error) {
	record := tx.Bucket(aboutBucket()).Get(tallyKey())
	if record == nil {
		return tally{}, fmt.Errorf("%w: it has no tally", ErrCorrupt)
	}
	revision, value, err := openRecord(record, string(tallyKey()))
	if err != nil {
		return tally{}, err
	}
	if seen := meta.Revision(tx.Bucket(entriesBucket()).Sequence()); revision != seen || len(value) != tallyBytes {
		return tally{}, fmt.Errorf("%w: the tally is of revision %d, the entries are of %d", ErrCorrupt, revision, seen)
	}
	return tally{revision: revision, entries: binary.BigEndian.Uint64(value), sums: binary.BigEndian.Uint64(value[8:])}, nil
}

// save stores the tally and the revision of the entries.
func (t *tally) save(tx *bbolt.Tx) error {
	record := newRecord(make([]byte, tallyBytes))
	binary.BigEndian.PutUint64(record[recordValue:], t.entries)
	binary.BigEndian.PutUint64(record[recordValue+8:], t.sums)
	sealRecord(record, string(tallyKey()), t.revision)
	if err := tx.Bucket(entriesBucket()).SetSequence(uint64(t.revision)); err != nil {
		return err
	}
	return tx.Bucket(aboutBucket()).Put(tallyKey(), record)
}
