package handler

import (
	"context"
	"errors"
	"strconv"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// reader reads one partition for a connection, from one fetch to the next.
type reader struct {
	hub    broker.Hub
	number int
	// cursor is where the reader is. asked is the offset that its client asks for then: it is before the
	// cursor where stored events cannot be read.
	cursor eventlog.Cursor
	asked  eventlog.Sequence
	// wakes is its number at the waker, and waiting says that it will be woken there. Where it is dry as
	// well nothing has come since it was last looked at.
	wakes        int
	waiting, dry bool
	// made: single events were read with the cursor, which keeps room for them.
	made bool
	// fates are of transactions, for who reads what is committed; nil: there was none yet. stable is the first number
	// that is not decided, where the reader has come to it; else NoSequence.
	fates  *broker.Fates
	stable eventlog.Sequence
	// used is the fetch that it was last wanted for, and by the item of it.
	used int
	by   *fetchItem
}

// readerKey is a partition, however clients call it.
type readerKey struct {
	hub       [16]byte
	partition int
}

func (r *reader) key() readerKey { return readerKey{r.hub.ID, r.number} }

// stretch is what a partition has for an answer, as its headers say.
type stretch struct {
	first, next eventlog.Sequence
	bytes       int
	events      int
	// plain: all of it are Kafka's batches, which are sent as they are stored.
	plain bool
	// held: what is behind it is of a transaction that is not decided. aborted are those that do not count.
	held    bool
	aborted []broker.Aborted
}

// kafkas tells whether a form is a batch of Kafka's, be it one of a transaction or the end of one.
func kafkas(f eventlog.Form) bool {
	return f == eventlog.FormKafka || f == eventlog.FormTransaction || f == eventlog.FormControl
}

// seek has the reader stand where its client asks to be.
func (r *reader) seek(ctx context.Context, b *broker.Broker, offset eventlog.Sequence) error {
	if r.cursor != nil && (offset == r.asked || offset == r.cursor.At()) {
		r.asked = offset
		return nil
	}
	if offset < 0 {
		return errRange
	}
	if err := r.open(ctx, b, offset); err != nil {
		return err
	}
	if r.cursor.At() != offset { // what was there has been removed
		r.close()
		return errRange
	}
	r.asked = offset
	return nil
}

// open has the reader stand at a number, wherever it was.
func (r *reader) open(ctx context.Context, b *broker.Broker, at eventlog.Sequence) (err error) {
	r.close()
	r.cursor, err = b.RawCursor(ctx, r.hub.Name, strconv.Itoa(r.number), eventlog.At(at))
	return err
}

// look says what is there, as many batches as measure at most max bytes, but at least one where there is
// any. For who reads what is committed it ends before what is not decided. Damage is passed over; passed hears of it.
func (r *reader) look(ctx context.Context, b *broker.Broker, scratch *[]eventlog.Extent, max int, committed bool, passed func(*eventlog.CorruptError)) (stretch, error) {
	r.stable = eventlog.NoSequence
	for {
		at := r.cursor.At()
		extents, err := r.cursor.Extents(ctx, (*scratch)[:0], max)
		*scratch = extents
		damage, damaged := errors.AsType[*eventlog.CorruptError](err)
		switch {
		case !damaged && err != nil:
			return stretch{}, err
		case len(extents) > 0 && extents[0].First > at: // retention has overtaken the reader
			return stretch{}, errRange
		case !damaged && committed:
			return r.measureCommitted(ctx, b, at, extents)
		case !damaged:
			r.dry = len(extents) == 0
			return measure(at, extents), nil
		}
		passed(damage)
		if damage.Next <= r.cursor.At() {
			return stretch{}, damage
		}
		if err := r.open(ctx, b, damage.Next); err != nil {
			return stretch{}, err
		}
	}
}

// largeBytes is what Kafka's batches at the beginning of a stretch have to measure to be sent by
// themselves, as they are stored, where other events follow: fewer are read with those.
const largeBytes = 64 << 10

// measure sums up what is there from a number on. Other events end a large stretch of Kafka's batches.
func measure(at eventlog.Sequence, extents []eventlog.Extent) stretch {
	s := stretch{first: at, next: at, plain: true}
	for _, e := range extents {
		if !kafkas(e.Form) {
			if s.plain && s.bytes >= largeBytes {
				break
			}
			s.plain = false
		}
		s.next = e.Next()
		s.bytes += e.Bytes
		s.events += e.Count - e.Skip
	}
	return s
}

// measureCommitted is measure for who reads what is committed.
func (r *reader) measureCommitted(ctx context.Context, b *broker.Broker, at eventlog.Sequence, extents []eventlog.Extent) (stretch, error) {
	if r.fates != nil {
		defer r.fates.Rest()
		r.fates.Pass(at)
	}
	held := false
	for i, e := range extents {
		if e.Form != eventlog.FormTransaction {
			continue
		}
		if r.fates == nil {
			var err error
			if r.fates, err = b.Fates(ctx, r.hub.Name, strconv.Itoa(r.number)); err != nil {
				return stretch{}, err
			}
			defer r.fates.Rest()
		}
		if i > 0 && r.fates.Full() { // what is known is of those before, which are given first
			extents = extents[:i]
			break
		}
		fate, err := r.fates.Judge(ctx, e)
		if err != nil && i > 0 { // it is left to the next look
			extents = extents[:i]
			break
		}
		if err != nil {
			return stretch{}, err
		}
		if held = fate == broker.Undecided; held {
			r.stable = e.First
			extents = extents[:i]
			break
		}
	}
	r.dry = len(extents) == 0
	s := measure(at, extents)
	if s.held = held; r.fates != nil {
		s.aborted = r.fates.Between(s.first, s.next)
	}
	return s, nil
}

// behind is where a reader waits for more than what it has looked at.
func (r *reader) behind(s stretch) eventlog.Sequence {
	if s.held && s.bytes == 0 {
		return r.fates.End()
	}
	return s.next
}

// close frees the cursor; who goes on opens another.
func (r *reader) close() {
	if r.cursor != nil {
		_ = r.cursor.Close() // it has nothing to lose
		r.cursor, r.dry, r.made = nil, false, false
	}
}

// readers are those of a connection, one for each partition.
type readers struct {
	byKey map[readerKey]*reader
	// kept is how many may stay between fetches.
	kept  *claim
	waker *eventlog.Waker
	// byNumber are those that wait at the waker, or did.
	byNumber map[int]*reader
	numbers  int
	woken    []int
	fetches  int
}

// maxIdleReaders is how many readers stay that a fetch did not want, and maxIdleFetches for how many
// fetches they do.
const (
	maxIdleReaders = 1024
	maxIdleFetches = 256
)

func newReaders(kept *claim) *readers {
	return &readers{byKey: map[readerKey]*reader{}, kept: kept, waker: eventlog.NewWaker(), byNumber: map[int]*reader{}}
}

// of gives the reader of a partition of a hub as it is now; it makes one where there is none. Nil: another
// item of the fetch has it, which has named the hub otherwise.
func (s *readers) of(item *fetchItem, hub broker.Hub) *reader {
	key := readerKey{hub.ID, int(item.partition)}
	r := s.byKey[key]
	switch {
	case r == nil:
		r = &reader{hub: hub, number: key.partition}
		s.byKey[key] = r
	case r.used == s.fetches && r.by != item:
		return nil
	}
	r.used, r.by = s.fetches, item
	return r
}

// seek has a reader stand at an offset. One that waits elsewhere is taken from there.
func (s *readers) seek(ctx context.Context, b *broker.Broker, r *reader, offset eventlog.Sequence) error {
	before := r.cursor
	err := r.seek(ctx, b, offset)
	if r.cursor != before && r.waiting {
		s.stop()
	}
	return err
}

// wait has a reader woken when something is behind what was looked at.
func (s *readers) wait(ctx context.Context, b *broker.Broker, r *reader, behind eventlog.Sequence) error {
	if r.waiting {
		return nil
	}
	cursor := r.cursor
	if behind != cursor.At() {
		var err error
		if cursor, err = b.RawCursor(ctx, r.hub.Name, strconv.Itoa(r.number), eventlog.At(behind)); err != nil {
			return err
		}
		defer func() { _ = cursor.Close() }() // it is woken all the same
	}
	s.numbers++
	r.wakes, r.waiting = s.numbers, true
	s.byNumber[r.wakes] = r
	s.waker.Wait(r.wakes, cursor)
	return nil
}

// wake finds out who was woken.
func (s *readers) wake() {
	s.woken = s.waker.Woken(s.woken[:0])
	for _, number := range s.woken {
		if r := s.byNumber[number]; r != nil && r.wakes == number {
			r.waiting, r.dry = false, false
		}
		delete(s.byNumber, number)
	}
}

// stop has nobody wait any more. Whoever is at the end waits anew when it is looked at next.
func (s *readers) stop() {
	s.waker.Stop()
	for _, r := range s.byNumber {
		r.waiting = false
	}
	clear(s.byNumber)
}

// drop lets a reader go; nil is none.
func (s *readers) drop(r *reader) {
	if r == nil {
		return
	}
	if r.waiting {
		s.stop()
	}
	r.close()
	delete(s.byKey, r.key())
}

// rest gives back what readers hold between fetches, and lets those go that nobody wants any more. Where
// there is no room for the others they all go.
func (s *readers) rest() {
	crowded := len(s.byKey) > maxIdleReaders
	for _, r := range s.byKey {
		switch idle := s.fetches - r.used; {
		case crowded && idle > 0 || idle > maxIdleFetches:
			s.drop(r)
		case r.made:
			r.close()
		case r.cursor != nil && idle == 0:
			r.cursor.Rest()
		}
	}
	if !s.kept.set(len(s.byKey)) {
		s.close()
	}
}

// close lets all of them go.
func (s *readers) close() {
	s.stop()
	for _, r := range s.byKey {
		r.close()
	}
	clear(s.byKey)
	s.kept.set(0)
}
