package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Target is where an archive is restored to: storage without entries and logs, that nobody else uses, or
// with what an interrupted Restore has left there, if it is to be continued.
type Target struct {
	Meta meta.Store
	// Entry gives what is to be stored of an entry, and false where nothing is: it belongs to where it
	// came from. An error says why it cannot be used here. Nil: all are stored as they are.
	Entry func(e meta.Entry) (meta.Entry, bool, error)
	// Log's partitions are Importers.
	Log eventlog.Engine
	// Kind is that of a log of which the archive does not say it, after all entries were stored. Nil:
	// such a log is not provided.
	Kind func(log string) eventlog.Kind
	// PutBody stores the body of a blob, and PutFile a file, durably. They refuse names that the yard
	// does not give. A body may come more than once: what is there stays.
	PutBody func(name string, body io.Reader) error
	PutFile func(name string, content io.Reader) error
	// Progress hears how many bytes of the archive were read; nil means nobody.
	Progress func(read int64)
	// ReadBack has all partitions read once more at the end, and compared with what was stored.
	ReadBack bool
	// Continued is for a target in which an interrupted Restore has left something; nil: there is nothing.
	Continued *Continued
}

// errChanged: events were removed from what is copied, or could not be read.
var errChanged = errors.New("events were removed by retention, or cannot be read, while they are copied")

// Restore copies an archive, which is read from its beginning, into the target; items is its list, or nil
// where that is still to come: then numbers that are missing in a partition are errChanged. All
// is as durable as the target promises when it returns. After an error the target is of no use but to be
// continued: what is there is a part, and perhaps damaged.
func Restore(ctx context.Context, in io.Reader, items []archive.Item, to Target) error {
	r, err := archive.NewReader(in)
	if err != nil {
		return err
	}
	s := &restoring{Target: to, r: r, items: items}
	if err := s.look(ctx); err != nil {
		return err
	}
	for {
		part, err := s.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if err := s.nothingElse(ctx); err != nil {
				return err
			}
			return s.readBack(ctx)
		case err != nil:
			return err
		case part.Begin == nil:
			return fmt.Errorf("%w: something belongs to no part", archive.ErrDamaged)
		}
		item := *part.Begin
		if items != nil {
			if len(s.items) == 0 || s.items[0].ID() != part.Begin.ID() {
				return fmt.Errorf("%w: the list does not have %s here", archive.ErrDamaged, part.Begin.ID())
			}
			item, s.items = s.items[0], s.items[1:]
		}
		if err := s.item(ctx, item); err != nil {
			return fmt.Errorf("restore %s: %w", item.ID(), err)
		}
	}
}

type restoring struct {
	Target
	r     *archive.Reader
	items []archive.Item // those to come, where they are known
	done  []*importing   // partitions that are to be read back
	left  left           // what an interrupted call has left
}

func (s *restoring) next(ctx context.Context) (archive.Part, error) {
	if err := context.Cause(ctx); err != nil {
		return archive.Part{}, err
	}
	if s.Progress != nil {
		s.Progress(s.r.Offset())
	}
	return s.r.Next()
}

// item restores one that has begun, up to and with its end.
func (s *restoring) item(ctx context.Context, item archive.Item) error {
	switch item.Type {
	case archive.TypeEntries:
		return s.entries(ctx)
	case archive.TypePartition:
		return s.partition(ctx, item)
	}
	pieces := &pieces{s: s, ctx: ctx}
	put := s.PutFile
	if item.Type == archive.TypeBody {
		put = func(name string, body io.Reader) error { return s.putBody(ctx, name, body) }
		if item.Missing != "" { // the entry that names it is there, as it was where it came from
			put = func(string, io.Reader) error { return nil }
		}
	}
	if err := put(item.Name, pieces); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, pieces) // what was not wanted, so that its hash is checked
	return err
}

// pieces reads those of an item up to its end.
type pieces struct {
	s    *restoring
	ctx  context.Context // of the one call that reads
	rest []byte
	end  bool
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.end {
			return 0, io.EOF
		}
		part, err := p.s.next(p.ctx)
		if errors.Is(err, io.EOF) {
			err = archive.ErrUnfinished
		}
		if err != nil {
			return 0, err
		}
		p.rest, p.end = part.Piece, part.End != nil
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Entries are stored together, so that they share the store's syncs.
const (
	entriesAtOnce     = 512
	entriesAtOnceSize = 4 << 20
)

func (s *restoring) entries(ctx context.Context) error {
	var some []meta.Entry
	size := 0
	for {
		part, err := s.next(ctx)
		if err != nil {
			return err
		}
		if part.End != nil {
			if err := s.store(ctx, some); err != nil {
				return err
			}
			return s.removeEntries(ctx)
		}
		entry, wanted := *part.Entry, true
		if s.Entry != nil {
			if entry, wanted, err = s.Entry(entry); err != nil {
				return err
			}
		}
		if !wanted {
			continue
		}
		entry.Value = append([]byte{}, entry.Value...)
		some, size = append(some, entry), size+len(entry.Value)
		if len(some) == entriesAtOnce || size >= entriesAtOnceSize {
			if err := s.store(ctx, some); err != nil {
				return err
			}
			some, size = some[:0], 0
		}
	}
}

func (s *restoring) store(ctx context.Context, entries []meta.Entry) error {
	errs := make([]error, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		there, same := s.takeEntry(e)
		if same {
			continue
		}
		all.Go(func() { _, errs[i] = s.Meta.CompareAndSet(ctx, e.Key, there, e.Value) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Runs are imported together for the same reason.
const (
	runsAtOnce     = 512
	runsAtOnceSize = 8 << 20
)

// partition restores one: its beginning, its runs, and the numbers of those that are lost.
func (s *restoring) partition(ctx context.Context, item archive.Item) error {
	into, err := s.begin(ctx, item)
	if err != nil {
		return err
	}
	defer into.found.close()
	if s.ReadBack {
		into.sum = &runSum{}
		s.done = append(s.done, into)
	}
	for {
		part, err := s.next(ctx)
		if err != nil {
			return errors.Join(err, into.settle(ctx, 0))
		}
		if part.End != nil {
			return into.end(ctx)
		}
		if part.Run.First < item.Partition.First {
			continue // retention had removed it by the end of the backup
		}
		if err := into.run(ctx, *part.Run); err != nil {
			return errors.Join(err, into.settle(ctx, 0))
		}
	}
}

// importing is a partition that is being restored.
type importing struct {
	archive.Partition
	name string // of the log
	log  eventlog.Partition
	eventlog.Importer
	at    eventlog.Sequence
	lost  []archive.Lost // those to come
	under []underway
	size  int     // of those under way
	sum   *runSum // of what was stored; nil: nobody asks
	found found   // what an interrupted call has left
}

type underway struct {
	receipt eventlog.Receipt
	size    int
}

func (s *restoring) begin(ctx context.Context, item archive.Item) (*importing, error) {
	p := *item.Partition
	kind, known, err := s.kind(item)
	if err != nil {
		return nil, err
	}
	if known {
		// Without the retention, which is the yard's to say: nothing is removed while it is restored.
		if err := s.Log.Provide(ctx, item.Name, eventlog.Shape{Partitions: max(p.Partitions, p.Number+1), Kind: kind}); err != nil {
			return nil, s.removedIsOther(err)
		}
	}
	log, err := s.Log.Partition(eventlog.PartitionID{Log: item.Name, Number: p.Number})
	if err != nil {
		return nil, err
	}
	importer, ok := log.(eventlog.Importer)
	if !ok {
		return nil, fmt.Errorf("%w by this storage", errors.ErrUnsupported)
	}
	i := &importing{Partition: p, name: item.Name, log: log, Importer: importer, at: p.First, lost: p.Lost}
	if s.Continued != nil {
		s.left.seen[eventlog.PartitionID{Log: item.Name, Number: p.Number}] = true
		if begun, err := i.goOn(ctx, s.Continued); begun || err != nil {
			return i, err
		}
	}
	if len(i.lost) > 0 && i.lost[0].First == i.at { // nothing is before it that could have a gap behind
		i.at, i.lost = i.lost[0].Next, i.lost[1:]
	}
	var newest time.Time // of what was removed it is not known, but where that is all
	if i.at == p.Next {
		newest = time.UnixMilli(p.LastMillis)
	}
	return i, s.usedIsOther(importer.BeginAt(ctx, i.at, newest))
}

// kind is that of a partition's log; false: it is not known, and nothing needs it.
func (s *restoring) kind(item archive.Item) (kind eventlog.Kind, known bool, err error) {
	switch {
	case item.Partition.Kind != "":
		kind, err = eventlog.ParseKind(item.Partition.Kind)
		return kind, true, err
	case s.Kind != nil:
		return s.Kind(item.Name), true, nil
	}
	return 0, false, nil
}

func (i *importing) run(ctx context.Context, run eventlog.Run) error {
	if run.First < i.found.end {
		return i.compareRun(ctx, run)
	}
	if err := i.skip(ctx); err != nil {
		return err
	}
	size := eventlog.Batch{Events: run.Events, Raw: run.Raw}.Bytes()
	if err := i.settle(ctx, max(runsAtOnceSize-size, 0)); err != nil {
		return err
	}
	if run.First > i.at {
		return fmt.Errorf("%w: after %d comes %d: stop the yard that is copied, or take a backup and restore that", errChanged, i.at-1, run.First)
	}
	receipt, err := i.Import(ctx, run)
	if err != nil {
		return err
	}
	if i.sum != nil {
		i.sum.add(run)
	}
	i.at, i.size = run.Next(), i.size+size
	i.under = append(i.under, underway{receipt, size})
	return nil
}

// skip leaves out the numbers of lost events that come next.
func (i *importing) skip(ctx context.Context) error {
	if len(i.lost) == 0 || i.lost[0].First != i.at {
		return nil
	}
	for len(i.lost) > 0 && i.lost[0].First == i.at {
		i.at, i.lost = i.lost[0].Next, i.lost[1:]
	}
	skipper, ok := i.log.(eventlog.Skipper)
	if !ok {
		return fmt.Errorf("events before %d are lost, and no numbers can be left out: %w by this storage", i.at, errors.ErrUnsupported)
	}
	if err := i.settle(ctx, 0); err != nil {
		return err
	}
	return skipper.SkipTo(ctx, i.at)
}

// settle waits until no more than so many bytes are under way.
func (i *importing) settle(ctx context.Context, bytes int) (err error) {
	for len(i.under) > 0 && (bytes == 0 || i.size > bytes || len(i.under) >= runsAtOnce) {
		_, failed := i.under[0].receipt.Wait(ctx)
		if err == nil {
			err = failed
		}
		i.size -= i.under[0].size
		i.under = i.under[1:]
	}
	return err
}

// end wants the partition to end where it should.
func (i *importing) end(ctx context.Context) error {
	err := i.skip(ctx)
	if err == nil {
		err = i.settle(ctx, 0)
	}
	if err != nil {
		return err
	}
	if b, err := i.log.Sealed(ctx); err != nil || b.Next != i.Next {
		return errors.Join(err, fmt.Errorf("%w: it goes on at %d instead of %d", archive.ErrDamaged, b.Next, i.Next))
	}
	return nil
}
