package box

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Marks are entries: poison/HUB/INCARNATION/PARTITION/LEAF, where HUB is the poison hub's name and INCARNATION when it was created, so that a
// hub that is made anew begins without any; LEAF counts stretches of leafLetters poison events: so few that each of them may be redriven at another time
// and the entry is still not too large.
const (
	marksPrefix      = "poison/"
	leafPoisonEvents = 4096
)

func hubMarks(h broker.Hub) string { return marksPrefix + url.PathEscape(auth.Fold(h.Name)) + "/" }

func marksOf(h broker.Hub) string {
	return hubMarks(h) + strconv.FormatInt(h.Created.UnixMilli(), 10) + "/"
}

func leafKey(h broker.Hub, partition string, leaf int64) string {
	return marksOf(h) + partition + "/" + strconv.FormatInt(leaf, 10)
}

// mark is a stretch of poison events and when they were redriven, in Unix milliseconds.
type mark struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	At    int64 `json:"at"`
}

// spans are in order and do not overlap.
type spans []mark

// leaf is an entry.
type leaf struct {
	Redriven spans `json:"redriven"`
}

// marks are those of all partitions of a hub.
type marks map[string]spans

func (m marks) of(partition string) spans { return m[partition] }

// find gives the stretch that a poison event is in.
func (s spans) find(n int64) (mark, bool) {
	i, found := slices.BinarySearchFunc(s, n, func(m mark, n int64) int {
		switch {
		case m.Last < n:
			return -1
		case m.First > n:
			return 1
		}
		return 0
	})
	if !found {
		return mark{}, false
	}
	return s[i], true
}

// at tells when a poison event was redriven that is in the hub since a time. The log may have lost its end, where the operator has told the engine not
// to wait for the disk and the power failed; marks are never lost. So a mark that is older than the poison event is about one that had its number.
func (s spans) at(n int64, since time.Time) (time.Time, bool) {
	m, found := s.find(n)
	if !found || since.UnixMilli() > m.At {
		return time.Time{}, false
	}
	return time.UnixMilli(m.At).UTC(), true
}

// before is the first of the stretch of poison events up to n that were all redriven, as n was: what is before it in the hub is older, and no
// younger than its mark.
func (s spans) before(n int64) int64 {
	if m, found := s.find(n); found {
		return m.First
	}
	return n
}

// with adds poison events, whose numbers rise. Neighbours of one time become one.
func (s spans) with(numbers []int64, at int64) spans {
	all := s.without(numbers)
	for _, n := range numbers {
		all = append(all, mark{n, n, at})
	}
	slices.SortFunc(all, func(a, b mark) int { return cmp.Compare(a.First, b.First) })
	out := all[:0]
	for _, m := range all {
		if last := len(out) - 1; last >= 0 && out[last].Last+1 == m.First && out[last].At == m.At {
			out[last].Last = m.Last
			continue
		}
		out = append(out, m)
	}
	return out
}

// without takes poison events out, whose numbers rise.
func (s spans) without(numbers []int64) spans {
	rest := make(spans, 0, len(s)+len(numbers))
	for _, m := range s {
		i, _ := slices.BinarySearch(numbers, m.First)
		for ; i < len(numbers) && numbers[i] <= m.Last; i++ {
			if numbers[i] > m.First {
				rest = append(rest, mark{m.First, numbers[i] - 1, m.At})
			}
			m.First = numbers[i] + 1
		}
		if m.First <= m.Last {
			rest = append(rest, m)
		}
	}
	return rest
}

// marks reads those of a hub.
func (b *Box) marks(ctx context.Context, h broker.Hub) (marks, error) {
	entries, err := b.cfg.Meta.List(ctx, marksOf(h))
	if err != nil {
		return nil, fmt.Errorf("read which were redriven: %w", err)
	}
	all := marks{}
	for _, e := range entries {
		partition, _, ok := strings.Cut(strings.TrimPrefix(e.Key, marksOf(h)), "/")
		var l leaf
		if err := json.Unmarshal(e.Value, &l); err != nil || !ok {
			return nil, fmt.Errorf("read which were redriven: %s: %w", e.Key, cmp.Or(err, errors.New("no such key")))
		}
		all[partition] = append(all[partition], l.Redriven...)
	}
	for partition, s := range all { // keys are in the order of their text
		slices.SortFunc(s, func(a, b mark) int { return cmp.Compare(a.First, b.First) })
		all[partition] = s
	}
	return all, nil
}

// mark notes that letters of a partition were redriven. Their numbers rise.
func (b *Box) mark(ctx context.Context, h broker.Hub, partition string, numbers []int64, at int64) error {
	for len(numbers) > 0 {
		reference := numbers[0] / leafPoisonEvents
		n, _ := slices.BinarySearch(numbers, (reference+1)*leafPoisonEvents)
		if err := b.markLeaf(ctx, leafKey(h, partition, reference), numbers[:n], at); err != nil {
			return fmt.Errorf("note which were redriven: %w", err)
		}
		numbers = numbers[n:]
	}
	return nil
}

// markLeaf adds to what is there, whoever else does meanwhile.
func (b *Box) markLeaf(ctx context.Context, key string, numbers []int64, at int64) error {
	for {
		var l leaf
		there, err := b.cfg.Meta.Get(ctx, key)
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		if err == nil {
			if err := json.Unmarshal(there.Value, &l); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		l.Redriven = l.Redriven.with(numbers, at)
		value, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if _, err = b.cfg.Meta.CompareAndSet(ctx, key, there.Revision, value); !errors.Is(err, meta.ErrConflict) {
			return err
		}
	}
}

// tidy removes marks of earlier hubs of that name, and of poison events that the hub does not keep any more. Nobody misses them; what fails
// is left to the next time.
func (b *Box) tidy(ctx context.Context, h broker.Hub, first map[string]int64) {
	entries, err := b.cfg.Meta.List(ctx, hubMarks(h))
	for _, e := range entries {
		if err != nil {
			break
		}
		if b.useless(h, e.Key, first) {
			err = b.cfg.Meta.Delete(ctx, e.Key, e.Revision)
		}
	}
	if err != nil && !errors.Is(err, meta.ErrConflict) && !errors.Is(err, meta.ErrNotFound) {
		b.cfg.Log.Warn("old marks of poison events stay for now", "hub", h.Name, "error", err)
	}
}

// useless: the key is of an earlier hub, or all its poison events are gone. That of a later hub, which this node has not heard of, is neither.
func (b *Box) useless(h broker.Hub, key string, first map[string]int64) bool {
	parts := strings.Split(strings.TrimPrefix(key, hubMarks(h)), "/")
	if len(parts) != 3 {
		return false
	}
	created, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || created != h.Created.UnixMilli() {
		return err == nil && created < h.Created.UnixMilli()
	}
	reference, err := strconv.ParseInt(parts[2], 10, 64)
	oldest, known := first[parts[1]]
	return err == nil && known && reference < math.MaxInt64/leafPoisonEvents-1 && (reference+1)*leafPoisonEvents <= oldest
}
