package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// journal is the layout that the engine did not choose, just complete enough to be measured: all
// partitions' batches go to one shared journal with a single sync, and behind it, through the page
// cache, to a file per partition. It has the engine's own encoding, and what such a layout cannot
// do without: group commit, journal files that are zeroed beforehand and used in turn, and a sync
// of the partitions' files before a journal file is used again. It has no segments, indexes,
// readers or recovery, all of which the engine pays for in the same comparison.
//
// Batches that arrive while a group is being committed form the next one. One goroutine commits,
// another syncs the partitions' files. Writing behind in a third, while the next sync runs, was
// tried: in four rounds of turns no difference stood out of the noise, so it is left simple.
type journal struct {
	parts []*journalPart
	files []vfs.File

	mu     sync.Mutex
	fill   *journalGroup // guarded by mu: the group that gathers
	failed error         // guarded by mu: ends it all

	wake  chan struct{} // to commit: there is something in fill
	full  chan int      // from commit to checkpoint: journal files that are to be freed
	free  chan int      // from checkpoint to commit
	work  sync.WaitGroup
	items sync.Pool // *journalItem

	byPart  [][]*journalItem // of commit: a group's items by partition
	scratch []byte           // of commit: small items copied together
}

const (
	journalFiles     = 4
	journalFileBytes = 32 << 20
	// journalEntryBytes stand before each batch in the journal and name its partition.
	journalEntryBytes = 8
	// ownWrite is the size from which a batch is not copied together with others.
	ownWrite = 32 << 10
	// The salts would be random.
	journalSalt, partSalt = 1, 2
)

// journalPart is a partition. offset belongs to commit.
type journalPart struct {
	file   vfs.File
	next   int64 // guarded by journal.mu
	offset int64
}

// journalGroup is what shares a sync.
type journalGroup struct {
	items []*journalItem
	bytes int64
	// encoding is done when all items are encoded.
	encoding sync.WaitGroup
	// done is closed when err is set and the group is durable or has failed.
	done chan struct{}
	err  error
}

type journalItem struct {
	part int
	buf  []byte // the entry, then the batch
}

func (it *journalItem) batch() []byte { return it.buf[journalEntryBytes:] }

func newJournalGroup() *journalGroup { return &journalGroup{done: make(chan struct{})} }

// openJournal makes the files and starts the goroutines; close ends them.
func openJournal(dir string, partitions int) (*journal, error) {
	j := &journal{
		fill: newJournalGroup(), wake: make(chan struct{}, 1),
		full: make(chan int, journalFiles), free: make(chan int, journalFiles),
	}
	j.byPart = make([][]*journalItem, partitions)
	j.items.New = func() any { return new(journalItem) }
	fs := vfs.OS(dir)
	for i := range partitions {
		f, err := fs.Create(fmt.Sprintf("partition-%d", i))
		if err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
		j.parts = append(j.parts, &journalPart{file: f})
	}
	zeros := make([]byte, journalFileBytes)
	for i := range journalFiles {
		f, err := fs.Create(fmt.Sprintf("journal-%d", i))
		if err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
		j.files = append(j.files, f)
		if _, err := f.WriteAt(zeros, 0); err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
		if err := f.Sync(); err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
		j.free <- i
	}
	j.work.Go(j.commit)
	j.work.Go(j.checkpoint)
	return j, nil
}

// append stores a batch durably.
func (j *journal) append(part int, b eventlog.Batch) error {
	item := j.items.Get().(*journalItem)
	item.part = part
	j.mu.Lock()
	if err := j.failed; err != nil {
		j.mu.Unlock()
		return err
	}
	g, first := j.fill, j.parts[part].next
	j.parts[part].next += int64(len(b.Events))
	g.items = append(g.items, item)
	g.bytes += int64(journalEntryBytes + segment.BatchHeaderBytes + segment.Align + b.Bytes())
	g.encoding.Add(1)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	item.encode(b, first) // by each appender for itself, beside the others
	g.encoding.Done()
	<-g.done
	j.items.Put(item)
	return g.err
}

// encode writes a batch as the engine does, with its partition before it.
func (it *journalItem) encode(b eventlog.Batch, first int64) {
	dst := binary.LittleEndian.AppendUint64(it.buf[:0], uint64(it.part))
	dst = segment.Reserve(dst, 0)
	for i := range b.Events {
		e := &b.Events[i]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Message)))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Key)))
		dst = append(dst, e.Key...)
		dst = append(dst, e.Message...)
	}
	info := segment.Info{First: first, Count: len(b.Events), Time: time.Now().UnixMilli()}
	it.buf = segment.Finish(dst, journalEntryBytes, info)
}

// commit makes one group after the other durable and acknowledges it.
func (j *journal) commit() {
	defer close(j.full)
	file, offset, last := <-j.free, int64(0), 0
	for range j.wake {
		g := j.take(last)
		if g == nil {
			continue
		}
		last = len(g.items)
		if offset+g.bytes > journalFileBytes {
			j.full <- file
			file, offset = <-j.free, 0
		}
		g.encoding.Wait()
		n, err := j.writeItems(j.files[file], offset, g.items, journalSalt, 0)
		if err == nil {
			err = j.files[file].Sync()
		}
		if err == nil {
			err = j.writeBehind(g)
		}
		offset += n
		if g.err = err; err != nil {
			j.fail(err)
		}
		close(g.done)
	}
}

// take gives the group that has gathered, nil if there is none. As the engine does, it
// first lets those who were acknowledged a moment ago come back, as long as some do.
func (j *journal) take(last int) *journalGroup {
	for before := -1; ; {
		j.mu.Lock()
		g := j.fill
		if n := len(g.items); n < last && n != before {
			before = n
			j.mu.Unlock()
			runtime.Gosched()
			continue
		}
		defer j.mu.Unlock()
		if len(g.items) == 0 {
			return nil
		}
		j.fill = newJournalGroup()
		return g
	}
}

// writeBehind puts what is durable into the partitions' files.
func (j *journal) writeBehind(g *journalGroup) error {
	for i := range j.byPart {
		j.byPart[i] = j.byPart[i][:0]
	}
	for _, item := range g.items {
		j.byPart[item.part] = append(j.byPart[item.part], item)
	}
	for i, items := range j.byPart {
		p := j.parts[i]
		n, err := j.writeItems(p.file, p.offset, items, partSalt, journalEntryBytes)
		p.offset += n
		if err != nil {
			return err
		}
	}
	return nil
}

// checkpoint frees journal files: what they hold has to be durable elsewhere first.
func (j *journal) checkpoint() {
	for file := range j.full {
		if err := each(len(j.parts), func(i int) error { return j.parts[i].file.Sync() }); err != nil {
			j.fail(err)
		}
		j.free <- file
	}
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = errors.Join(j.failed, err)
}

// close ends the goroutines. Nobody appends any more.
func (j *journal) close() error {
	close(j.wake)
	j.work.Wait()
	return errors.Join(j.failed, j.closeFiles())
}

func (j *journal) closeFiles() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	for _, p := range j.parts {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// writeItems writes items behind each other, less the first bytes of each, copying
// small ones together, and tells how many bytes that were.
func (j *journal) writeItems(f vfs.File, offset int64, items []*journalItem, salt uint64, less int) (int64, error) {
	at, small := offset, j.scratch[:0]
	write := func(b []byte) error {
		n, err := f.WriteAt(b, at)
		at += int64(n)
		return err
	}
	for _, item := range items {
		segment.Seal(item.batch(), salt, at+int64(len(small)+journalEntryBytes-less), offset)
		if len(item.buf) < ownWrite {
			small = append(small, item.buf[less:]...)
			continue
		}
		if len(small) > 0 {
			if err := write(small); err != nil {
				return at - offset, err
			}
			small = small[:0]
		}
		if err := write(item.buf[less:]); err != nil {
			return at - offset, err
		}
	}
	j.scratch = small
	var err error
	if len(small) > 0 {
		err = write(small)
	}
	return at - offset, err
}
