package box

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Marks are entries: poison/HUB/INCARNATION/PARTITION/LEAF, where HUB is the poison hub's name and
// INCARNATION when it was created, so that a hub that is made anew begins without any; LEAF is as
// setaside.Book numbers them.
const marksPrefix = "poison/"

func hubMarks(h broker.Hub) string { return marksPrefix + url.PathEscape(auth.Fold(h.Name)) + "/" }

// span is the stored form of a range of marks.
type span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	At    int64 `json:"at"`
}

var leafCodec = setaside.LeafCodec(
	func(s ranges.Span) span { return span{s.First, s.Last, s.At} },
	func(s span) ranges.Span {
		return ranges.Span{Range: ranges.Range{First: s.First, Last: s.Last}, At: s.At}
	})

// marks are those of a hub.
type marks struct {
	box   *Box
	hub   broker.Hub
	books map[string]*setaside.Book // by partition
	stale []string                  // keys of entries of earlier hubs of that name
}

// marks reads those of a hub.
func (b *Box) marks(ctx context.Context, h broker.Hub) (*marks, error) {
	m := &marks{box: b, hub: h, books: map[string]*setaside.Book{}}
	entries, err := b.cfg.Meta.List(ctx, hubMarks(h))
	if err != nil {
		return nil, fmt.Errorf("read which were redriven: %w", err)
	}
	for _, e := range entries {
		incarnation, rest, _ := strings.Cut(strings.TrimPrefix(e.Key, hubMarks(h)), "/")
		created, err := strconv.ParseInt(incarnation, 10, 64)
		if err != nil || created > h.Created.UnixMilli() {
			continue // of a later hub, which this node has not heard of
		}
		if created < h.Created.UnixMilli() {
			m.stale = append(m.stale, e.Key)
			continue
		}
		partition, _, _ := strings.Cut(rest, "/")
		if err := m.of(partition).Adopt(e); err != nil {
			return nil, fmt.Errorf("read which were redriven: %w", err)
		}
	}
	return m, nil
}

// of gives the book of a partition.
func (m *marks) of(partition string) *setaside.Book {
	book := m.books[partition]
	if book == nil {
		prefix := fmt.Sprintf("%s%d/%s/", hubMarks(m.hub), m.hub.Created.UnixMilli(), partition)
		book = setaside.NewBook(m.box.cfg.Meta, prefix, leafCodec)
		m.books[partition] = book
	}
	return book
}

// tidy removes marks of earlier hubs, and of poison events that the hub does not keep any more;
// first is the oldest that it keeps, by partition. Nobody misses them; what fails is left to the
// next time.
func (m *marks) tidy(ctx context.Context, first map[string]int64) {
	var failed error
	for partition, book := range m.books {
		failed = errors.Join(failed, book.Prune(ctx, first[partition]))
	}
	for _, key := range m.stale {
		failed = errors.Join(failed, setaside.Remove(ctx, m.box.cfg.Meta, key))
	}
	if failed != nil {
		m.box.cfg.Log.Warn("old marks of poison events stay for now", "hub", m.hub.Name, "error", failed)
	}
}
