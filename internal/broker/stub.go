package broker

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// Pending is a publication under way: it has its place behind all earlier ones of its
// partition, and nothing is promised yet.
type Pending struct{}

// Wait returns once the events are as durable as the engine promises. It is to be called
// exactly once, by any goroutine. Errors as for Publish.
func (p *Pending) Wait(ctx context.Context) (Published, error) { panic("stub") }

// Submit is Publish without the waiting, for who has several publications under way. The
// bytes that the events hold may be used again when it returns. It waits, until ctx ends,
// only while too much is under way already. Errors as for Publish, besides those
// that Wait gives.
func (b *Broker) Submit(ctx context.Context, hub string, to Target, events []eventlog.Event) (*Pending, error) {
	panic("stub")
}

var (
	// ErrProducerFenced: a later epoch of the same producer has begun.
	ErrProducerFenced = errors.New("a newer epoch of this producer exists")
	// ErrOutOfOrder: the batch's first number is not the one that follows.
	ErrOutOfOrder = errors.New("producer's numbers are out of order")
)

// ProducerConfig says who wants to publish exactly once. Nil fields: the broker chooses.
type ProducerConfig struct {
	ID    *int64
	Epoch *int16
	// Last is the newest number that the producer knows to be stored; nil asks the broker.
	Last *int32
}

// Producer publishes to one partition with numbers of its own, so that what is sent
// again is stored once. Its state is as durable as the events.
type Producer struct{}

// Producer begins a producer's epoch. Errors: ErrProducerFenced, *NotFoundError, the
// store's and the engine's.
func (b *Broker) Producer(ctx context.Context, hub, partition string, cfg ProducerConfig) (*Producer, error) {
	panic("stub")
}

// ID and Epoch are those in force; Last is the newest number stored, -1 if there is none.
func (p *Producer) ID() int64    { panic("stub") }
func (p *Producer) Epoch() int16 { panic("stub") }
func (p *Producer) Last() int32  { panic("stub") }

// Submit publishes events numbered from first on, without waiting. Events that are
// stored already are not stored again: Wait then returns once the first sending of
// them is durable. Errors: ErrProducerFenced, ErrOutOfOrder, and those of Broker.Submit.
func (p *Producer) Submit(ctx context.Context, first int32, events []eventlog.Event) (*Pending, error) {
	panic("stub")
}

// ReceiverConfig says who wants to read a partition for a group.
type ReceiverConfig struct {
	Hub, Group, Partition string
	At                    eventlog.Position
	// Epoch nil: a receiver without one.
	Epoch *int64
	// Name is told to others in errors; empty if it has none.
	Name string
	// Evict is called once when another receiver takes the place, before that one's
	// Receive returns, with no lock held; nothing may be given to this one's
	// client once it has returned.
	Evict func(err *EvictedError)
}

// Receiver is a place at a partition, with a cursor of its own.
type Receiver struct {
	// Cursor reads the partition; whoever uses it closes it.
	Cursor eventlog.Cursor
}

// Receive takes a place. Errors: *EpochError, *ReceiverQuotaError, *NotFoundError,
// *eventlog.PositionError, the engine's.
func (b *Broker) Receive(ctx context.Context, cfg ReceiverConfig) (*Receiver, error) { panic("stub") }

// Close frees the place at once. Safe twice, also after an eviction. It leaves the cursor open.
func (r *Receiver) Close() { panic("stub") }

// Newest tells the newest event of the receiver's partition, for who was asked to tell
// it beside each delivery (H10). It costs no I/O once the partition is open.
func (r *Receiver) Newest(ctx context.Context) (PartitionInfo, error) { panic("stub") }

// EvictedError tells a receiver who took its place (H5, H7).
type EvictedError struct {
	// Name and Epoch are the receiver's own, NewName and NewEpoch those of the other.
	Name     string
	Epoch    *int64
	NewName  string
	NewEpoch int64
}

func (e *EvictedError) Error() string { panic("stub") }

// EpochError refuses a receiver because of one that has a higher epoch, or any epoch
// when it has none itself (H5, H7).
type EpochError struct {
	Name  string
	Epoch *int64 // nil: the newcomer has none
	// OldName and OldEpoch are those of the receiver that is there.
	OldName  string
	OldEpoch int64
}

func (e *EpochError) Error() string { panic("stub") }

// ReceiverQuotaError refuses a receiver without epoch when there are Limit already (H6).
type ReceiverQuotaError struct {
	Limit int
	// Names are those of the receivers there, empty for who has none.
	Names []string
}

func (e *ReceiverQuotaError) Error() string { panic("stub") }
