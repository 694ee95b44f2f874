package hub

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/go-amqp"
)

// Errors. Each is wrapped by an error that has the hub's own words.
var (
	// ErrClosed: the client or reader was closed.
	ErrClosed = errors.New("closed")
	// ErrNotFound: there is no such hub, group or partition.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized: the key, signature or token does not allow it.
	ErrUnauthorized = errors.New("not authorized")
	// ErrTooLarge: the events do not fit into one publication.
	ErrTooLarge = errors.New("too large")
	// ErrMixedKeys: the events of one call differ in their key, or have one beside a
	// named partition.
	ErrMixedKeys = errors.New("events of one batch have one key")
	// ErrOutOfOrder: a producer's number is neither the next one nor that of an event which it has
	// stored. A hub that was recreated returns this, and one that has forgotten a producer unused
	// for long: begin again at 0, as another producer.
	ErrOutOfOrder = errors.New("the producer's numbers are out of order")
	// ErrProducerFenced: a later epoch of the same producer has begun.
	ErrProducerFenced = errors.New("a newer epoch of this producer exists")
	// ErrEvicted: a reader with an equal or higher epoch has taken the partition.
	ErrEvicted = errors.New("another reader with an equal or higher epoch has taken the partition")
	// ErrRefused: a reader with a higher epoch has the partition (for a plain reader: one
	// with any), or there are five plain readers already.
	ErrRefused = errors.New("the hub refused the reader")
	// ErrOutOfRange: the position lies beyond the partition's end, or is none that the hub knows.
	ErrOutOfRange = errors.New("position is out of range")
	// ErrUnreadable: an event that was read is no AMQP message, or has values that AMQP does not
	// know.
	ErrUnreadable = errors.New("the event cannot be decoded")
	// ErrNotYard: the hub is not a yard's, and cannot do what only a yard can.
	ErrNotYard = errors.New("only a yard can do that")
)

// CallError is a node's answer that is no success. By errors.Is a Code of 404 is ErrNotFound,
// and 401 and 403 are ErrUnauthorized.
type CallError struct {
	// Code is as in HTTP.
	Code int
	// Description is in the hub's words.
	Description string

	// condition is AMQP's name of the error; empty where there is none.
	condition amqp.ErrCond
}

func (e *CallError) Error() string {
	if e.Description == "" {
		return fmt.Sprintf("status %d", e.Code)
	}
	return fmt.Sprintf("status %d: %s", e.Code, e.Description)
}

// Is reports whether the answer means one of this package's errors.
func (e *CallError) Is(target error) bool {
	meaning, _ := e.judge()
	return meaning != nil && meaning == target
}

// judge gives the error that the answer means, nil if none, and whether it will pass.
func (e *CallError) judge() (meaning error, passing bool) {
	switch e.Code {
	case http.StatusNotFound:
		return ErrNotFound, false
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrUnauthorized, false
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return nil, true
	}
	if e.condition == condRange {
		return ErrNotFound, false
	}
	return nil, false
}

// remoteError is what a hub said, in fewer brackets than the AMQP library puts around it.
type remoteError struct{ said *amqp.Error }

func (e remoteError) Error() string {
	if e.said.Description == "" {
		return string(e.said.Condition)
	}
	return string(e.said.Condition) + ": " + e.said.Description
}

func (e remoteError) Unwrap() error { return e.said }
