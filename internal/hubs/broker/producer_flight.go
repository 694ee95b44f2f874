package broker

import (
	"errors"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// flight is one batch on its way into the log.
type flight struct {
	account *account
	epoch   int16
	claim   eventlog.Claim
	first   int32
	count   int
	bytes   int
	// parts is how many events each of the publications has that it is made of.
	parts []uint32
	// events are copies. They are kept until it is known what became of them.
	events []eventlog.Event
	// floor is a number that it cannot get below: all below was stored when it started.
	floor eventlog.Sequence
	// again: it started before, with unknown outcome.
	again bool

	// landed is closed when the outcome is known: stored or err, set before and not changed after.
	landed chan struct{}
	stored eventlog.Appended
	err    error
}

// join takes a publication along.
func (f *flight) join(p *Pending, events []eventlog.Event) {
	p.flight, p.offset = f, f.count
	f.events = append(f.events, events...)
	f.count += p.count
	f.bytes += p.bytes
	f.parts = append(f.parts, uint32(p.count))
}

func (f *flight) batch() eventlog.Batch {
	return eventlog.Batch{
		Events: f.events, Producer: eventlog.Producer{ID: f.account.id, Epoch: f.epoch, First: f.first, Set: true}, Claim: f.claim,
	}
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
