package bolt

import (
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// DefaultReserveBytes is the size of the reserve: several times what the deletion of one entry of
// the largest size takes, with the pages around it.
const DefaultReserveBytes = 4 << 20

const (
	// reserveStep is how much is prepared at once beyond what is needed, so that a growing store
	// does so seldom.
	reserveStep = 256 << 10
	// smallValue is the size up to which an entry may still be replaced by a larger one when there
	// is no more room.
	smallValue = 4 << 10
	// pagesOfChange bounds the bytes of pages that a small change copies, twice over: leaf,
	// branches and buckets.
	pagesOfChange = 64 << 10
)

// reserve is the room that changes find on a full disk.
//
// bbolt never changes a page in place: also a deletion needs new ones, and takes them behind the
// pages in use when none are free. So behind those the file has blocks that were written already,
// with zeros, where no allocation can fail. bbolt neither reads them nor minds that the file is
// longer than it is used.
//
// Changes that make the store larger have to leave the reserve as it is: they are made only after
// as much was prepared behind it as they may take. When that fails the disk is full, and what is
// left is for those that do not: deletions, which free pages for the next, and changes of small
// entries, as the mark of a hub that is being deleted.
type reserve struct {
	file io.WriterAt
	// sync makes what was written durable, with the file's length; bbolt does so too, before it
	// writes pages behind the old end.
	sync func() error
	size int64
	// written is up to where the file is known to have its blocks. Used with Store.commit held.
	written int64
	zeros   []byte
}

// hold prepares room for need bytes and the reserve, behind the pages in use. An error means that
// there is less; what could be prepared is.
func (r *reserve) hold(used, need int64) error {
	want := used + r.size + need
	if r.size == 0 || r.written >= want {
		return nil
	}
	if r.zeros == nil {
		r.zeros = make([]byte, 64<<10)
	}
	r.written = max(r.written, used)
	var failed error
	for end := want + reserveStep; r.written < end && failed == nil; {
		var n int
		n, failed = r.file.WriteAt(r.zeros[:min(int64(len(r.zeros)), end-r.written)], r.written)
		r.written += int64(n)
	}
	if failed != nil && (asFull(failed) == nil || r.written < want) {
		return fmt.Errorf("prepare room: %w", failed)
	}
	return r.sync()
}

// needOf is how much a transaction with these changes may take, generously.
func needOf(changes []*change) int64 {
	need := int64(pagesOfChange)
	for _, c := range changes {
		need += 2 * int64(len(c.key)+len(c.record))
	}
	return need
}

// frugal tells whether a change may be made on a full disk; present is the entry as it is.
func (c *change) frugal(present []byte) bool {
	return c.record == nil || present != nil && len(c.record) <= max(len(present), smallValue)
}

// reserveRoom prepares the reserve at the start. That it is there already is not known: a crash may
// have cost it. A full disk is no reason not to start.
func (s *Store) reserveRoom() error {
	var used int64
	if err := s.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		return err
	}
	err := s.room.hold(used, 0)
	if err != nil && asFull(err) == nil {
		return err
	}
	if err != nil {
		s.log.Warn("no room for the whole reserve: deletions may fail while the disk is full", "bytes", s.room.size, "error", err)
	}
	return nil
}
