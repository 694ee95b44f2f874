package disk

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// A journal lets partitions share a sync. Where many partitions commit small groups at
// once, syncing each segment by itself is what limits them; so their groups go, beside the
// segments, into one file that is synced once for all. The segments are synced later, all
// at once, before that file is written anew.
//
// What keeps it simple is that an entry is a physical one: these bytes stand at this
// offset of the segment with this salt. Bytes that were acknowledged never change within
// the life of a segment, so that doing an entry again is always right, however often and
// however late; an entry of a segment that is gone, or lives another life, is passed over.
// Recovery is nothing but writing all entries again before anything is opened.
//
// The rules:
//
//   - A group is written to its segment first. So what is read comes from there alone.
//   - A journal file is written anew only after every segment with entries in it was
//     synced as far as they reach. If such a sync fails, what the page cache says of the
//     segment is worthless and the file is left for the next start to do again.
//   - When no file is free the caller syncs its segment itself, as it does when it is alone.
type journal struct {
	e *Engine

	mu   sync.Mutex
	cond sync.Cond // over mu; signalled when a group is settled
	// All below is guarded by mu.
	fill    *journalGroup
	spare   *journalGroup // for use again
	writing bool
	// gatherer is of the one who writes.
	gatherer gatherer
	current  *journalFile // being written
	free     []*journalFile
	made     int // files that exist or are being made
	// notBefore is when another file may be made, after it could not be.
	notBefore time.Time
	// off is set when it is not wanted, at the end, and when storage failed under a file:
	// everyone syncs for itself.
	off bool
}

// journalGroup is what is written together.
type journalGroup struct {
	buf     []byte
	marks   []mark
	settled bool
	err     error
	left    int // how many of those who waited have seen the end
}

// mark says how far a segment has entries.
type mark struct {
	s      *segments
	f      *file
	offset int64
}

// journalFile is one file of the journal. Whoever writes the journal, and then the one
// checkpoint of it, may read its fields; they are changed under the journal's mu.
type journalFile struct {
	name   string
	handle vfs.File
	// salt is of this life of the file; offset is where its next entry goes.
	salt   uint64
	offset int64
	// marks say which segments have entries in it, and how far.
	marks map[*file]mark
}

const (
	// journalFiles are used in turn: while one is written the other's segments are synced.
	journalFiles = 2
	// defaultJournalBytes is the size of each. They are made when first needed.
	defaultJournalBytes = 32 << 20
	// journalFrom is how many partitions have to be committing for the journal to pay. One
	// alone is better off with its own sync: it writes each byte once.
	journalFrom = 3
	// checkpointSyncs bounds how many segments are synced at once while others commit.
	checkpointSyncs = 4
	// retryJournal is how long everyone syncs for itself after no file could be made.
	retryJournal = time.Minute
)

// errJournalFull: no file is free at the moment.
var errJournalFull = errors.New("journal is full")

// commit makes a group durable that was written to f at the given offset: it returns when
// it is. After errJournalFull nothing has happened.
func (j *journal) commit(s *segments, f *file, offset int64, bytes []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.haveRoomLocked() {
		return errJournalFull
	}
	if j.fill == nil {
		j.fill, j.spare = j.spare, nil
	}
	if j.fill == nil {
		j.fill = &journalGroup{}
	}
	g := j.fill
	g.buf = appendEntry(g.buf, entry{id: s.id, base: f.base, salt: f.head.Salt, offset: offset, bytes: bytes})
	g.marks = append(g.marks, mark{s, f, offset + int64(len(bytes))})
	for !g.settled {
		if j.writing {
			j.cond.Wait()
			continue
		}
		j.leadLocked()
	}
	err := g.err
	if g.left++; g.left == len(g.marks) { // the last to leave makes the group fit for use again
		clear(g.marks)
		*g = journalGroup{buf: g.buf[:0], marks: g.marks[:0]}
		j.spare = g
	}
	return err
}

// haveRoomLocked reports whether there is a file for one more group, and sees to it that
// there will be.
func (j *journal) haveRoomLocked() bool {
	if j.off {
		return false
	}
	if j.current == nil && len(j.free) == 0 && j.made < journalFiles && !time.Now().Before(j.notBefore) {
		j.made++
		j.inBackgroundLocked(j.makeFile)
	}
	return j.current != nil || len(j.free) > 0
}

// leadLocked writes what has gathered, for all who wait.
func (j *journal) leadLocked() {
	j.writing = true
	j.mu.Unlock()
	j.gatherer.wait(j.waiting)
	j.mu.Lock()
	if n := len(j.free); j.current == nil && n > 0 {
		j.current, j.free = j.free[n-1], j.free[:n-1]
		j.current.salt, j.current.offset, j.current.marks = newSalt(), 0, make(map[*file]mark)
	}
	g, f := j.fill, j.current // which may be nil: others have filled what there was
	j.fill = nil
	j.gatherer.took(len(g.marks))
	j.mu.Unlock()
	err := errJournalFull
	if f != nil {
		err = j.write(f, g)
	}
	j.mu.Lock()
	switch {
	case err == nil:
		f.offset += int64(len(g.buf))
		for _, m := range g.marks {
			f.marks[m.f] = m
		}
	case f != nil:
		j.abandonLocked(f, err)
	}
	g.settled, g.err = true, err
	j.writing = false
	j.cond.Broadcast()
	if err == nil && f.offset >= j.e.cfg.journalBytes {
		j.current = nil
		j.inBackgroundLocked(func() { j.checkpoint(f, checkpointSyncs) })
	}
}

// waiting is how many groups have gathered.
func (j *journal) waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.fill.marks)
}

// inBackgroundLocked runs f on a goroutine that Close waits for.
func (j *journal) inBackgroundLocked(f func()) {
	if j.e.cfg.journalInline {
		j.mu.Unlock()
		f()
		j.mu.Lock()
		return
	}
	j.e.committers.Add(1)
	go func() {
		defer j.e.committers.Done()
		f()
	}()
}

// makeFile makes one more file. Everyone syncs for itself until it is there.
func (j *journal) makeFile() {
	f := &journalFile{name: newJournalName()}
	err := j.create(f)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.e.log.Warn("no journal for a while", "error", err)
		j.made--
		j.notBefore = time.Now().Add(retryJournal)
		f.remove(j.e)
		return
	}
	j.free = append(j.free, f)
}

// create makes a file and fills it with zeros, so that syncs into it are cheap.
func (j *journal) create(f *journalFile) error {
	handle, err := j.e.fs.Create(f.name)
	if err != nil {
		return err
	}
	f.handle = handle
	size := j.e.cfg.journalBytes
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := handle.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	if err := handle.Sync(); err != nil {
		return err
	}
	return j.e.fs.SyncDir(journalDir)
}

// remove deletes a file that holds nothing which is still needed.
func (f *journalFile) remove(e *Engine) {
	if f.handle != nil {
		f.handle.Close()
	}
	if err := e.fs.Remove(f.name); err != nil && !vfs.IsNotExist(err) {
		e.log.Warn("remove journal file", "file", f.name, "error", err)
	}
}

// write puts a group into the file and syncs it.
func (j *journal) write(f *journalFile, g *journalGroup) error {
	sealEntries(g.buf, f.salt, f.offset)
	if _, err := f.handle.WriteAt(g.buf, f.offset); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := j.e.timedSync(f.handle); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// abandonLocked gives a file up under which storage failed, and the journal with it. What
// the file holds of earlier groups may still be needed: it stays on disk, to be done again
// at the next start.
func (j *journal) abandonLocked(f *journalFile, err error) {
	j.e.log.Error("journal not used until the next start", "file", f.name, "error", err)
	j.off = true
	if f == j.current {
		j.current = nil
	}
	f.marks = nil
	f.handle.Close()
}

// checkpoint syncs every segment that the file has entries of, so many at once, and frees the file.
func (j *journal) checkpoint(f *journalFile, atOnce int) {
	// Always in the same order, so that a test's seed does the same things each time.
	marks := slices.SortedFunc(maps.Values(f.marks), func(a, b mark) int { return strings.Compare(a.f.name(), b.f.name()) })
	if j.e.cfg.journalInline {
		atOnce = 1
	}
	errs := make([]error, len(marks))
	parallel.Each(len(marks), atOnce, func(i int) { errs[i] = marks[i].s.syncTo(marks[i].f, marks[i].offset) })
	failed := cmp.Or(errs...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if failed != nil {
		j.abandonLocked(f, failed)
		return
	}
	f.marks = nil
	j.free = append(j.free, f)
}

// close syncs the segments behind the journal and removes its files, so that the next start
// has nothing to do. Nobody commits any more.
func (j *journal) close() {
	j.mu.Lock()
	current := j.current
	j.off, j.current = true, nil
	j.mu.Unlock()
	if current != nil {
		j.checkpoint(current, maxSyncs)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.free {
		f.remove(j.e)
	}
	j.free = nil
}
