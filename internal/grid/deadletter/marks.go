package deadletter

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// leafLetters is how many letters the marks of one entry are about: so few that each of them may be
// marked at a time of its own, and the entry is still half of what an entry may measure.
const leafLetters = 4096

// leaf says which of leafLetters letters were redriven and purged.
type leaf struct {
	Redriven spans `json:"redriven,omitempty"`
	Purged   spans `json:"purged,omitempty"`
}

// marks are a box's leaves, by the number of the first letter divided by leafLetters. They are never
// changed, only replaced, so that who reads letters needs no lock.
type marks map[int64]entry[leaf]

func (m marks) of(n int64) leaf { return m[n/leafLetters].value }

func (m marks) purged(n int64) bool {
	_, purged := m.of(n).Purged.find(n)
	return purged
}

// redriven tells when a letter was; zero: never.
func (m marks) redriven(n int64) time.Time {
	x, redriven := m.of(n).Redriven.find(n)
	if !redriven {
		return time.Time{}
	}
	return time.UnixMilli(x.At).UTC()
}

// purgedWithin counts the purged letters from first up to next.
func (m marks) purgedWithin(first, next int64) (n int64) {
	for _, l := range m {
		n += l.value.Purged.within(first, next)
	}
	return n
}

// firstKept is the first letter from first on that was not purged.
func (m marks) firstKept(first int64) int64 {
	for {
		x, purged := m.of(first).Purged.find(first)
		if !purged {
			return first
		}
		first = x.To
	}
}

func (b *box) leafKey(target int64) string {
	return entryPrefix + b.id + "/" + strconv.FormatInt(target, 10)
}

// mark changes the marks of letters, whose numbers are rising, leaf by leaf: after an error some have
// been changed.
func (b *box) mark(ctx context.Context, numbers []int64, how func(l *leaf, numbers []int64)) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	if b.gone {
		return eventlog.ErrRemoved
	}
	for len(numbers) > 0 {
		target := numbers[0] / leafLetters
		n, _ := slices.BinarySearch(numbers, (target+1)*leafLetters)
		some := numbers[:n]
		if err := b.changeLeaf(ctx, target, func(l *leaf) { how(l, some) }); err != nil {
			return err
		}
		numbers = numbers[n:]
	}
	return nil
}

// changeLeaf changes one leaf. The caller holds changing.
func (b *box) changeLeaf(ctx context.Context, target int64, how func(*leaf)) error {
	next, err := b.marked()[target].change(ctx, b.meta, b.leafKey(target), how)
	if err != nil {
		return err
	}
	b.replaceMarks(func(m marks) { m[target] = next })
	return nil
}

// dropLeaf forgets one. The caller holds changing.
func (b *box) dropLeaf(ctx context.Context, target int64) error {
	if err := b.marked()[target].remove(ctx, b.meta, b.leafKey(target)); err != nil {
		return err
	}
	b.replaceMarks(func(m marks) { delete(m, target) })
	return nil
}

func (b *box) replaceMarks(how func(marks)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := maps.Clone(b.marks)
	if next == nil {
		next = marks{}
	}
	how(next)
	b.marks = next
}

// marked gives the marks as they are.
func (b *box) marked() marks {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.marks
}

func redriven(at int64) func(*leaf, []int64) {
	return func(l *leaf, numbers []int64) { l.Redriven = l.Redriven.with(numbers, at) }
}

func purged(l *leaf, numbers []int64) {
	l.Redriven, l.Purged = l.Redriven.without(numbers), l.Purged.with(numbers, 0)
}

// prune forgets marks of letters that the log does not hold any more.
func (b *box) prune(ctx context.Context, first int64) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	for target := range b.marked() {
		if (target+1)*leafLetters > first {
			continue
		}
		if err := b.dropLeaf(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

// forgetMarksFrom takes back what is known of letters from a number on. The caller holds changing.
func (b *box) forgetMarksFrom(ctx context.Context, next int64) error {
	for target, l := range b.marked() {
		if l.value.reach() <= next {
			continue
		}
		if err := b.changeLeaf(ctx, target, func(l *leaf) { l.Redriven, l.Purged = l.Redriven.below(next), l.Purged.below(next) }); err != nil {
			return err
		}
	}
	return nil
}

// reach is behind the last letter that has a mark.
func (l leaf) reach() (next int64) {
	for _, s := range []spans{l.Redriven, l.Purged} {
		if len(s) > 0 {
			next = max(next, s[len(s)-1].To)
		}
	}
	return next
}
