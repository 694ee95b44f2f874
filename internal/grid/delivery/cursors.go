package delivery

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// cursorPrefix is where the cursors are kept: grid/cursors/SOURCE/PARTITION, one value for all
// lanes of a partition, so that ten thousand of them are one small write a second. Where the yard
// has several nodes it is one for those of a shard, at grid/cursors/SHARD/SOURCE/PARTITION.
const cursorPrefix = "grid/cursors/"

// The first byte of a value is its version. In the second the epoch of the shard's holder follows, as
// an unsigned varint. Then come, for each lane, the length of its ID, the ID, and its watermark as an
// unsigned varint.
const (
	cursorVersion      = 1
	cursorVersionEpoch = 2
)

// saved is the marks of one partition's lanes.
type saved map[string]int64

var errCursors = errors.New("not a list of cursors")

// beginCursors begins a value with room for some lanes. On one machine, under epoch 0, it is of the
// first version.
func beginCursors(epoch shards.Epoch, lanes int) []byte {
	value := make([]byte, 0, 1+binary.MaxVarintLen64+lanes*20)
	if epoch == 0 {
		return append(value, cursorVersion)
	}
	return binary.AppendUvarint(append(value, cursorVersionEpoch), uint64(epoch))
}

func appendCursor(dst []byte, id string, mark int64) []byte {
	dst = append(dst, byte(len(id)))
	dst = append(dst, id...)
	return binary.AppendUvarint(dst, uint64(mark))
}

// cursorEpoch reads the epoch that a value begins with, and gives what follows.
func cursorEpoch(b []byte) (shards.Epoch, []byte, error) {
	switch {
	case len(b) > 0 && b[0] == cursorVersion:
		return 0, b[1:], nil
	case len(b) > 0 && b[0] == cursorVersionEpoch:
		epoch, size := binary.Uvarint(b[1:])
		if size <= 0 || int64(epoch) <= 0 {
			return 0, nil, fmt.Errorf("%w: its epoch cannot be read", errCursors)
		}
		return shards.Epoch(epoch), b[1+size:], nil
	}
	return 0, nil, fmt.Errorf("%w: its version is not known, it may be from a newer release", errCursors)
}

func parseCursors(b []byte) (shards.Epoch, saved, error) {
	epoch, b, err := cursorEpoch(b)
	if err != nil {
		return 0, nil, err
	}
	marks := make(saved)
	for len(b) > 0 {
		n := int(b[0])
		if b = b[1:]; len(b) < n {
			return 0, nil, fmt.Errorf("%w: it is cut off", errCursors)
		}
		id := string(b[:n])
		mark, size := binary.Uvarint(b[n:])
		if size <= 0 || int64(mark) < 0 {
			return 0, nil, fmt.Errorf("%w: the mark of %q cannot be read", errCursors, id)
		}
		marks[id] = int64(mark)
		b = b[n+size:]
	}
	return epoch, marks, nil
}

// cursorRef names one stored value.
type cursorRef struct {
	source    string
	partition int
}

// cursors is where lanes stand, as the store has it: those of all, or of a shard. It is the
// reconciler's.
type cursors struct {
	meta    meta.Store
	prefix  string // of the keys
	epoch   shards.Epoch
	records map[cursorRef]*cursorRecord
}

// cursorRecord is what the store has of a partition.
type cursorRecord struct {
	revision meta.Revision
	value    []byte
	// marks are those that were found at the start and have not been taken over by lanes. They stay in
	// the value.
	marks saved
}

// readCursors finds where every lane stood: all, or those of a shard, whose holder writes each value
// once, under its epoch. So what it has read is the last that any holder before has written or will.
func readCursors(ctx context.Context, store meta.Store, held *shards.Held) (cursors, error) {
	c := cursors{meta: store, prefix: cursorPrefix, records: make(map[cursorRef]*cursorRecord)}
	if held != nil {
		c.prefix, c.epoch = cursorPrefix+held.Name()+"/", held.Epoch
	}
	var err error
	if held != nil { // a value that the holder before has made a moment ago must not be missed
		err = store.Fresh(ctx, c.prefix)
	}
	var entries []meta.Entry
	if err == nil {
		entries, err = store.List(ctx, c.prefix)
	}
	if err != nil {
		return c, fmt.Errorf("read the cursors of subscriptions: %w", err)
	}
	for _, e := range entries {
		source, number, ok := strings.Cut(strings.TrimPrefix(e.Key, c.prefix), "/")
		partition, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // nobody's that we know
		}
		if err := c.begin(ctx, cursorRef{source, partition}, e); err != nil {
			return c, fmt.Errorf("read the cursors of subscriptions at %s: %w", e.Key, err)
		}
	}
	return c, nil
}

func (c *cursors) key(position cursorRef) string {
	return c.prefix + position.source + "/" + strconv.Itoa(position.partition)
}

// begin takes over what is stored of a partition, and writes it once where there is an epoch.
func (c *cursors) begin(ctx context.Context, position cursorRef, found meta.Entry) error {
	for {
		epoch, marks, err := parseCursors(found.Value)
		if err == nil {
			err = c.epoch.Over(epoch)
		}
		if err != nil {
			return err
		}
		record := &cursorRecord{revision: found.Revision, value: found.Value, marks: marks}
		if c.epoch == 0 {
			c.records[position] = record
			return nil
		}
		_, rest, _ := cursorEpoch(found.Value) // it was read before
		record.value = append(beginCursors(c.epoch, len(marks)), rest...)
		record.revision, err = c.meta.CompareAndSet(ctx, found.Key, found.Revision, record.value)
		if err == nil {
			c.records[position] = record
		}
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if found, err = c.meta.Get(ctx, found.Key); err != nil {
			if errors.Is(err, meta.ErrNotFound) { // who held the shard before has removed it
				return nil
			}
			return err
		}
	}
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

// taken says that a lane has a subscription's marks, or that nobody needs them any more.
func (c *cursors) taken(source, id string) {
	for position, record := range c.records {
		if position.source == source {
			delete(record.marks, id)
		}
	}
}

// maxConflicts is how often a value is written anew. What conflicts is a late write of another, of
// which there is one or two.
const maxConflicts = 10

// save stores a partition's value if it has changed. What conflicts is an earlier write of ours,
// whose answer was lost, or a late one of a node that held the shard before: it is written over. Of a
// later holder's it is shards.ErrLost: nothing is written.
func (c *cursors) save(ctx context.Context, position cursorRef, value []byte) error {
	record := c.records[position]
	if record == nil {
		record = &cursorRecord{}
		c.records[position] = record
	}
	if bytes.Equal(value, record.value) {
		return nil
	}
	key, expected := c.key(position), record.revision
	for range maxConflicts {
		revision, err := c.meta.CompareAndSet(ctx, key, expected, value)
		if err == nil {
			record.revision, record.value = revision, value
			return nil
		}
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if expected, err = c.rival(ctx, key); err != nil {
			return err
		}
	}
	return fmt.Errorf("save %s: %w", key, meta.ErrConflict)
}

// rival looks at what is stored where something else was expected, and gives its revision if it may
// be written over.
func (c *cursors) rival(ctx context.Context, key string) (meta.Revision, error) {
	found, err := c.meta.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	epoch, _, err := cursorEpoch(found.Value)
	if err == nil {
		err = c.epoch.Over(epoch)
	}
	return found.Revision, err
}

// remove deletes a partition's value, unless somebody else has written it: it is tried again with the
// next change, or by the next holder.
func (c *cursors) remove(ctx context.Context, position cursorRef) {
	err := c.meta.Delete(ctx, c.key(position), c.records[position].revision)
	if err == nil || errors.Is(err, meta.ErrNotFound) {
		delete(c.records, position)
	}
}
