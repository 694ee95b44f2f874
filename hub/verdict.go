package hub

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/go-amqp"
)

// Conditions that are Event Hubs' own.
const (
	condBusy     amqp.ErrCond = "com.microsoft:server-busy"
	condRange    amqp.ErrCond = "com.microsoft:argument-out-of-range"
	condArgument amqp.ErrCond = "com.microsoft:argument-error"
	condOffset   amqp.ErrCond = "com.microsoft:georeplication:invalid-offset"
	condOrder    amqp.ErrCond = "com.microsoft:out-of-order-sequence"
	condFenced   amqp.ErrCond = "com.microsoft:producer-epoch-stolen"
)

// task is what was being done when an error came: some conditions mean different things.
type task uint8

const (
	sending task = iota
	reading
	asking
)

// verdict is what an error comes to.
type verdict struct {
	// err is the error for the caller: it wraps what callers branch on, and has the hub's
	// own words.
	err error
	// passing: it may succeed when it is done again.
	passing bool
	// busy: the hub asked for a pause.
	busy bool
}

// finals are the conditions that do not pass by waiting, with what they mean to callers. All
// others are taken to pass.
var finals = map[amqp.ErrCond]error{
	amqp.ErrCondNotFound:              ErrNotFound,
	amqp.ErrCondResourceDeleted:       ErrNotFound,
	condRange:                         ErrNotFound, // a partition that there is none of
	amqp.ErrCondUnauthorizedAccess:    ErrUnauthorized,
	amqp.ErrCondMessageSizeExceeded:   ErrTooLarge,
	amqp.ErrCondStolen:                ErrEvicted,
	amqp.ErrCondResourceLimitExceeded: ErrRefused,
	condArgument:                      ErrOutOfRange,
	condOffset:                        ErrOutOfRange,
	amqp.ErrCondInvalidField:          ErrOutOfRange,
	condOrder:                         ErrOutOfOrder,
	condFenced:                        ErrProducerFenced,
	amqp.ErrCondDecodeError:           nil,
	amqp.ErrCondNotAllowed:            nil,
	amqp.ErrCondNotImplemented:        nil,
	amqp.ErrCondPreconditionFailed:    nil,
}

// ours are the errors that we find by ourselves, and that do not pass either.
var ours = []error{ErrClosed, ErrNotYard, ErrOutOfRange, ErrTooLarge, errNoProducers}

// judge says what an error of the network, the protocol or the hub comes to.
func judge(err error, while task) verdict {
	if said, ok := errors.AsType[*amqp.Error](err); ok {
		return judgeCondition(err, said, while)
	}
	if answer, ok := errors.AsType[*CallError](err); ok {
		meaning, passing := answer.judge()
		if meaning != nil {
			err = fmt.Errorf("%w: %w", meaning, err)
		}
		return verdict{err: err, passing: passing}
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return verdict{err: err}
	}
	return verdict{err: err, passing: !slices.ContainsFunc(ours, func(final error) bool { return errors.Is(err, final) })}
}

func judgeCondition(err error, said *amqp.Error, while task) verdict {
	words := error(remoteError{said})
	meaning, final := finals[said.Condition]
	// A link that stood loses its rights when its token runs out before the new one is put. Whether
	// we may have another shows when it is opened again.
	expired := said.Condition == amqp.ErrCondUnauthorizedAccess && detached(err)
	if !final || expired {
		return verdict{err: words, passing: true, busy: said.Condition == condBusy}
	}
	switch {
	case said.Condition == amqp.ErrCondStolen && (refusal(said) || !detached(err)):
		meaning = ErrRefused
	case while != reading && (meaning == ErrRefused || meaning == ErrOutOfRange || meaning == ErrEvicted):
		meaning = nil // these speak of readers and their positions
	}
	if meaning != nil {
		words = fmt.Errorf("%w: %w", meaning, words)
	}
	return verdict{err: words}
}

// detached distinguishes the end of a link that stood from the refusal of a new one.
func detached(err error) bool {
	_, ok := errors.AsType[*amqp.LinkError](err)
	return ok
}

// refusal recognises by its text that a reader was refused rather than evicted: a hub may accept it
// and detach it at once, so that the condition is the same.
func refusal(said *amqp.Error) bool {
	return strings.Contains(said.Description, "cannot be created") || strings.Contains(said.Description, "is not allowed")
}
