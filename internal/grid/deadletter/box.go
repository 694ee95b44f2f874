package deadletter

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// entryPrefix is where the meta store has entries for each subscription that ever had a dead letter:
// grid/dead/ID is its state, grid/dead/ID/N the marks of its letters from N times leafLetters on.
const entryPrefix = "grid/dead/"

// box is the dead letters of one subscription: a log, and entries that say what became of them.
//
// The log may lose its end, where the operator has told the engine not to wait for the disk and the
// power fails. Entries are never lost. So before the first letter is put the entries are cut to the log's
// length: else a new letter would inherit what is known of the one that had its number.
type box struct {
	id   string
	log  eventlog.Partition
	meta meta.Store

	// changing is held while entries are being changed. It is taken before mu.
	changing sync.Mutex
	gone     bool // guarded by changing: the subscription was deleted

	mu      sync.Mutex
	ready   bool         // guarded by mu: the state's entry is there, and entries are no longer than the log
	state   entry[state] // guarded by mu
	marks   marks        // guarded by mu
	unnoted *write       // guarded by mu: was written, which is still to be noted
	trouble string       // guarded by mu: why nothing is written at present; empty: nothing is wrong
	dropped int64        // guarded by mu: given up since the start
	forever bool         // guarded by mu: retention does not remove letters at present
}

// state is the entry about the letters' way to their place.
type state struct {
	// Written is the number of the first letter that has not been written to its place.
	Written int64 `json:"written"`
	// Writes says where the newest of those before went.
	Writes []write `json:"writes,omitempty"`
	// Since is when Place went out of reach; zero: it is not.
	Since  time.Time `json:"since,omitzero"`
	Target string    `json:"place,omitempty"`
}

// write is one file, blob or sending: letters from First up to Next, without some that could not be.
type write struct {
	First   int64   `json:"first"`
	Next    int64   `json:"next"`
	Where   string  `json:"where,omitempty"`
	Without []int64 `json:"without,omitempty"`
}

// Bounds of what is remembered of writes.
const (
	maxWrites     = 200
	maxWriteNames = 64 << 10
	maxWithout    = 20
)

// add notes a write, and forgets the oldest ones when they become too many or too long. It may be done
// twice: nobody knows whether the first time was noted.
func (st *state) add(w write) {
	w.Without = w.Without[:min(len(w.Without), maxWithout)]
	st.cut(w.First)
	st.Written = w.Next
	if w.Where == "" {
		return
	}
	st.Writes = append(st.Writes, w)
	names := 0
	for i := len(st.Writes) - 1; i >= 0; i-- {
		if names += len(st.Writes[i].Where); len(st.Writes)-i > maxWrites || names > maxWriteNames {
			st.Writes = st.Writes[i+1:]
			return
		}
	}
}

// where tells where a letter went; empty: it is not known, or it went nowhere.
func (st *state) where(n int64) string {
	i, found := slices.BinarySearchFunc(st.Writes, n, func(w write, n int64) int {
		switch {
		case w.Next <= n:
			return -1
		case w.First > n:
			return 1
		}
		return 0
	})
	if !found || slices.Contains(st.Writes[i].Without, n) {
		return ""
	}
	return st.Writes[i].Where
}

// cut forgets what is known of letters from a number on.
func (st *state) cut(next int64) {
	st.Written = min(st.Written, next)
	var writes []write
	for _, w := range st.Writes {
		if w.Next = min(w.Next, next); w.First < w.Next {
			writes = append(writes, w)
		}
	}
	st.Writes = writes
}

func (b *box) key() string { return entryPrefix + b.id }

// present gives the state as it is.
func (b *box) present() state {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.value
}

// change changes the state. Of a deleted subscription nothing is noted: ErrRemoved.
func (b *box) change(ctx context.Context, how func(*state)) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	return b.changeState(ctx, how)
}

// changeState is change for those who hold changing.
func (b *box) changeState(ctx context.Context, how func(*state)) error {
	if b.gone {
		return eventlog.ErrRemoved
	}
	b.mu.Lock()
	present := b.state
	b.mu.Unlock()
	next, err := present.change(ctx, b.meta, b.key(), how)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = next
	return nil
}

// prepare makes the box ready for letters: its entry before its first letter, so that whoever opens
// the service finds every log there is, and no entry about letters that the log does not have.
func (b *box) prepare(ctx context.Context) error {
	if b.isReady() {
		return nil
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	if b.isReady() {
		return nil
	}
	if err := b.fitLog(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = true
	return nil
}

func (b *box) isReady() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// fitLog sees to it that there is an entry, and cuts entries to the log's length. The caller holds changing.
func (b *box) fitLog(ctx context.Context) error {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return err
	}
	next := int64(bounds.Next)
	b.mu.Lock()
	present := b.state
	b.mu.Unlock()
	if present.revision == 0 || present.value.Written > next {
		if err := b.changeState(ctx, func(st *state) { st.cut(next) }); err != nil {
			return err
		}
	}
	return b.forgetMarksFrom(ctx, next)
}

// append stores letters, in as few batches as fit.
func (b *box) append(ctx context.Context, deliveries []pending.Delivery) error {
	var batch eventlog.Batch
	size := 0
	for i := range deliveries {
		message := deliveries[i].Append(nil)
		if room := len(message) + eventlog.EventOverheadBytes; size+room > eventlog.MaxBatchBytes && size > 0 {
			if _, err := eventlog.Append(ctx, b.log, batch); err != nil {
				return err
			}
			batch.Events, size = nil, 0
		}
		batch.Events = append(batch.Events, eventlog.Event{Message: message})
		size += len(message) + eventlog.EventOverheadBytes
	}
	_, err := eventlog.Append(ctx, b.log, batch)
	return err
}

// remove forgets the box: its log first, since as long as an entry is there the log is found, and the
// state last, for the same reason. What fails is done again by the next call.
func (b *box) remove(ctx context.Context, engine eventlog.Engine) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.gone = true
	if err := engine.Remove(ctx, logOf(b.id)); err != nil {
		return err
	}
	for target := range b.marked() {
		if err := b.dropLeaf(ctx, target); err != nil {
			return err
		}
	}
	b.mu.Lock()
	present := b.state
	b.mu.Unlock()
	if present.revision == 0 { // of an attempt to make it whose outcome was unknown
		var err error
		if present, err = reread[state](ctx, b.meta, b.key()); err != nil {
			return err
		}
	}
	return present.remove(ctx, b.meta, b.key())
}

func logOf(id string) string { return "dead-" + id }

// idOfEntry reads an entry's key: whose it is, and of which leaf if it is one.
func idOfEntry(key string) (id, leaf string) {
	id, leaf, _ = strings.Cut(strings.TrimPrefix(key, entryPrefix), "/")
	return id, leaf
}

// reached is the first letter that still has to be written.
func (b *box) reached() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unnoted != nil {
		return max(b.state.value.Written, b.unnoted.Next)
	}
	return b.state.value.Written
}

func (b *box) counts(bounds eventlog.Bounds) Counts {
	first, next, reached, marks := int64(bounds.First), int64(bounds.Next), b.reached(), b.marked()
	waiting := min(max(first, reached), next)
	b.mu.Lock()
	defer b.mu.Unlock()
	return Counts{
		Kept:      next - first - marks.purgedWithin(first, next),
		Unwritten: next - waiting - marks.purgedWithin(waiting, next),
		Dropped:   b.dropped, Problem: b.trouble, Since: b.state.value.Since,
	}
}
