package deadletter

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// entryPrefix is where the meta store has entries for each subscription that ever had a dead
// letter: grid/dead/ID is its state, grid/dead/ID/N the marks of its letters from N times
// setaside.LeafSize on.
const entryPrefix = "grid/dead/"

// span is the stored form of a range of marks.
type span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // not included
	At   int64 `json:"at,omitempty"`
}

var (
	stateCodec = setaside.JSON[state]()
	leafCodec  = setaside.LeafCodec(
		func(s ranges.Span) span { return span{s.First, s.Last + 1, s.At} },
		func(s span) ranges.Span {
			return ranges.Span{Range: ranges.Range{First: s.From, Last: s.To - 1}, At: s.At}
		})
)

// box is the dead letters of one subscription: a log, and entries that say what became of them.
//
// The log may lose its end, where the operator has the engine not wait for the disk and the power
// fails. Entries are never lost. So before the first letter is put the entries are cut to the log's
// length: else a new letter would inherit what is known of the one that had its number.
type box struct {
	id        string
	epoch     shards.Epoch // of the shard's holder
	log       eventlog.Partition
	meta      meta.Store
	redriving setaside.Turn

	// retaining is held while the engine is told how long letters are kept.
	retaining sync.Mutex
	retained  *eventlog.Retention // guarded by retaining: what the engine was told last; nil: nothing yet

	// changing is held while entries are being changed. It is taken before mu.
	changing sync.Mutex
	gone     bool           // guarded by changing: the subscription was deleted
	book     *setaside.Book // changed by the holder of changing; its marks may be read by all

	mu      sync.Mutex
	ready   bool                  // guarded by mu: the state's entry is there, and entries are no longer than the log
	state   setaside.Entry[state] // guarded by mu
	unnoted *write                // guarded by mu: was written, which is still to be noted
	trouble string                // guarded by mu: why nothing is written at present; empty: nothing is wrong
	dropped int64                 // guarded by mu: given up since the start
}

// state is the entry about the letters' way to their target.
type state struct {
	// Written is the number of the first letter that has not been written to its target.
	Written int64 `json:"written"`
	// Writes says where the newest of those before went.
	Writes []write `json:"writes,omitempty"`
	// Since is when Target went out of reach; zero: it is not.
	Since  time.Time `json:"since,omitzero"`
	Target string    `json:"place,omitempty"`
	// Epoch is that of the shard's holder who wrote this.
	Epoch shards.Epoch `json:"epoch,omitempty"`
}

// write is one file, blob or sending: letters from First up to Next, without some that could not
// be.
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

// add notes a write, and forgets the oldest ones when they become too many or too long. It may be
// done twice: nobody knows whether the first time was noted.
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

// where gives where a letter went; empty: it is not known, or it went nowhere.
func (st *state) where(n int64) string {
	i := sort.Search(len(st.Writes), func(i int) bool { return st.Writes[i].Next > n })
	if i == len(st.Writes) || st.Writes[i].First > n || slices.Contains(st.Writes[i].Without, n) {
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

// present gives the state's entry as it is.
func (b *box) present() setaside.Entry[state] {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// change changes entries: nobody else does meanwhile. Of a deleted subscription nothing is noted:
// ErrRemoved.
func (b *box) change(how func() error) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	if b.gone {
		return eventlog.ErrRemoved
	}
	if err := how(); err != nil {
		return fmt.Errorf("note what became of dead letters: %w", err)
	}
	return nil
}

// changeState changes the state.
func (b *box) changeState(ctx context.Context, how func(*state)) error {
	return b.change(func() error { return b.setState(ctx, how) })
}

// setState is changeState for those who hold changing. shards.ErrLost once a later holder of the shard
// has begun.
func (b *box) setState(ctx context.Context, how func(*state)) error {
	next, err := stateCodec.ChangeUnless(ctx, b.meta, b.key(), b.present(), func(st *state) error {
		if err := b.epoch.Over(st.Epoch); err != nil {
			return err
		}
		st.Epoch = b.epoch
		how(st)
		return nil
	})
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
	return b.change(func() error {
		if b.isReady() {
			return nil
		}
		bounds, err := b.log.Sealed(ctx)
		if err != nil {
			return err
		}
		next := int64(bounds.Next)
		if present := b.present(); present.Revision == 0 || present.Value.Written > next {
			if err := b.setState(ctx, func(st *state) { st.cut(next) }); err != nil {
				return err
			}
		}
		if err := b.book.Cut(ctx, next); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ready = true
		return nil
	})
}

func (b *box) isReady() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// append stores letters, in as few batches as fit.
func (b *box) append(ctx context.Context, deliveries []pending.Delivery) error {
	var batch eventlog.Batch
	size := 0
	for i := range deliveries {
		message := deliveries[i].Append(nil)
		room := len(message) + eventlog.EventOverheadBytes
		if size+room > eventlog.MaxBatchBytes && size > 0 {
			if _, err := eventlog.Append(ctx, b.log, batch); err != nil {
				return err
			}
			batch.Events, size = nil, 0
		}
		batch.Events, size = append(batch.Events, eventlog.Event{Message: message}), size+room
	}
	_, err := eventlog.Append(ctx, b.log, batch)
	return err
}

// remove forgets the box: its log first, since as long as an entry is there the log is found, and
// the state last, for the same reason. What fails is done again by the next call.
func (b *box) remove(ctx context.Context, engine eventlog.Engine) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.gone = true
	if err := engine.Remove(ctx, logOf(b.id)); err != nil {
		return err
	}
	err := b.book.Prune(ctx, math.MaxInt64)
	if err == nil {
		err = setaside.Remove(ctx, b.meta, b.key())
	}
	if err != nil {
		return fmt.Errorf("forget what became of dead letters: %w", err)
	}
	return nil
}

func logOf(id string) string { return "dead-" + id }

// reached is the first letter that still has to be written.
func (b *box) reached() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unnoted != nil {
		return max(b.state.Value.Written, b.unnoted.Next)
	}
	return b.state.Value.Written
}
