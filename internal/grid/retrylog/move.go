package retrylog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// A yard on one machine has one set of retry logs, one of several nodes a set for each shard. Divide makes
// the second of the first, Unite the reverse, for a yard that is moved. What waits stays due when it was;
// what was done by the book is left behind. Nobody else uses the store and the engine. After an error, or
// where the process ends before they return, what is there is of no use: they are for storage that is
// filled anew.

// movedBytes is how much is appended at once.
const movedBytes = 128 << 10

// Divide moves what waits in the retry logs of one machine to those of the shards.
func Divide(ctx context.Context, engine eventlog.Engine, store meta.Store) error {
	from, err := readMoved(ctx, store, retryLogsLog, retryLogsKey)
	if err != nil || from == nil {
		return err
	}
	books := make([]content, shards.Count) // of each shard
	for shard := range books {
		books[shard].Cursors = cursors{}
	}
	var targets [shards.Count]*movedTo
	for name, c := range from.book.Cursors {
		for shard := range books {
			books[shard].Cursors[name] = cursor{WaitMS: c.WaitMS, LongestMS: c.LongestMS}
		}
	}
	for name, c := range from.book.Cursors {
		source, err := from.open(ctx, engine, name, c)
		if err != nil {
			return err
		}
		for source.there {
			shard := shards.Of(source.head.Subscription)
			if targets[shard] == nil {
				held := shards.Held{Shard: shard}.Name()
				targets[shard] = &movedTo{engine: engine, log: retryLogsLog + "-" + held, partitions: from.partitions()}
				if err := putBook(ctx, store, retryLogsUnder+held, books[shard]); err != nil {
					return err
				}
			}
			if err := targets[shard].put(ctx, source.position, source.raw); err != nil {
				return err
			}
			if err := source.next(ctx); err != nil {
				return err
			}
		}
	}
	for _, to := range targets {
		if to != nil {
			if err := to.flush(ctx); err != nil {
				return err
			}
		}
	}
	return from.remove(ctx, engine, store)
}

// Unite moves what waits in the retry logs of all shards to those of one machine, in the order in which it
// is due, and has the books of parked logs without epochs.
func Unite(ctx context.Context, engine eventlog.Engine, store meta.Store) error {
	if err := clearEpochs(ctx, store); err != nil {
		return err
	}
	var all []*moved
	book := content{Cursors: cursors{}}
	for shard := range shards.Count {
		held := shards.Held{Shard: shard}.Name()
		from, err := readMoved(ctx, store, retryLogsLog+"-"+held, retryLogsUnder+held)
		if err != nil {
			return err
		}
		if from == nil {
			continue
		}
		all = append(all, from)
		for name, c := range from.book.Cursors {
			is, known := book.Cursors[name]
			if !known {
				is = cursor{WaitMS: c.WaitMS, LongestMS: c.LongestMS}
			}
			book.Cursors[name] = cursor{WaitMS: min(is.WaitMS, c.WaitMS), LongestMS: max(is.LongestMS, c.LongestMS)}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if err := putBook(ctx, store, retryLogsKey, book); err != nil {
		return err
	}
	partitions := slices.MaxFunc(all, func(a, b *moved) int { return cmp.Compare(a.partitions(), b.partitions()) }).partitions()
	to := &movedTo{engine: engine, log: retryLogsLog, partitions: partitions}
	for name := range book.Cursors {
		if err := unite(ctx, engine, all, name, to); err != nil {
			return err
		}
	}
	if err := to.flush(ctx); err != nil {
		return err
	}
	for _, from := range all {
		if err := from.remove(ctx, engine, store); err != nil {
			return err
		}
	}
	return nil
}

// unite merges the logs of one wait.
func unite(ctx context.Context, engine eventlog.Engine, all []*moved, name string, to *movedTo) error {
	var sources []*movedFrom
	for _, from := range all {
		c, known := from.book.Cursors[name]
		if !known {
			continue
		}
		source, err := from.open(ctx, engine, name, c)
		if err != nil {
			return err
		}
		if source.there {
			sources = append(sources, source)
		}
	}
	for len(sources) > 0 {
		first := slices.MinFunc(sources, func(a, b *movedFrom) int { return a.head.Due.Compare(b.head.Due) })
		if err := to.put(ctx, first.position, first.raw); err != nil {
			return err
		}
		if err := first.next(ctx); err != nil {
			return err
		}
		sources = slices.DeleteFunc(sources, func(s *movedFrom) bool { return !s.there })
	}
	return nil
}

// clearEpochs rewrites the books of parked logs: one machine holds all shards under epoch 0.
func clearEpochs(ctx context.Context, store meta.Store) error {
	entries, err := store.List(ctx, parkedUnder)
	for _, e := range entries {
		if err != nil {
			return err
		}
		book, failed := bookCodec.Read(e)
		if err = failed; err == nil && book.Value.Epoch != 0 {
			book.Value.Epoch = 0
			var value []byte
			if value, err = bookCodec.Encode(book.Value); err == nil {
				_, err = store.CompareAndSet(ctx, e.Key, e.Revision, value)
			}
		}
	}
	return err
}

// moved is a set of retry logs that is moved.
type moved struct {
	log   string
	entry meta.Entry
	book  content
}

// readMoved gives nil where there is no such set.
func readMoved(ctx context.Context, store meta.Store, log, key string) (*moved, error) {
	entry, err := store.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	book, err := bookCodec.Read(entry)
	return &moved{log, entry, book.Value}, err
}

func putBook(ctx context.Context, store meta.Store, key string, book content) error {
	value, err := bookCodec.Encode(book)
	if err == nil {
		_, err = store.CompareAndSet(ctx, key, 0, value)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// partitions is how many logs the set has.
func (m *moved) partitions() (n int) {
	for name := range m.book.Cursors {
		n = max(n, retryLogPosition(name)+1)
	}
	return max(n, 1)
}

// remove removes what was moved.
func (m *moved) remove(ctx context.Context, engine eventlog.Engine, store meta.Store) error {
	if err := engine.Remove(ctx, m.log); err != nil {
		return err
	}
	return store.Delete(ctx, m.entry.Key, m.entry.Revision)
}

// movedFrom reads one log that is moved.
type movedFrom struct {
	position int
	from     eventlog.Partition
	cursor   eventlog.Cursor
	end      eventlog.Sequence
	events   []eventlog.Event // of the run that is read
	// there is false at the end; raw is the head as it is stored, and valid until next.
	there bool
	raw   []byte
	head  pending.Delivery
}

// open reads a log from its cursor on. One that nobody has used since is not in the engine.
func (m *moved) open(ctx context.Context, engine eventlog.Engine, name string, at cursor) (*movedFrom, error) {
	f := &movedFrom{position: retryLogPosition(name)}
	if f.position < 0 {
		return nil, fmt.Errorf("%s has a cursor of %q, which is no retry log", m.entry.Key, name)
	}
	if err := engine.Provide(ctx, m.log, m.shape()); err != nil {
		return nil, err
	}
	p, err := engine.Partition(eventlog.PartitionID{Log: m.log, Number: f.position})
	if err != nil {
		return nil, err
	}
	b, err := p.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	f.from, f.end = p, b.Next
	from := max(b.First, eventlog.Sequence(at.Next))
	if from >= b.Next {
		return f, nil
	}
	if f.cursor, err = p.Cursor(ctx, eventlog.At(from)); err != nil {
		return nil, err
	}
	return f, f.next(ctx)
}

func (m *moved) shape() eventlog.Shape { return movedShape(m.partitions()) }

// movedShape is for a set whose longest wait is not known: the kind only says with which others it
// shares storage.
func movedShape(partitions int) eventlog.Shape {
	return eventlog.Shape{Partitions: partitions, Kind: eventlog.KindRetryLong}
}

// next moves to the next delivery. What is none is left behind, as who delivers does; what a newer release
// has written is not.
func (f *movedFrom) next(ctx context.Context) error {
	for {
		if err := f.read(ctx); err != nil {
			return err
		}
		if len(f.events) == 0 {
			f.there = false
			return f.cursor.Close()
		}
		f.raw, f.events = f.events[0].Message, f.events[1:]
		var err error
		f.head, err = pending.Parse(f.raw)
		if f.there = err == nil; f.there || errors.Is(err, pending.ErrNewer) {
			return err
		}
	}
}

// read has some events be there, unless the log is at its end.
func (f *movedFrom) read(ctx context.Context) error {
	for len(f.events) == 0 && f.cursor.At() < f.end {
		run, err := f.cursor.TryNext(ctx)
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next > f.cursor.At() {
			if err = f.cursor.Close(); err == nil {
				f.cursor, err = f.from.Cursor(ctx, eventlog.At(damage.Next))
			}
			if err == nil {
				continue
			}
		}
		if err != nil || run.Len() == 0 {
			return err
		}
		f.events = run.Events
	}
	return nil
}

// movedTo is a set of retry logs that is filled.
type movedTo struct {
	engine     eventlog.Engine
	log        string
	partitions int
	waiting    map[int]*eventlog.Batch // by position
}

// put appends a delivery to the log of a position, soon.
func (to *movedTo) put(ctx context.Context, position int, raw []byte) error {
	if to.waiting == nil {
		to.waiting = map[int]*eventlog.Batch{}
		if err := to.engine.Provide(ctx, to.log, movedShape(to.partitions)); err != nil {
			return err
		}
	}
	b := to.waiting[position]
	if b == nil {
		b = &eventlog.Batch{}
		to.waiting[position] = b
	}
	if len(b.Events) > 0 && b.Bytes()+len(raw) > movedBytes {
		if err := to.store(ctx, position); err != nil {
			return err
		}
	}
	b.Events = append(b.Events, eventlog.Event{Message: slices.Clone(raw)})
	return nil
}

func (to *movedTo) store(ctx context.Context, position int) error {
	b := to.waiting[position]
	if len(b.Events) == 0 {
		return nil
	}
	p, err := to.engine.Partition(eventlog.PartitionID{Log: to.log, Number: position})
	if err == nil {
		_, err = eventlog.Append(ctx, p, *b)
	}
	b.Events = nil
	return err
}

// flush stores what was put last.
func (to *movedTo) flush(ctx context.Context) error {
	for position := range to.waiting {
		if err := to.store(ctx, position); err != nil {
			return err
		}
	}
	return nil
}

// KindOf is the kind of a log by its name, which is no hub's; false: it is none of the logs of this package.
func KindOf(log string) (eventlog.Kind, bool) {
	switch {
	case log == retryLogsLog, strings.HasPrefix(log, retryLogsLog+"-"):
		return eventlog.KindRetryLong, true
	case strings.HasPrefix(log, "shelf-"):
		return eventlog.KindParked, true
	}
	return 0, false
}
