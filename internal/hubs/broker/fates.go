package broker

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Fates knows what has become of the transactions of a partition, for one reader that goes forward. It is made of the
// log alone: whether a frame of eventlog.FormTransaction counts, the next control frame of its producer says, which is
// behind it. So a reader that meets such a frame looks ahead, at headers, until it has met that word, or the end:
// then the frame is not decided yet, and the reader stays before it. That needs no storage of its own, nothing has
// to be recovered after a crash, and no node can know less than what it has read.
//
// One goroutine uses it at a time.
type Fates struct {
	open func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error)
	// note hears of frames that are not decided; nil: nobody does.
	note func(eventlog.Extent)
	// limit is how many transactions are remembered.
	limit int
	// from and to are the numbers between which everything is known; from is eventlog.NoSequence where nothing is.
	// end is where the last look ahead ended: what decides a frame that is not decided will be there, or behind.
	from, to, end eventlog.Sequence
	// begun are the producers whose transactions are not decided, with the first number of each.
	begun map[int64]eventlog.Sequence
	// aborted are in the order of their markers.
	aborted []Aborted
	// sought are those of single frames, beyond what is known of all.
	sought []Aborted
	// waits is the frame that was judged last, where it is not decided: up to end there is no word of it.
	waits waiting
	// large: something here has had room for more than maxIdleFates.
	large bool
}

// waiting is a frame that is not decided; the zero value is none.
type waiting struct {
	producer int64
	at       eventlog.Sequence
	set      bool
}

// Aborted is a transaction that does not count: the frames of a producer from First to before Marker.
type Aborted struct {
	Producer      int64
	First, Marker eventlog.Sequence
}

// Fate is what has become of a frame.
type Fate uint8

const (
	// Undecided: its transaction goes on.
	Undecided Fate = iota
	// Counts: it was committed, or is not of a transaction.
	Counts
	// Void: it was aborted.
	Void
)

const (
	// maxFates is how many transactions a reader remembers between itself and where it has looked ahead to, while it
	// looks, and maxIdleFates how many then: about as much memory as a reader takes by itself.
	maxFates     = 1 << 12
	maxIdleFates = 32
	// aheadBytes is how much is looked at at a time, by headers. Who remembers what they say begins with less, since most
	// transactions end soon.
	aheadBytes = 4 << 20
	firstStep  = 256 << 10
	lastStep   = 1 << 20
)

func newFates(open func(context.Context, eventlog.Position) (eventlog.Cursor, error)) *Fates {
	return &Fates{open: open, limit: maxFates, from: eventlog.NoSequence}
}

// Fates gives what knows the fates of a partition's transactions, for one reader. Errors as for RawCursor.
func (f *Frames) Fates(ctx context.Context, hub, partition string) (*Fates, error) {
	h, number, err := f.broker.locate(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	return f.noting(h, number, newFates(h.opener(number))), nil
}

// Judge says what has become of a frame. It may have to look ahead, which reads headers. Errors are the engine's.
func (f *Fates) Judge(ctx context.Context, e eventlog.Extent) (Fate, error) {
	if e.Form != eventlog.FormTransaction {
		return Counts, nil
	}
	frame := waiting{e.Producer.ID, e.First - eventlog.Sequence(e.Skip), true}
	fate, err := f.judge(ctx, e, frame)
	if err != nil {
		if f.waits != frame { // end is behind what was looked at for this one
			f.waits = waiting{}
		}
		return fate, err
	}
	if f.waits = (waiting{}); fate == Undecided {
		f.waits = frame
		if f.note != nil {
			f.note(e)
		}
	}
	return fate, nil
}

func (f *Fates) judge(ctx context.Context, e eventlog.Extent, frame waiting) (Fate, error) {
	at := frame.at
	if f.from == eventlog.NoSequence && f.waits == frame {
		fate, err := f.seek(ctx, e, f.end)
		if found := f.sought; fate != Undecided {
			f.begin(at)
			f.sought = found
		}
		return fate, err
	}
	if f.from == eventlog.NoSequence || at < f.from {
		f.begin(at)
	}
	for step := firstStep; ; step = min(2*step, lastStep) {
		if at < f.to {
			if fate := f.find(e.Producer.ID, at); fate != Undecided {
				return fate, nil
			}
		}
		if f.Full() {
			from := max(f.to, e.Next())
			if f.waits == frame {
				from = max(from, f.end)
			}
			return f.seek(ctx, e, from)
		}
		more, err := f.ahead(ctx, step)
		if err != nil || !more {
			return Undecided, err
		}
	}
}

// Full: no more is remembered. Whoever has judged some frames gives these first, and passes them.
func (f *Fates) Full() bool { return len(f.begun)+len(f.aborted) >= f.limit }

// Rest gives back what is not worth keeping until the next frame is judged.
func (f *Fates) Rest() {
	if len(f.begun)+len(f.aborted)+len(f.sought) > maxIdleFates {
		f.from, f.begun, f.aborted, f.sought, f.large = eventlog.NoSequence, nil, nil, nil, false
		return
	}
	if f.large {
		begun := make(map[int64]eventlog.Sequence, len(f.begun))
		maps.Copy(begun, f.begun)
		f.begun, f.aborted, f.sought, f.large = begun, slices.Clone(f.aborted), slices.Clone(f.sought), false
	}
}

// Between gives the aborted transactions that have frames between two numbers, by the first of these. All frames there
// were judged.
func (f *Fates) Between(first, next eventlog.Sequence) (all []Aborted) {
	for _, a := range slices.Concat(f.aborted, f.sought) {
		if a.Marker >= first && a.First < next {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(x, y Aborted) int { return int(x.First - y.First) })
	return slices.Compact(all) // one that was sought may have been met later
}

// End is where to wait for what decides a frame that is not decided.
func (f *Fates) End() eventlog.Sequence { return f.end }

// begin forgets everything, and goes on at a number.
func (f *Fates) begin(at eventlog.Sequence) {
	f.from, f.to, f.begun, f.aborted, f.sought, f.large = at, at, make(map[int64]eventlog.Sequence), nil, nil, false
}

// Pass says where the reader is: what is behind it is forgotten.
func (f *Fates) Pass(at eventlog.Sequence) {
	if f.from == eventlog.NoSequence {
		return
	}
	if at > f.to {
		f.begin(at)
	}
	past := 0
	for past < len(f.aborted) && f.aborted[past].Marker < at {
		past++
	}
	f.aborted = slices.Delete(f.aborted, 0, past)
	f.sought = slices.DeleteFunc(f.sought, func(a Aborted) bool { return a.Marker < at })
	f.from = max(f.from, at)
}

// find says what is known of a frame that was looked at.
func (f *Fates) find(producer int64, at eventlog.Sequence) Fate {
	if first, begun := f.begun[producer]; begun && at >= first {
		return Undecided
	}
	for _, a := range f.aborted {
		if a.Producer == producer && a.Marker > at {
			if a.First <= at {
				return Void
			}
			break
		}
	}
	return Counts
}

// learn enters what a header says.
func (f *Fates) learn(e eventlog.Extent) {
	first, begun := f.begun[e.Producer.ID]
	switch {
	case e.Form == eventlog.FormTransaction && !begun:
		f.begun[e.Producer.ID] = e.First - eventlog.Sequence(e.Skip)
	case e.Form == eventlog.FormControl && begun:
		delete(f.begun, e.Producer.ID)
		if e.Producer.First == eventlog.Abort {
			f.aborted = append(f.aborted, Aborted{Producer: e.Producer.ID, First: first, Marker: e.First})
		}
	}
}

// ahead looks at some more headers, as far as there is room for what they say; at the end there are none.
func (f *Fates) ahead(ctx context.Context, bytes int) (more bool, err error) {
	f.to, more, err = f.look(ctx, f.to, bytes, func(e eventlog.Extent) bool {
		f.learn(e)
		return !f.Full()
	})
	f.end, f.large = f.to, f.large || len(f.begun)+len(f.aborted) > maxIdleFates
	return more, err
}

// seek looks from a number on for the fate of one frame that is not known, and remembers nothing of others.
func (f *Fates) seek(ctx context.Context, e eventlog.Extent, at eventlog.Sequence) (fate Fate, err error) {
	for more := true; more && err == nil && fate == Undecided; {
		at, more, err = f.look(ctx, at, aheadBytes, func(word eventlog.Extent) bool {
			switch {
			case word.Form != eventlog.FormControl || word.Producer.ID != e.Producer.ID:
				return true
			case word.Producer.First == eventlog.Abort:
				fate = Void
				f.sought = append(f.sought, Aborted{Producer: e.Producer.ID, First: e.First - eventlog.Sequence(e.Skip), Marker: word.First})
				f.large = f.large || len(f.sought) > maxIdleFates
			default:
				fate = Counts
			}
			return false
		})
	}
	f.end = at
	return fate, err
}

// look gives the headers from a number on, some of them, until each wants no more, and where it ended. What is damaged
// is passed over: who reads it hears of it. But damage behind which nothing can be read yet is an error, since nobody knows
// what is decided there, and who waits for it would be woken by it again and again.
func (f *Fates) look(ctx context.Context, at eventlog.Sequence, bytes int, each func(eventlog.Extent) bool) (next eventlog.Sequence, more bool, err error) {
	cursor, err := f.open(ctx, eventlog.At(at))
	if _, beyond := errors.AsType[*eventlog.PositionError](err); beyond {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	defer cursor.Close()
	extents, err := cursor.Extents(ctx, nil, bytes)
	if damage, damaged := errors.AsType[*eventlog.CorruptError](err); damaged {
		if damage.Next > at {
			return damage.Next, true, nil
		}
		return at, false, damage
	}
	if err != nil {
		return at, false, err
	}
	for _, e := range extents {
		at = e.Next()
		if !each(e) {
			break
		}
	}
	return at, len(extents) > 0, nil
}

// Stable gives where readers of what is committed end: the first number of a transaction that is not decided. All such
// transactions begin at from or behind it. Errors as for RawCursor.
func (f *Frames) Stable(ctx context.Context, hub, partition string, from eventlog.Sequence) (eventlog.Sequence, error) {
	all, err := f.lookedThrough(ctx, hub, partition, from)
	if err != nil {
		return 0, err
	}
	stable := all.to
	for _, first := range all.begun {
		stable = min(stable, first)
	}
	return stable, nil
}

// Begun gives the producers whose transactions in a partition are not decided, with the first number of each. All such
// transactions begin at from or behind it; beyond some 4,000 of them the last ones are not given. Errors as for RawCursor.
func (f *Frames) Begun(ctx context.Context, hub, partition string, from eventlog.Sequence) (map[int64]eventlog.Sequence, error) {
	all, err := f.lookedThrough(ctx, hub, partition, from)
	if err != nil {
		return nil, err
	}
	return all.begun, nil
}

// lookedThrough gives what has looked at a partition from a number to its end, and knows what has begun there.
func (f *Frames) lookedThrough(ctx context.Context, hub, partition string, from eventlog.Sequence) (*Fates, error) {
	all, err := f.Fates(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	all.begin(from)
	for more := true; more && err == nil && len(all.begun) < all.limit; all.aborted = nil {
		more, err = all.ahead(ctx, aheadBytes)
		if _, damaged := errors.AsType[*eventlog.CorruptError](err); damaged {
			more, err = false, nil // it is the end of what can be said
		}
	}
	return all, err
}
