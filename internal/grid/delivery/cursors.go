package delivery

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// cursorPrefix is where the cursors are kept: grid/cursors/SOURCE/PARTITION, one value for all
// lanes of a partition, so that ten thousand of them are one small write a second.
const cursorPrefix = "grid/cursors/"

func cursorKey(source string, partition int) string {
	return cursorPrefix + source + "/" + strconv.Itoa(partition)
}

// cursorVersion is the first byte of a value. Then come, for each lane, the length of its ID, the
// ID, and its watermark as an unsigned varint.
const cursorVersion = 1

// saved is the marks of one partition's lanes.
type saved map[string]int64

var errCursors = errors.New("not a list of cursors")

func appendCursor(dst []byte, id string, mark int64) []byte {
	dst = append(dst, byte(len(id)))
	dst = append(dst, id...)
	return binary.AppendUvarint(dst, uint64(mark))
}

func parseCursors(b []byte) (saved, error) {
	if len(b) == 0 || b[0] != cursorVersion {
		return nil, fmt.Errorf("%w: its version is not known, it may be from a newer release", errCursors)
	}
	marks := make(saved)
	for b = b[1:]; len(b) > 0; {
		n := int(b[0])
		if b = b[1:]; len(b) < n {
			return nil, fmt.Errorf("%w: it is cut off", errCursors)
		}
		id := string(b[:n])
		mark, size := binary.Uvarint(b[n:])
		if size <= 0 || int64(mark) < 0 {
			return nil, fmt.Errorf("%w: the mark of %q cannot be read", errCursors, id)
		}
		marks[id] = int64(mark)
		b = b[n+size:]
	}
	return marks, nil
}

// cursorPlace names one stored value.
type cursorRef struct {
	source    string
	partition int
}

// cursorRecord is what the store has of a partition. It is Run's goroutine's alone.
type cursorRecord struct {
	revision meta.Revision
	value    []byte
	// marks are those that were found at the start and have not been taken over by lanes.
	marks saved
}

// readCursors finds where every lane stood.
func readCursors(ctx context.Context, store meta.Store) (map[cursorRef]*cursorRecord, error) {
	entries, err := store.List(ctx, cursorPrefix)
	if err != nil {
		return nil, fmt.Errorf("read the cursors of subscriptions: %w", err)
	}
	records := make(map[cursorRef]*cursorRecord, len(entries))
	for _, e := range entries {
		source, number, ok := strings.Cut(strings.TrimPrefix(e.Key, cursorPrefix), "/")
		partition, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // nobody's that we know
		}
		marks, err := parseCursors(e.Value)
		if err != nil {
			return nil, fmt.Errorf("read the cursors of subscriptions at %s: %w", e.Key, err)
		}
		records[cursorRef{source, partition}] = &cursorRecord{revision: e.Revision, value: e.Value, marks: marks}
	}
	return records, nil
}

// save writes a partition's cursors if they have changed.
func (s *Service) save(ctx context.Context, src *source, f *feed) error {
	if !f.changed.Swap(false) {
		return nil
	}
	position := cursorRef{f.source, f.partition}
	record := s.records[position]
	if record == nil {
		record = &cursorRecord{}
		s.records[position] = record
	}
	value := s.cursorsOf(src, f)
	if bytes.Equal(value, record.value) {
		return nil
	}
	err := s.write(ctx, cursorKey(f.source, f.partition), record, value)
	if err != nil {
		f.changed.Store(true)
	}
	return err
}

// cursorsOf lists the marks of all lanes, and those of deleted subscriptions of which something
// is left that has to be removed.
func (s *Service) cursorsOf(src *source, f *feed) []byte {
	value := append(make([]byte, 0, 1+len(src.lanes)*20), cursorVersion)
	for _, id := range slices.Sorted(maps.Keys(src.lanes)) {
		value = appendCursor(value, id, src.lanes[id].low(f.partition))
	}
	for id, source := range s.unforgotten {
		if source == src.id {
			value = appendCursor(value, id, 0)
		}
	}
	return value
}

// write stores a value. Nobody else writes it: a conflict means that an earlier write of ours,
// whose answer was lost, did arrive.
func (s *Service) write(ctx context.Context, key string, record *cursorRecord, value []byte) error {
	revision, err := s.cfg.Meta.CompareAndSet(ctx, key, record.revision, value)
	if errors.Is(err, meta.ErrConflict) {
		var now meta.Entry
		if now, err = s.cfg.Meta.Get(ctx, key); err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		revision, err = s.cfg.Meta.CompareAndSet(ctx, key, now.Revision, value)
	}
	if err != nil {
		return err
	}
	record.revision, record.value = revision, value
	return nil
}

// saveAll writes what has changed, and tells whether all is written. What is not is tried again.
func (s *Service) saveAll(ctx context.Context) (all bool) {
	all = true
	for _, src := range s.sources {
		for _, f := range src.feeds {
			err := s.save(ctx, src, f)
			if all = all && err == nil; err != nil && ctx.Err() == nil {
				s.log.Warn("the cursors of subscriptions cannot be saved, trying again: after a crash events would be repeated",
					"source", src.label, "partition", f.partition, "error", err)
				s.saveSoon()
			}
		}
	}
	return all
}
