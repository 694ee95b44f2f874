package retrylog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Keys of the books.
const (
	retryLogsKey = "grid/tiers/cursors"
	parkedUnder  = "grid/shelves/"
	// parkedBooks is how many books parked logs are spread over: few enough to be saved in one
	// round, enough for each to stay small with a hundred thousand parked logs.
	parkedBooks = 64
)

// cursor is what is stored of one: the number below which all is done, and, of a retry log, the
// least and the longest wait with which what is in it was put.
type cursor struct {
	Next      int64 `json:"next"`
	WaitMS    int64 `json:"waitMs,omitempty"`
	LongestMS int64 `json:"longestMs,omitempty"`
}

func (c cursor) wait() time.Duration { return time.Duration(c.WaitMS) * time.Millisecond }

// book is one entry that has the cursors of some queues.
type book struct {
	store meta.Store
	key   string
	// cursors are as stored, by the queues' names. The map is not changed but replaced, by the
	// holder of mu, so that looking does not wait for the store.
	cursors atomic.Pointer[map[string]cursor]

	mu sync.Mutex
	// revision is the entry's; in doubt, it has to be read again. Guarded by mu.
	revision meta.Revision
	doubt    bool
	queues   map[string]*queue // those that may move; guarded by mu
}

func newBook(store meta.Store, key string) *book {
	b := &book{store: store, key: key, queues: make(map[string]*queue)}
	b.cursors.Store(&map[string]cursor{})
	return b
}

// openBooks reads them all.
func openBooks(ctx context.Context, store meta.Store) ([]*book, error) {
	books := []*book{newBook(store, retryLogsKey)}
	for i := range parkedBooks {
		books = append(books, newBook(store, fmt.Sprintf("%s%02x", parkedUnder, i)))
	}
	if err := books[0].reload(ctx); err != nil {
		return nil, err
	}
	entries, err := store.List(ctx, parkedUnder)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]meta.Entry, len(entries))
	for _, entry := range entries {
		byKey[entry.Key] = entry
	}
	for _, b := range books[1:] {
		if entry, ok := byKey[b.key]; ok {
			if err := b.adopt(entry); err != nil {
				return nil, err
			}
		}
	}
	return books, nil
}

// parkedBook is where a subscription's parked log has its cursor. It must never change.
func (t *Logs) parkedBook(subscription string) *book {
	hash := fnv.New32a()
	hash.Write([]byte(subscription))
	return t.books[1+hash.Sum32()%parkedBooks]
}

// reload reads the entry as it is. The caller holds mu, or nobody else has the book yet.
func (b *book) reload(ctx context.Context) error {
	entry, err := b.store.Get(ctx, b.key)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	return b.adopt(entry)
}

// bookRecord is the stored form.
type bookRecord struct {
	V       int               `json:"v"`
	Cursors map[string]cursor `json:"cursors"`
}

// adopt takes over an entry; one of revision zero is none.
func (b *book) adopt(entry meta.Entry) error {
	r := bookRecord{V: 1}
	if entry.Revision != 0 {
		r.V = 0
		if err := json.Unmarshal(entry.Value, &r); err != nil {
			return fmt.Errorf("read %s: %w", b.key, err)
		}
	}
	if r.V != 1 {
		return fmt.Errorf("read %s: it has format %d, this eventyard knows 1: use a newer one", b.key, r.V)
	}
	if r.Cursors == nil {
		r.Cursors = map[string]cursor{}
	}
	b.cursors.Store(&r.Cursors)
	b.revision, b.doubt = entry.Revision, false
	return nil
}

// find gives a queue's cursor, without waiting.
func (b *book) find(name string) (cursor, bool) {
	c, ok := (*b.cursors.Load())[name]
	return c, ok
}

// set stores one cursor, and durably so when it returns.
func (b *book) set(ctx context.Context, name string, c cursor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changeLocked(ctx, func(cursors map[string]cursor) { cursors[name] = c })
}

// remove takes a queue out.
func (b *book) remove(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, name)
	if _, ok := b.find(name); !ok && !b.doubt {
		return nil
	}
	return b.changeLocked(ctx, func(cursors map[string]cursor) { delete(cursors, name) })
}

// follow makes save look after a queue from now on.
func (b *book) follow(q *queue) {
	b.mu.Lock()
	b.queues[q.name] = q
	b.mu.Unlock()
}

// save stores the cursors that have moved and gives their queues.
func (b *book) save(ctx context.Context) ([]*queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	moved := map[string]cursor{}
	var queues []*queue
	for name, q := range b.queues {
		if now, was := q.cursor(), (*b.cursors.Load())[name]; now != was {
			moved[name] = now
			queues = append(queues, q)
		}
	}
	if len(moved) == 0 {
		return nil, nil
	}
	err := b.changeLocked(ctx, func(cursors map[string]cursor) { maps.Copy(cursors, moved) })
	return queues, err
}

// changeLocked makes a change and stores it. This process alone writes the entry, so that a
// conflict means that an earlier change, of which nobody knew, was made after all.
func (b *book) changeLocked(ctx context.Context, change func(map[string]cursor)) error {
	for range 3 {
		if b.doubt {
			if err := b.reload(ctx); err != nil {
				return err
			}
		}
		cursors := maps.Clone(*b.cursors.Load())
		change(cursors)
		value, err := json.Marshal(bookRecord{V: 1, Cursors: cursors})
		if err != nil {
			return err
		}
		revision, err := b.store.CompareAndSet(ctx, b.key, b.revision, value)
		if err == nil {
			b.revision = revision
			b.cursors.Store(&cursors)
			return nil
		}
		b.doubt = true
		if !errors.Is(err, meta.ErrConflict) {
			return fmt.Errorf("store %s: %w", b.key, err)
		}
	}
	return fmt.Errorf("store %s: somebody else keeps changing it: %w", b.key, meta.ErrConflict)
}

func retryLogName(position int) string { return fmt.Sprintf("tier-%d", position) }

// retryLogPosition is the reverse; -1 for what is no retry log's name.
func retryLogPosition(name string) int {
	position := -1
	if number, ok := strings.CutPrefix(name, "tier-"); ok {
		if _, err := fmt.Sscanf(number, "%d", &position); err != nil || retryLogName(position) != name {
			return -1
		}
	}
	return position
}
