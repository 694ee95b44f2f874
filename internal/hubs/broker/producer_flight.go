package broker

import (
	"bytes"
	"errors"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// flight is what of a producer is on its way into the log together: single events, which are one batch
// there, or frames, each of which stays a batch of its own.
type flight struct {
	account *account
	epoch   int16
	claim   eventlog.Claim
	first   int32
	count   int
	bytes   int
	// parts are the publications that it is made of; of frames there is one for each.
	parts []part
	// events and frames are copies. They are kept until it is known what became of them.
	events []eventlog.Event
	frames []eventlog.Batch
	// floor is a number that it cannot get below: all below was stored when it started.
	floor eventlog.Sequence
	// again: it started before, with unknown outcome.
	again bool

	// landed is closed when the outcome is known: stored is where its batches are, as far as they
	// are stored, and err why the others are not. Set before and not changed after.
	landed chan struct{}
	stored []eventlog.Appended
	err    error
}

// takes reports whether there is room for a publication. Events and frames do not travel together.
func (f *flight) takes(b eventlog.Batch, bytes int) bool {
	if b.Form == eventlog.FormEvents {
		return len(f.frames) == 0 && f.bytes+bytes <= eventlog.MaxBatchBytes
	}
	return len(f.events) == 0 && f.bytes+bytes <= eventlog.MaxSubmitBytes
}

// join takes a publication along.
func (f *flight) join(p *Pending, b eventlog.Batch) {
	p.flight, p.batch, p.offset = f, len(f.frames), 0
	if b.Form == eventlog.FormEvents {
		p.offset = f.count
		f.events = append(f.events, copyEvents(b.Events)...)
	} else {
		b.Raw = bytes.Clone(b.Raw)
		f.frames = append(f.frames, b)
	}
	f.count += p.count
	f.bytes += p.bytes
	f.parts = append(f.parts, part{count: uint32(p.count)})
}

// batches are what the engine is given.
func (f *flight) batches() []eventlog.Batch {
	if len(f.frames) == 0 {
		who := eventlog.Producer{ID: f.account.id, Epoch: f.epoch, First: f.first, Set: true}
		return []eventlog.Batch{{Events: f.events, Producer: who, Claim: f.claim}}
	}
	for i := range f.frames {
		f.frames[i].Claim = f.claim
	}
	return f.frames
}

// partsOf gives what a batch of it is made of, and how many events it has.
func (f *flight) partsOf(batch int) (parts []part, count int) {
	if len(f.frames) == 0 {
		return f.parts, f.count
	}
	return f.parts[batch : batch+1], int(f.parts[batch].count)
}

// find gives the batch that holds the event so many behind the first, and how many are before it there.
func (f *flight) find(event int) (batch, at int) {
	for _, count := f.partsOf(0); event >= count; _, count = f.partsOf(batch) {
		event -= count
		batch++
	}
	return batch, event
}

// ending is how many of its batches end with a number or before; 0 where none ends with it.
func (f *flight) ending(with int32) int {
	at := distance(f.first, with)
	if at >= int64(f.count) {
		return 0
	}
	batch, inside := f.find(int(at))
	if _, count := f.partsOf(batch); inside < count-1 {
		return 0
	}
	return batch + 1
}

// left is the flight without its first batches; nil where there are no others.
func (f *flight) left(behind int) *flight {
	rest := *f
	for batch := range behind {
		_, count := f.partsOf(batch)
		if rest.count -= count; rest.count == 0 {
			return nil
		}
		rest.first = ahead(rest.first, count)
		rest.bytes -= len(f.frames[batch].Raw)
	}
	if behind > 0 {
		rest.parts, rest.frames = f.parts[behind:], f.frames[behind:]
	}
	return &rest
}

// transacted reports whether something of it belongs to a transaction.
func (f *flight) transacted() bool {
	return slices.ContainsFunc(f.frames, func(b eventlog.Batch) bool { return b.Form == eventlog.FormTransaction })
}

// size is how many events, and bytes, the first batches of it have.
func (f *flight) size(batches int) (events, bytes int) {
	if rest := f.left(batches); rest != nil {
		return f.count - rest.count, f.bytes - rest.bytes
	}
	return f.count, f.bytes
}

// outcome is what became of a batch, when it has landed.
func (f *flight) outcome(batch int) (eventlog.Appended, error) {
	if batch < len(f.stored) {
		return f.stored[batch], nil
	}
	return eventlog.Appended{}, f.err
}

// copyEvents makes the events outlive the bytes that they were given with.
func copyEvents(events []eventlog.Event) []eventlog.Event {
	size := 0
	for _, e := range events {
		size += len(e.Key) + len(e.Message)
	}
	bytes, copied := make([]byte, 0, size), make([]eventlog.Event, len(events))
	keep := func(part []byte) []byte {
		at := len(bytes)
		bytes = append(bytes, part...)
		return bytes[at:len(bytes):len(bytes)]
	}
	for i, e := range events {
		copied[i] = eventlog.Event{Key: keep(e.Key), Message: keep(e.Message)}
	}
	return copied
}

// refusals are the errors of an append that has certainly stored nothing.
var refusals = []error{
	eventlog.ErrFenced, eventlog.ErrNoSpace, eventlog.ErrUnavailable, eventlog.ErrRemoved,
	eventlog.ErrClosed, eventlog.ErrTooLarge, eventlog.ErrEmptyBatch,
}

// certain reports whether an append that failed has certainly stored nothing.
func certain(err error) bool {
	return !errors.Is(err, eventlog.ErrUncertain) &&
		slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}
