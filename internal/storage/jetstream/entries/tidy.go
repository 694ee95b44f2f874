package entries

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/sleep"
)

// A stream begins with its oldest message, and a value that nobody changes is kept for ever: whatever was
// written and replaced behind it leaves a gap in the midst of the stream. Servers keep a list of gaps, write it
// with the stream's state, and give that up beyond a million of them: then one that has crashed reads all its
// blocks before it serves. Nodes that say each few seconds that they live make so many within two weeks. So the
// oldest values are stored once more, behind all others, when there are too many gaps. So are the oldest deletions,
// which have messages for a day, for what is left of it.
//
// To users nothing has happened: the value keeps its revision, and watchers hear nothing. Who changes it at that
// moment is refused by the server, learns of the new message, and tries again; see Store.change.

const (
	// maxGaps is how many there may be before the oldest entries are stored again, until there are half as many.
	maxGaps = 250_000
	// tidyEvery is about how often it is looked.
	tidyEvery = 10 * time.Second
	// tidiedAtOnce entries are stored together, so that they share the servers' syncs, and tidiedMost in a row.
	tidiedAtOnce, tidiedMost = 64, 10_000
)

// Tidy keeps the gaps in all streams of a store few until ctx ends or the store is closed, and returns nil then. What it stores
// again has a form of its own: it is for a node that has joined the others, and so knows that all of them read it.
// Who only reads a yard, or fills it, leaves it alone. Load has been called.
func Tidy(ctx context.Context, s *Store) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil
	}
	var all sync.WaitGroup
	for _, b := range s.buckets {
		all.Go(func() { tidying{s, b}.run(ctx) })
	}
	all.Wait()
	return nil
}

// tidying keeps the gaps in a bucket's stream few. Several nodes may do it at once: of each entry one is stored.
type tidying struct {
	*Store
	b *bucket
}

// run does it until ctx ends.
func (s tidying) run(ctx context.Context) {
	b, looked := s.b, uint64(0)
	for sleep.About(ctx, s.cfg.tidyEvery) == nil {
		at := b.position()
		if at < looked+uint64(s.cfg.MaxGaps)/4 && looked > 0 {
			continue // there cannot be many more
		}
		if _, err := s.barrier(ctx, b); err != nil { // the last one is a message like others, and would be the oldest one day
			continue
		}
		looked = max(at, 1)
		old := s.replica.kept(b.name, time.Now().Add(-s.cfg.deletionLife))
		n := min(tooOld(old, at, s.cfg.MaxGaps), tidiedMost)
		parallel.Each(n, tidiedAtOnce, func(i int) { s.storeAgain(ctx, old[i]) })
		if n > 0 {
			s.log.Debug("old entries were stored again", "bucket", b.name, "entries", n)
			looked = 0 // there may be more to do
		}
	}
}

// kept gives the entries of a bucket that have a message, the oldest first. Of deletions those whose message came after a time.
func (r *replica) kept(bucket string, after time.Time) (all []item) {
	r.mu.RLock()
	for _, it := range r.items {
		if it.bucket == bucket && (it.kind == value || it.kind == deletion && !it.forgotten && it.heard.After(after)) {
			all = append(all, *it)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// tooOld is how many of a stream's entries, the oldest first, have to be stored again: none while there are few
// gaps, and else as many as it takes to have half of what there may be.
func tooOld(kept []item, last uint64, most int) int {
	gapsFrom := func(i int) int { return int(last) - int(kept[i].seq) + 1 - (len(kept) - i) }
	if len(kept) == 0 || gapsFrom(0) <= most {
		return 0
	}
	return sort.Search(len(kept), func(i int) bool { return gapsFrom(i) <= most/2 }) // they become fewer
}

// leastLife is the life of a deletion that is stored again when the first one's has ended.
const leastLife = time.Minute

// storeAgain stores an entry once more, unless it was changed. What becomes of it is found out by the next look.
//
// A deletion is a message as any other, that replaces the deletion before it, and has its number: who has not heard what
// became of his own finds it. Its life ends when that of the first would have, or later: a node knows of a deletion that it
// was not there for since its own start.
func (s tidying) storeAgain(ctx context.Context, it item) {
	b := s.b
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	m := message{kind: it.kind, nonce: it.nonce, before: it.seq, key: it.key, value: it.value}
	if it.kind == value {
		m.was = cmp.Or(it.was, it.seq)
	}
	header := s.condition(m)
	if it.kind == deletion {
		header.Set(lifeHeader, max(s.cfg.deletionLife-time.Since(it.gone), leastLife).Truncate(time.Second).String())
	}
	encoded := m.encode()
	seq, err := s.take(ctx, s.layout.subject(b.name, m.key), encoded, header)
	if wrong, is := errors.AsType[*wrongSequence](err); is {
		if it.kind == deletion && wrong.at == 0 {
			s.replica.forget(it.key, it.seq) // its message is gone
		}
		b.learn(wrong.at)
	}
	if err != nil {
		return
	}
	m.seq = seq
	b.receive(m)
	s.announce(b, seq, encoded)
}
