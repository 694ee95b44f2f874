package retrylog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Keys of the books. Where the yard has several nodes each shard has its own, which end in the
// shard's name. Parked logs have a book for each shard in any case: few enough to be saved in one
// round, enough for each to stay small with a hundred thousand parked logs.
const (
	retryLogsUnder = "grid/tiers/"
	retryLogsKey   = retryLogsUnder + "cursors"
	parkedUnder    = "grid/shelves/"
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

// content is what a book has. Epoch is that of the shard's holder who wrote it.
type content struct {
	V       int          `json:"v"`
	Epoch   shards.Epoch `json:"epoch,omitempty"`
	Cursors cursors      `json:"cursors"`
}

var bookCodec = setaside.Codec[content]{
	Encode: func(c content) ([]byte, error) {
		c.V = 1
		return json.Marshal(c)
	},
	Decode: func(stored []byte) (c content, err error) {
		err = json.Unmarshal(stored, &c)
		if err == nil && c.V != 1 {
			err = fmt.Errorf("it has format %d, this eventyard knows 1: use a newer one", c.V)
		}
		return c, err
	},
}

// book is one entry that has the cursors of some queues. Only the holder of its shard writes it:
// once a later one has begun, every change is shards.ErrLost.
type book struct {
	store meta.Store
	key   string
	epoch shards.Epoch
	// entry is as stored. The holder of mu replaces it, so that looking does not wait for the
	// store.
	entry atomic.Pointer[setaside.Entry[content]]

	mu     sync.Mutex
	doubt  bool              // guarded by mu: the last change gave an error, and may have been made
	queues map[string]*queue // guarded by mu: those that may move
}

// books are those of the retry logs and, by shard, of the parked logs. Of a shard that is not held
// here there is none.
type books struct {
	waiting *book
	parked  [shards.Count]*book
}

// all gives those there are.
func (b *books) all() []*book {
	return slices.DeleteFunc(append([]*book{b.waiting}, b.parked[:]...), func(b *book) bool { return b == nil })
}

// openBooks reads them: all, or those of one shard, which its holder begins.
func openBooks(ctx context.Context, store meta.Store, held *shards.Held) (*books, error) {
	found, err := findBooks(ctx, store, held)
	if err != nil {
		return nil, err
	}
	books, key, epoch := &books{}, retryLogsKey, shards.Epoch(0)
	if held != nil {
		key, epoch = retryLogsUnder+held.Name(), held.Epoch
	}
	books.waiting = newBook(store, key, epoch)
	for shard := range books.parked {
		if held == nil || held.Shard == shard {
			books.parked[shard] = newBook(store, parkedUnder+shards.Held{Shard: shard}.Name(), epoch)
		}
	}
	for _, b := range books.all() {
		if err := b.begin(ctx, found[b.key]); err != nil {
			return nil, err
		}
	}
	return books, nil
}

// findBooks reads what is stored of the books: all parked logs' at once, or those of one shard.
func findBooks(ctx context.Context, store meta.Store, held *shards.Held) (map[string]meta.Entry, error) {
	found, keys := make(map[string]meta.Entry), []string{retryLogsKey}
	if held != nil {
		keys = []string{retryLogsUnder + held.Name(), parkedUnder + held.Name()}
	} else {
		entries, err := store.List(ctx, parkedUnder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[e.Key] = e
		}
	}
	for _, key := range keys {
		e, err := store.Get(ctx, key)
		if err == nil {
			found[key] = e
		} else if !errors.Is(err, meta.ErrNotFound) {
			return nil, err
		}
	}
	return found, nil
}

func newBook(store meta.Store, key string, epoch shards.Epoch) *book {
	return &book{store: store, key: key, epoch: epoch, queues: make(map[string]*queue)}
}

// begin takes over what is stored; the zero entry: nothing is. The holder of a shard writes it once,
// under its epoch, so that what it has read is the last that any holder before has written or will.
func (b *book) begin(ctx context.Context, stored meta.Entry) error {
	entry := setaside.Entry[content]{}
	if stored.Revision != 0 {
		var err error
		if entry, err = bookCodec.Read(stored); err != nil {
			return err
		}
	}
	b.entry.Store(&entry)
	if b.epoch == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changeLocked(ctx, func(cursors) {})
}

// parkedBook is where a subscription's parked log has its cursor. It must never change.
func (t *Logs) parkedBook(subscription string) *book {
	b := t.books.parked[shards.Of(subscription)]
	if b == nil {
		panic("retrylog: subscription " + subscription + " is of a shard that these logs are not of")
	}
	return b
}

// find gives a queue's cursor, without waiting.
func (b *book) find(name string) (cursor, bool) {
	c, ok := b.entry.Load().Value.Cursors[name]
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
		if now := q.cursor(); now != b.entry.Load().Value.Cursors[name] {
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
	next, err := bookCodec.ChangeUnless(ctx, b.store, b.key, *b.entry.Load(), func(c *content) error {
		if err := b.epoch.Over(c.Epoch); err != nil {
			return err
		}
		if c.Epoch, c.Cursors = b.epoch, maps.Clone(c.Cursors); c.Cursors == nil {
			c.Cursors = cursors{}
		}
		how(c.Cursors)
		return nil
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
