package retrylog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/setaside"
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

// cursor is what is stored of a queue: the number below which all is done, and, of a retry log, the
// least and the longest wait with which what is in it was put.
type cursor struct {
	Next      int64 `json:"next"`
	WaitMS    int64 `json:"waitMs,omitempty"`
	LongestMS int64 `json:"longestMs,omitempty"`
}

// cursors are those of some queues, by the queues' names. They are not changed but replaced.
type cursors map[string]cursor

// bookRecord is the stored form of cursors.
type bookRecord struct {
	V       int     `json:"v"`
	Cursors cursors `json:"cursors"`
}

var bookCodec = setaside.Codec[cursors]{
	Encode: func(all cursors) ([]byte, error) { return json.Marshal(bookRecord{V: 1, Cursors: all}) },
	Decode: func(stored []byte) (cursors, error) {
		var r bookRecord
		err := json.Unmarshal(stored, &r)
		if err == nil && r.V != 1 {
			err = fmt.Errorf("it has format %d, this eventyard knows 1: use a newer one", r.V)
		}
		return r.Cursors, err
	},
}

// book is one entry that has the cursors of some queues. This process alone writes it.
type book struct {
	store meta.Store
	key   string
	// entry is as stored. The holder of mu replaces it, so that looking does not wait for the
	// store.
	entry atomic.Pointer[setaside.Entry[cursors]]

	mu     sync.Mutex
	doubt  bool              // guarded by mu: the last change gave an error, and may have been made
	queues map[string]*queue // guarded by mu: those that may move
}

// openBooks reads them all.
func openBooks(ctx context.Context, store meta.Store) ([]*book, error) {
	entries, err := store.List(ctx, parkedUnder)
	if err != nil {
		return nil, err
	}
	first, err := store.Get(ctx, retryLogsKey)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return nil, err
	}
	entries = append(entries, first)
	keys := []string{retryLogsKey}
	for i := range parkedBooks {
		keys = append(keys, fmt.Sprintf("%s%02x", parkedUnder, i))
	}
	var books []*book
	for _, key := range keys {
		b, entry := &book{store: store, key: key, queues: make(map[string]*queue)}, setaside.Entry[cursors]{}
		if at := slices.IndexFunc(entries, func(e meta.Entry) bool { return e.Key == key }); at >= 0 {
			if entry, err = bookCodec.Read(entries[at]); err != nil {
				return nil, err
			}
		}
		b.entry.Store(&entry)
		books = append(books, b)
	}
	return books, nil
}

// parkedBook is where a subscription's parked log has its cursor. It must never change.
func (t *Logs) parkedBook(subscription string) *book {
	hash := fnv.New32a()
	hash.Write([]byte(subscription))
	return t.books[1+hash.Sum32()%parkedBooks]
}

// find gives a queue's cursor, without waiting.
func (b *book) find(name string) (cursor, bool) {
	c, ok := b.entry.Load().Value[name]
	return c, ok
}

// set stores one cursor, and durably so when it returns.
func (b *book) set(ctx context.Context, name string, c cursor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changeLocked(ctx, func(all cursors) { all[name] = c })
}

// remove takes a queue out.
func (b *book) remove(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, name)
	if _, ok := b.find(name); !ok && !b.doubt {
		return nil
	}
	return b.changeLocked(ctx, func(all cursors) { delete(all, name) })
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
	moved := cursors{}
	var queues []*queue
	for name, q := range b.queues {
		if now := q.cursor(); now != b.entry.Load().Value[name] {
			moved[name] = now
			queues = append(queues, q)
		}
	}
	if len(moved) == 0 {
		return nil, nil
	}
	return queues, b.changeLocked(ctx, func(all cursors) { maps.Copy(all, moved) })
}

// changeLocked makes a change to a copy of the cursors and stores that.
func (b *book) changeLocked(ctx context.Context, how func(cursors)) error {
	next, err := bookCodec.Change(ctx, b.store, b.key, *b.entry.Load(), func(all *cursors) {
		if *all = maps.Clone(*all); *all == nil {
			*all = cursors{}
		}
		how(*all)
	})
	if b.doubt = err != nil; b.doubt {
		return fmt.Errorf("store %s: %w", b.key, err)
	}
	b.entry.Store(&next)
	return nil
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
