package setaside

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// LeafSize is how many numbers the marks of one entry are about: so few that each of them may be
// marked at a time of its own, and the entry is still half of what an entry may measure.
const LeafSize = 4096

// Leaf says which of LeafSize numbers were redriven and purged.
type Leaf struct {
	Redriven ranges.Timed
	Purged   ranges.Timed // their times are 0
}

// Marks are what became of the events of one log, by leaf. They are never changed, only replaced,
// so that readers need no lock.
type Marks map[int64]Entry[Leaf]

func (m Marks) of(n int64) Leaf { return m[n/LeafSize].Value }

// Redriven gives the span of numbers that were redriven together with n. What was marked before n
// came into the log, at since, is about another: the log lost its end and gave the number again.
func (m Marks) Redriven(n int64, since time.Time) (ranges.Span, bool) {
	s, found := m.of(n).Redriven.Find(n)
	if !found || since.UnixMilli() > s.At {
		return ranges.Span{}, false
	}
	return s, true
}

// Purged tells whether n was.
func (m Marks) Purged(n int64) bool {
	_, purged := m.of(n).Purged.Find(n)
	return purged
}

// Kept counts the numbers from first to before next that were not purged.
func (m Marks) Kept(first, next int64) int64 {
	n := max(next-first, 0)
	for _, leaf := range m {
		n -= leaf.Value.Purged.Within(ranges.Range{First: first, Last: next - 1})
	}
	return n
}

// FirstKept is the first number from n on that was not purged.
func (m Marks) FirstKept(n int64) int64 {
	for {
		s, purged := m.of(n).Purged.Find(n)
		if !purged {
			return n
		}
		n = s.Last + 1
	}
}

// Book keeps the marks of one log in the meta store: entry PREFIX/N has those of the numbers from N
// times LeafSize on. Marks may be called by many goroutines at once; all else by one at a time.
// Books of other nodes may be about the same entries.
//
// A log may lose its end, where the operator has told the engine not to wait for the disk and the
// power fails; marks are never lost. So either somebody calls Cut before the log is appended to, or
// asks Marks.Redriven with the time of the event.
type Book struct {
	store  meta.Store
	prefix string
	codec  Codec[Leaf]
	marks  atomic.Pointer[Marks]
}

// NewBook makes a book without marks. The prefix ends in '/'.
func NewBook(store meta.Store, prefix string, codec Codec[Leaf]) *Book {
	b := &Book{store: store, prefix: prefix, codec: codec}
	b.marks.Store(&Marks{})
	return b
}

// Adopt takes an entry in that was read from the store.
func (b *Book) Adopt(e meta.Entry) error {
	name := e.Key[min(len(b.prefix), len(e.Key)):]
	leaf, err := strconv.ParseInt(name, 10, 64)
	if err == nil && (leaf < 0 || leaf > math.MaxInt64/LeafSize-1) {
		err = strconv.ErrRange
	}
	if err != nil {
		return fmt.Errorf("read entry %s: its name is no leaf's: %w", e.Key, err)
	}
	entry, err := b.codec.Read(e)
	if err == nil {
		b.replace(leaf, entry)
	}
	return err
}

// Marks gives the marks as they are.
func (b *Book) Marks() Marks { return *b.marks.Load() }

// markTimeout is how long Redriven tries, also when nobody waits any more.
const markTimeout = 10 * time.Second

// Redriven notes that numbers, which rise, were redriven, at a time in Unix milliseconds. It is
// done leaf by leaf: after an error some are noted. It goes on when the caller has left: who asks
// again must not send them again.
func (b *Book) Redriven(ctx context.Context, numbers []int64, at int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	return b.mark(ctx, numbers, func(l *Leaf, some ranges.Set) { l.Redriven = l.Redriven.With(some, at) })
}

// Purge notes that numbers, which rise, were purged, as Redriven does.
func (b *Book) Purge(ctx context.Context, numbers []int64) error {
	return b.mark(ctx, numbers, func(l *Leaf, some ranges.Set) {
		l.Redriven, l.Purged = l.Redriven.Without(some), l.Purged.With(some, 0)
	})
}

func (b *Book) mark(ctx context.Context, numbers []int64, how func(*Leaf, ranges.Set)) error {
	for len(numbers) > 0 {
		leaf := numbers[0] / LeafSize
		n, _ := slices.BinarySearch(numbers, (leaf+1)*LeafSize)
		some := ranges.SetOf(numbers[:n]...)
		if err := b.change(ctx, leaf, func(l *Leaf) { how(l, some) }); err != nil {
			return err
		}
		numbers = numbers[n:]
	}
	return nil
}

// Cut forgets what is known of numbers from next on.
func (b *Book) Cut(ctx context.Context, next int64) error {
	for leaf, e := range b.Marks() {
		if max(e.Value.Redriven.Last(), e.Value.Purged.Last()) < next {
			continue
		}
		err := b.change(ctx, leaf, func(l *Leaf) { l.Redriven, l.Purged = l.Redriven.Below(next), l.Purged.Below(next) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Prune forgets leaves of which all numbers are below first.
func (b *Book) Prune(ctx context.Context, first int64) error {
	for leaf := range b.Marks() {
		if (leaf+1)*LeafSize > first {
			continue
		}
		if err := Remove(ctx, b.store, b.key(leaf)); err != nil {
			return err
		}
		b.replace(leaf, Entry[Leaf]{})
	}
	return nil
}

func (b *Book) key(leaf int64) string { return b.prefix + strconv.FormatInt(leaf, 10) }

func (b *Book) change(ctx context.Context, leaf int64, how func(*Leaf)) error {
	next, err := b.codec.Change(ctx, b.store, b.key(leaf), b.Marks()[leaf], how)
	if err == nil {
		b.replace(leaf, next)
	}
	return err
}

// replace sets a leaf; one that does not exist is taken out.
func (b *Book) replace(leaf int64, e Entry[Leaf]) {
	next := maps.Clone(b.Marks())
	if e.Revision == 0 {
		delete(next, leaf)
	} else {
		next[leaf] = e
	}
	b.marks.Store(&next)
}

// LeafCodec is the codec of leaves whose spans are stored in a form S of their own.
func LeafCodec[S any](store func(ranges.Span) S, read func(S) ranges.Span) Codec[Leaf] {
	type leaf struct {
		Redriven []S `json:"redriven,omitempty"`
		Purged   []S `json:"purged,omitempty"`
	}
	stored, leaves := JSON[leaf](), Codec[Leaf]{}
	leaves.Encode = func(l Leaf) ([]byte, error) {
		var s leaf
		for _, span := range l.Redriven {
			s.Redriven = append(s.Redriven, store(span))
		}
		for _, span := range l.Purged {
			s.Purged = append(s.Purged, store(span))
		}
		return stored.Encode(s)
	}
	leaves.Decode = func(value []byte) (l Leaf, err error) {
		s, err := stored.Decode(value)
		for _, span := range s.Redriven {
			l.Redriven = append(l.Redriven, read(span))
		}
		for _, span := range s.Purged {
			l.Purged = append(l.Purged, read(span))
		}
		return l, err
	}
	return leaves
}

// Turn is one caller's at a time: what is redriven twice at once would be sent twice.
type Turn chan struct{}

// NewTurn makes one that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for it; give gives it back. Errors: ctx's cause.
func (t Turn) Take(ctx context.Context) (give func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
