package broker

import (
	"errors"
	"fmt"
)

// What a listener branches on. Everything else that a call returns is the log's or the
// store's own error, wrapped with what was being done.
var (
	// ErrInvalidName: the name of a hub, group or publisher is not of the form allowed.
	ErrInvalidName = errors.New("name is not allowed")
	// ErrReservedName: the hub's name would hide a path of the HTTP listener.
	ErrReservedName = errors.New("name is reserved")
	// ErrInvalidPartitionCount: fewer than 1 or more than MaxPartitions.
	ErrInvalidPartitionCount = errors.New("partition count is not allowed")
	// ErrInvalidRetention: an age or size below zero.
	ErrInvalidRetention = errors.New("retention is not allowed")
	// ErrInvalidQuota: a number of events or bytes below zero.
	ErrInvalidQuota = errors.New("quota is not allowed")
	// ErrHubExists: the name is taken, maybe in another spelling.
	ErrHubExists = errors.New("hub exists already")
	// ErrGroupExists: the hub has that group already.
	ErrGroupExists = errors.New("consumer group exists already")
	// ErrDefaultGroup: $Default cannot be deleted.
	ErrDefaultGroup = errors.New("the default consumer group always exists")
	// ErrPartitionsFixed: another number of partitions was asked of a hub that exists.
	ErrPartitionsFixed = errors.New("the number of partitions is fixed when a hub is created")
	// ErrKeyTooLong: a partition key has more than MaxKeyCharacters.
	ErrKeyTooLong = errors.New("partition key is too long")
	// ErrInvalidKey: a partition key is not valid UTF-8.
	ErrInvalidKey = errors.New("partition key is not text")
	// ErrProducerFenced: a later epoch of the same producer has begun. It has to begin one
	// that is later still.
	ErrProducerFenced = errors.New("a newer epoch of this producer exists")
	// ErrOutOfOrder: the batch's first number is not the one that follows, and it is no
	// repeat of a batch that was stored; or what a producer gives as a number is none.
	ErrOutOfOrder = errors.New("producer's numbers are out of order")
	// ErrRepeatTooOld: what a producer has sent again is stored, but so long ago that nobody remembers where.
	ErrRepeatTooOld = errors.New("it was stored before, nobody remembers where")
	// ErrTooManyKeysCounted: the keys of so many partitions are counted already that no more are.
	ErrTooManyKeysCounted = errors.New("the keys of too many partitions are counted at present")
)

// What a NotFoundError says is missing.
const (
	KindHub       = "hub"
	KindGroup     = "group"
	KindPartition = "partition"
)

// NotFoundError names what is not there.
type NotFoundError struct {
	// Kind is KindHub, KindGroup or KindPartition.
	Kind string
	// Hub is the hub asked for or, for the other kinds, the hub in its own spelling.
	Hub string
	// Name is the group or partition asked for; the hub for KindHub.
	Name string
	// Partitions is how many the hub has, for KindPartition.
	Partitions int
	// Similar is a group whose name differs only in case, for KindGroup; empty if none.
	Similar string
}

func (e *NotFoundError) Error() string {
	switch e.Kind {
	case KindPartition:
		has := "only partition 0"
		if e.Partitions != 1 {
			has = fmt.Sprintf("partitions 0 to %d", e.Partitions-1)
		}
		return fmt.Sprintf("partition %.64q of hub %.64q does not exist: it has %s", e.Name, e.Hub, has)
	case KindGroup:
		if e.Similar != "" {
			return fmt.Sprintf("consumer group %.64q of hub %.64q does not exist: there is %q, and case matters here", e.Name, e.Hub, e.Similar)
		}
		return fmt.Sprintf("consumer group %.64q of hub %.64q does not exist: create it first, or use %s", e.Name, e.Hub, DefaultGroup)
	default:
		return fmt.Sprintf("hub %.64q does not exist: create it first, or check its spelling", e.Name)
	}
}

func hubNotFound(name string) error {
	return &NotFoundError{Kind: KindHub, Hub: name, Name: name}
}

func groupNotFound(h *hub, group string) *NotFoundError {
	return &NotFoundError{Kind: KindGroup, Hub: h.Name, Name: group}
}
