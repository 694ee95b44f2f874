package delivery

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/topics"
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

// cursorRef names one stored value.
type cursorRef struct {
	source    string
	partition int
}

// cursors is where lanes stand, as the store has it. It is the reconciler's.
type cursors struct {
	meta    meta.Store
	records map[cursorRef]*cursorRecord
}

// cursorRecord is what the store has of a partition.
type cursorRecord struct {
	revision meta.Revision
	value    []byte
	// marks are those that were found at the start and have not been taken over by lanes.
	marks saved
}

// readCursors finds where every lane stood.
func readCursors(ctx context.Context, store meta.Store) (cursors, error) {
	c := cursors{meta: store, records: make(map[cursorRef]*cursorRecord)}
	entries, err := store.List(ctx, cursorPrefix)
	if err != nil {
		return c, fmt.Errorf("read the cursors of subscriptions: %w", err)
	}
	for _, e := range entries {
		source, number, ok := strings.Cut(strings.TrimPrefix(e.Key, cursorPrefix), "/")
		partition, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // nobody's that we know
		}
		marks, err := parseCursors(e.Value)
		if err != nil {
			return c, fmt.Errorf("read the cursors of subscriptions at %s: %w", e.Key, err)
		}
		c.records[cursorRef{source, partition}] = &cursorRecord{revision: e.Revision, value: e.Value, marks: marks}
	}
	return c, nil
}

// startOf is where a subscription begins in a partition: at its mark, where one was saved, else
// where its definition says. One that has never been active has no position yet.
func (c *cursors) startOf(sub *topics.Subscription, source string, partition int) (int64, bool) {
	if record := c.records[cursorRef{source, partition}]; record != nil {
		if mark, ok := record.marks[sub.ID]; ok {
			return mark, true
		}
	}
	if partition < len(sub.Starts) {
		return sub.Starts[partition], true
	}
	return 0, false
}

// save stores a partition's value if it has changed. Nobody else writes it: a conflict means
// that an earlier write of ours, whose answer was lost, did arrive.
func (c *cursors) save(ctx context.Context, position cursorRef, value []byte) error {
	record := c.records[position]
	if record == nil {
		record = &cursorRecord{}
		c.records[position] = record
	}
	if bytes.Equal(value, record.value) {
		return nil
	}
	key := cursorKey(position.source, position.partition)
	revision, err := c.meta.CompareAndSet(ctx, key, record.revision, value)
	if errors.Is(err, meta.ErrConflict) {
		var now meta.Entry
		if now, err = c.meta.Get(ctx, key); err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		revision, err = c.meta.CompareAndSet(ctx, key, now.Revision, value)
	}
	if err != nil {
		return err
	}
	record.revision, record.value = revision, value
	return nil
}
